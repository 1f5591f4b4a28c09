//! The answer to a refused request, and what an accepted one must not show.

use crate::harness::{Clock, Envoy, Gateway, Response};

/// One path of its own for each answer.
fn answers() -> Envoy {
    Gateway::with(
        r#"
limits:
  - Url: /bucket
    rules: [{name: bucket, actor: all, unit: minute, rpu: 2, burst: 1, scope: local}]
  - Url: /window
    rules: [{name: window, actor: all, unit: day, rpu: 1, algo: W, scope: local}]
  - Url: /sliding
    rules: [{name: sliding, actor: all, unit: hour, rpu: 1, algo: SW, scope: local}]
  - Url: /leaky
    rules: [{name: leaky, actor: all, unit: hour, rpu: 4000, algo: LB, max_queue: 0, scope: local}]
  - Url: /never
    rules: [{name: never, actor: all, unit: second, rpu: 0, scope: local}]
  - Url: /hidden
    rules:
      - {name: hidden, actor: all, unit: hour, rpu: 1, scope: local, expose: false}
      - {name: shown, actor: all, unit: hour, rpu: 5, scope: local}
  - Url: /own
    response: {status: 429, body: "slow down", content_type: text/x-plain, headers: {x-help: "ask us"}}
    rules: [{name: own, actor: all, unit: hour, rpu: 0, scope: local}]
time_zone: "+08:00"
"#,
    )
    .start_shared()
}

/// Sends requests until one is refused, since a window may end between two.
#[track_caller]
fn refusal(envoy: &Envoy, path: &str) -> Response {
    let refused = (0..4).map(|_| envoy.get(path, &[])).find(|answer| answer.status != 200);
    refused.expect("one of four is refused")
}

fn retry_after(answer: &Response) -> u64 {
    answer.header("retry-after").expect("it has retry-after").parse().unwrap()
}

#[test]
fn refused() {
    let envoy = answers();
    let refused = refusal(&envoy, "/bucket");
    assert_eq!(refused.status, 503);
    assert!(refused.refused(), "{refused:?}");
    assert!(!refused.body.is_empty() && refused.body.len() < 200, "{refused:?}");
    // A token comes each 30 s, and one has been taken.
    let wait = retry_after(&refused);
    assert!((1..=30).contains(&wait), "{refused:?}");
    assert_eq!(refused.header("ratelimit-policy"), Some(r#""bucket";q=1;w=30"#));
    assert_eq!(refused.header("ratelimit"), Some(&*format!(r#""bucket";r=0;t={wait}"#)));
}

#[test]
fn each_algorithm_tells_its_policy() {
    let envoy = answers();
    for (path, policy, longest) in [
        ("/window", r#""window";q=1;w=86400"#, 86_400),
        ("/sliding", r#""sliding";q=1;w=3960"#, 3_600 + 360),
        ("/leaky", r#""leaky";q=4000;w=3600"#, 1),
    ] {
        let refused = refusal(&envoy, path);
        assert_eq!(refused.header("ratelimit-policy"), Some(policy));
        assert!((1..=longest).contains(&retry_after(&refused)), "{refused:?}");
    }
}

#[test]
fn a_day_ends_at_midnight_of_its_time_zone() {
    let envoy = answers();
    let clock = Clock::new();
    let to_midnight = || 86_400 - (clock.now() / 1_000_000 + 8 * 3_600) % 86_400;
    let longest = to_midnight();
    let wait = retry_after(&refusal(&envoy, "/window"));
    let shortest = to_midnight();
    assert!((shortest..=longest).contains(&wait), "{wait} s, not {shortest} to {longest} s");
}

#[test]
fn nothing_is_promised_where_nothing_ever_fits() {
    let envoy = answers();
    let refused = refusal(&envoy, "/never");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), None);
}

#[test]
fn a_hidden_rule_shows_in_no_header() {
    let envoy = answers();
    let refused = refusal(&envoy, "/hidden");
    for name in ["ratelimit-policy", "ratelimit"] {
        let value = refused.header(name).unwrap();
        assert!(value.starts_with(r#""shown";"#) && !value.contains("hidden"), "{name}: {value}");
    }
}

#[test]
fn configured_response() {
    let envoy = answers();
    let refused = refusal(&envoy, "/own");
    assert_eq!((refused.status, &*refused.body), (429, "slow down"));
    assert_eq!(refused.header("x-help"), Some("ask us"));
    assert_eq!(refused.header("content-type"), Some("text/x-plain"));
    assert!(refused.refused());
}

#[test]
fn grpc_callers_are_told_in_their_language() {
    let envoy = answers();
    for kind in ["application/grpc", "application/grpc+proto"] {
        let refused = envoy.get("/never", &[("content-type", kind), ("te", "trailers")]);
        assert_eq!(refused.status, 200);
        assert_eq!(refused.header("grpc-status"), Some("8"), "{refused:?}");
        assert!(refused.refused());
    }
    // Looks similar, is not gRPC.
    assert_eq!(envoy.get("/never", &[("content-type", "application/grpcx")]).status, 503);
}

/// Envoy has no such cluster, so Redis is unavailable to every request.
#[test]
fn unavailable_redis_is_no_exceeded_limit() {
    let rules = "
redis: {cluster: nowhere}
response: {status: 429}
limits:
- {Url: /, rules: [{name: r, actor: all, unit: hour, rpu: 5, scope: global, on_failure: deny}]}
";
    let envoy = Gateway::with(rules).start_shared();
    let refused = envoy.get("/", &[]);
    assert_eq!((refused.status, retry_after(&refused)), (503, 1));
    assert_eq!(&*refused.body, "rate limiter unavailable");
    for name in ["x-envoy-ratelimited", "ratelimit-policy", "ratelimit"] {
        assert_eq!(refused.header(name), None, "{name}");
    }
    let grpc = envoy.get("/", &[("content-type", "application/grpc"), ("te", "trailers")]);
    assert_eq!((grpc.status, grpc.header("grpc-status")), (200, Some("14")), "{grpc:?}");
    assert_eq!(retry_after(&grpc), 1);
}

#[test]
fn accepted_requests_show_nothing() {
    let envoy = answers();
    let accepted = envoy.get("/bucket", &[]);
    assert_eq!((accepted.status, &*accepted.body), (200, "upstream\n"));
    for name in ["retry-after", "x-envoy-ratelimited", "ratelimit-policy", "ratelimit"] {
        assert_eq!(accepted.header(name), None, "{name}");
    }
}
