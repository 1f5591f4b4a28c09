//! Tests of the operator's endpoint that `scenarios/admin.txt` cannot express.

use super::{FakeHost, MILLISECOND, Thread};
use crate::support::redis::decides;
use diana_worker::host::Level;
use kit::fake::{FakeEnvironment, FakeRequest};
use serde_json::{Value, json};

const TOKEN: &str = "a token of 24 characters";

fn with(token: Option<&str>, rules: &str) -> Thread {
    let variables = token.map(|token| ("DIANA_TOKEN".into(), token.into()));
    let environment = FakeEnvironment(variables.into_iter().collect());
    let mut thread = Thread::of(FakeHost { environment, ..FakeHost::default() });
    let admin = "admin: {path: /.diana, token_env: DIANA_TOKEN}";
    assert!(thread.configure(1, &format!("{admin}\n{rules}")), "{:?}", thread.host.lines());
    thread.host.lines();
    thread
}

fn with_token(method: &str, path: &str, token: &str) -> FakeRequest {
    let request = FakeRequest { method: Some(method.into()), ..FakeRequest::get(path) };
    request.header("authorization", format!("Bearer {token}"))
}

/// The status and the body of the reply to a request.
fn answer(thread: &mut Thread, request: FakeRequest) -> (u16, Value) {
    assert!(!thread.ask(1, 90, request), "it goes nowhere");
    reply(thread).expect("it is answered")
}

fn reply(thread: &mut Thread) -> Option<(u16, Value)> {
    let (stream, reply) = thread.host.replies.borrow_mut().pop()?;
    assert_eq!(stream, 90);
    Some((reply.status, serde_json::from_slice(&reply.body).unwrap()))
}

const FLEET: &str = "redis: {cluster: redis, timeout: 20ms}\nlimits: [{Url: /, rules: [{name: g, actor: account, \
                     unit: day, rpu: 9, algo: W, scope: global, ban: {after: 5, within: 1m, for: 5m}}]}]";

/// The reply of Redis about the rule and its ban: four permits remain, one is leased, two are
/// reserved, five are charged, and everything expires in a second.
const USAGE: [i64; 21] = [0, 0, 0, 4, 1, 0, 2, 1_000_000, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn order_completes_after_its_client_leaves() {
    let mut thread = with(Some(TOKEN), FLEET);
    let order = with_token("POST", "/.diana/unban?rule=g&actor.account=ada", TOKEN);
    assert!(!thread.ask(1, 90, order));
    thread.pass(2 * MILLISECOND);
    thread.leave(1, 90);
    thread.answer(1, 0, Some(200), &decides(&USAGE));
    assert!(thread.host.lines()[0].starts_with("admin: unban rule=g key="));
    assert_eq!(reply(&mut thread), None);
}

#[test]
fn at_most_32_orders_are_answered_at_once() {
    let mut thread = with(Some(TOKEN), FLEET);
    for stream in 0..70 {
        let request = with_token("GET", "/.diana/usage?rule=g&actor.account=ada", TOKEN);
        assert!(!thread.ask(1, 100 + stream, request));
    }
    thread.pass(2 * MILLISECOND);
    thread.answer(1, 0, Some(200), &decides(&USAGE.repeat(70)));
    for answered in [32, 64, 70] {
        assert_eq!(thread.host.replies.borrow().len(), answered);
        thread.pass(MILLISECOND);
    }
}

/// Redis identifies a caller by both halves of the key. The second one selects its shard.
#[test]
fn key_finds_the_caller_of_a_global_rule_in_redis() {
    let mut thread = with(Some(TOKEN), FLEET);
    let mut called = |query: &str| -> (String, Value) {
        let path = format!("/.diana/usage?rule=g&{query}");
        assert!(!thread.ask(1, 90, with_token("GET", &path, TOKEN)));
        thread.pass(2 * MILLISECOND);
        let call = thread.host.calls.borrow().len() - 1;
        let body = String::from_utf8_lossy(&thread.host.calls.borrow()[call].1.body).into_owned();
        thread.answer(1, call as u32, Some(200), &decides(&USAGE));
        (body, reply(&mut thread).unwrap().1)
    };
    let (_, named) = called("actor.account=ada");
    let key = named["callers"][0]["key"].as_str().unwrap();
    let (body, seen) = called(&format!("key={}", key.to_uppercase()));
    assert!(body.contains(&format!(":{key}")), "{body}");
    assert_eq!(seen["callers"][0]["key"], json!(key));
    assert_eq!(seen["callers"][0]["used"], named["callers"][0]["used"]);
}

#[test]
fn long_requests_are_read() {
    let rules = "limits: [{Url: /, rules: [{name: d, actor: device, unit: day, rpu: 9, algo: W}]}]";
    let mut thread = with(Some(TOKEN), rules);
    let mut status = |query: &str| {
        let path = format!("/.diana/usage?rule=d&{query}");
        answer(&mut thread, with_token("GET", &path, TOKEN)).0
    };
    assert_eq!(status(&format!("actor.device={}", "x".repeat(60 << 10))), 200);
    let many: String = (0..70).map(|number| format!("&p{number}=1")).collect();
    assert_eq!(status(&many), 400);
}

#[test]
fn missing_or_short_token_grants_no_access() {
    for (token, status, complaints) in [
        (None, 404, 1),
        (Some("fifteen letters"), 404, 1),
        (Some("sixteen letters "), 200, 0),
        (Some(TOKEN), 200, 0),
    ] {
        let mut thread = with(token, "limits: []");
        let given = token.unwrap_or_default();
        assert_eq!(answer(&mut thread, with_token("GET", "/.diana/rules", given)).0, status);
        assert!(thread.configure(2, "admin: {path: /.other, token_env: DIANA_TOKEN}\nlimits: []"));
        let log = thread.host.log.take();
        let errors = log.iter().filter(|(level, _)| *level == Level::Error).count();
        assert_eq!(errors, complaints, "{log:?}");
    }
}
