//! Rules that refuse all requests while Redis is unavailable do not claim that a limit is exceeded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use diana_core::policy::redis::OnFailure;
use diana_core::report::Outcome;
use diana_core::report::protocol::Protocol;
use diana_core::time::SECOND;

use super::super::{Lines, field};
use super::{Worker, ann};

/// Logins that are closed while Redis is away.
const CLOSED: &str = "redis: {cluster: redis}
log: refused
response: {status: 429, problem: true, jitter: 0}
limits:
- Url: /
  rules:
  - {name: login, actor: account, unit: day, rpu: 9, algo: W, scope: global, on_failure: deny,
     ban: {after: 2, within: 1m, for: 1h}}";

/// A worker that has found out that Redis is away.
fn away(text: &str, on_failure: OnFailure) -> Worker {
    let mut worker = Worker::of(text, on_failure);
    worker.request(&ann());
    worker.steps(30, &mut |_, _| None);
    assert!(!worker.engine.is_together());
    worker
}

#[test]
fn unavailable_redis_is_no_exceeded_quota() {
    let mut worker = away(CLOSED, OnFailure::Gateway);
    for asked in [true, false] {
        if !asked {
            worker.request(&ann());
        }
        assert_eq!(worker.verdicts.pop(), Some(false));
        let refusal = worker.refusal.take().unwrap();
        assert_eq!((refusal.status(), refusal.is_unavailable()), (503, true));
        assert_eq!(refusal.by.outcome, Outcome::Unavailable(SECOND));
        assert_eq!(worker.refused, [("retry-after", "1".to_owned())]);
        let body = refusal.body(b"");
        let wanted = "{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\",\
                    \"title\":\"Temporarily reduced capacity\",\"status\":503,\
                    \"detail\":\"rate limiter unavailable\"}";
        assert_eq!(body, wanted);
        assert_eq!(refusal.content_type(), "application/problem+json");
        let state = refusal.by.state();
        let begin = "unavailable rule=login scope=global mode=enforced wait=1.000000s limit=9 reset=1.000000s key=";
        assert!(state.starts_with(begin), "{state}");
    }
    let lines = Lines::default();
    worker.engine.flush("ns", &lines);
    let lines = lines.0.take();
    assert!(lines.contains(&"diana.ns.rule.login.unavailable 2".into()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("login.refused")), "{lines:?}");
}

#[test]
fn unavailable_redis_is_code_unavailable_to_rpc_clients() {
    let refusal = away(CLOSED, OnFailure::Gateway).refusal.unwrap();
    let reply = |content_type: &'static str| {
        refusal.reply(Protocol::of(content_type.as_bytes(), || true), b"")
    };
    let grpc = reply("application/grpc");
    assert_eq!((grpc.status, grpc.grpc_status), (200, 14));
    assert_eq!(grpc.grpc_message.as_deref(), Some("rate limiter unavailable"));
    let trailers = "grpc-status:14\r\ngrpc-message:rate limiter unavailable\r\n";
    let frame = [b"\x80\0\0\0\x37", trailers.as_bytes()].concat();
    assert_eq!(trailers.len(), 0x37);
    let text = STANDARD.encode(&frame).into_bytes();
    for (kind, body) in [("application/grpc-web", frame), ("application/grpc-web-text", text)] {
        let web = reply(kind);
        assert_eq!((web.status, &*web.body), (200, &*body), "{kind}");
    }
    let error = r#"{"code":"unavailable","message":"rate limiter unavailable"}"#;
    for kind in ["application/proto", "application/json"] {
        let unary = reply(kind);
        assert_eq!((unary.status, &*unary.body), (503, error.as_bytes()), "{kind}");
    }
    let stream = reply("application/connect+proto");
    assert_eq!((stream.status, stream.body.get(..1)), (200, Some(&[2][..])));
    let end = format!(r#"{{"error":{error}}}"#);
    assert_eq!(stream.body.get(5..), Some(end.as_bytes()));
}

#[test]
fn unavailable_redis_hides_the_configured_body() {
    let text =
        CLOSED.replace("problem: true", "body: '{\"over\": true}', content_type: application/json");
    let refusal = away(&text, OnFailure::Gateway).refusal.unwrap();
    assert_eq!(
        (&*refusal.body(b""), refusal.content_type()),
        ("rate limiter unavailable", "text/plain")
    );
}

#[test]
fn unavailable_redis_bans_no_caller() {
    let mut worker = away(CLOSED, OnFailure::Gateway);
    (0..20).for_each(|_| worker.request(&ann()));
    assert!(matches!(worker.refusal.as_ref().unwrap().by.outcome, Outcome::Unavailable(_)));
    let lines = Lines::default();
    worker.engine.flush("ns", &lines);
    assert!(!lines.0.take().iter().any(|line| line.contains("login.ban")));
}

#[test]
fn rule_overrides_what_redis_says_of_failures() {
    let rule = "actor: account, unit: day, rpu: 1, algo: W, scope: global";
    for (of_redis, of_rule, admitted) in [
        (OnFailure::Deny, "", 0),
        (OnFailure::Deny, ", on_failure: allow", 4),
        (OnFailure::Deny, ", on_failure: gateway", 1),
        (OnFailure::Allow, ", on_failure: deny", 0),
        (OnFailure::Allow, ", on_failure: gateway", 1),
        (OnFailure::Gateway, ", on_failure: deny", 0),
        (OnFailure::Gateway, ", on_failure: allow", 4),
        (OnFailure::Gateway, "", 1),
    ] {
        let mut worker = Worker::with(&format!("{rule}{of_rule}"), of_redis);
        worker.request(&ann());
        worker.steps(30, &mut |_, _| None);
        (0..3).for_each(|_| worker.request(&ann()));
        assert_eq!(worker.admitted(), admitted, "{of_redis:?}{of_rule}");
    }
}

/// Only the rule that was checked is reported; `violated-policies` does not name the rule that was not checked.
#[test]
fn unavailable_rule_has_no_item_beside_others() {
    let other = "\n  - {name: other, actor: account, unit: day, rpu: 7, algo: W}";
    let mut worker = away(&format!("{CLOSED}{other}"), OnFailure::Gateway);
    worker.request(&ann());
    let limit = field(&worker.refused, "ratelimit");
    assert_eq!(limit, Some("\"other\";r=7"));
    let policy = field(&worker.refused, "ratelimit-policy");
    assert_eq!(policy, Some("\"other\";q=7;w=86400"));
    assert_eq!(field(&worker.refused, "x-envoy-ratelimited"), None);
    assert!(!worker.refusal.unwrap().body(b"").contains("violated-policies"));
}

/// In shadow a rule admits the request, and its mark names it.
#[test]
fn unavailable_rule_in_shadow_refuses_no_request() {
    let mut worker = away(&format!("shadow: true\n{CLOSED}"), OnFailure::Gateway);
    worker.request(&ann());
    assert_eq!(worker.verdicts, [true, true]);
    let state = worker.state.unwrap();
    assert!(state.starts_with("shadow rule=login ") && !state.contains("remaining"), "{state}");
}
