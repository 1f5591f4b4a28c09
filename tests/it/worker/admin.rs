//! The operator's path.

mod bad;
mod keys;

use super::{House, MILLISECOND, Thread};
use crate::fleet::redis::decides;
use diana_core::time::SECOND;
use kit::fake::{FakeEnvironment, FakeRequest};
use serde_json::{Value, json};

const TOKEN: &str = "a token of 24 characters";

fn with(token: Option<&str>, rules: &str) -> Thread {
    let variables = token.map(|token| ("DIANA_TOKEN".into(), token.into()));
    let environment = FakeEnvironment(variables.into_iter().collect());
    let mut thread = Thread::of(House { environment, ..House::default() });
    let admin = "admin: {path: /.diana, token_env: DIANA_TOKEN}";
    assert!(thread.configure(1, &format!("{admin}\n{rules}")), "{:?}", thread.host.lines());
    thread.host.lines();
    thread
}

fn bearing(method: &str, path: &str, token: &str) -> FakeRequest {
    let request = FakeRequest { method: Some(method.into()), ..FakeRequest::get(path) };
    request.header("authorization", format!("Bearer {token}"))
}

/// The status and the body that a request is answered with.
fn answer(thread: &mut Thread, request: FakeRequest) -> (u16, Value) {
    assert!(!thread.ask(1, 90, request), "it goes nowhere");
    reply(thread).expect("it is answered")
}

fn reply(thread: &mut Thread) -> Option<(u16, Value)> {
    let (stream, reply) = thread.host.replies.borrow_mut().pop()?;
    assert_eq!(stream, 90);
    Some((reply.status, serde_json::from_str(&reply.body).unwrap()))
}

fn get(thread: &mut Thread, rest: &str) -> Value {
    let (status, body) = answer(thread, bearing("GET", &format!("/.diana{rest}"), TOKEN));
    assert_eq!(status, 200, "{body}");
    body
}

fn post(thread: &mut Thread, rest: &str) -> Value {
    let (status, body) = answer(thread, bearing("POST", &format!("/.diana{rest}"), TOKEN));
    assert_eq!(status, 200, "{body}");
    body
}

fn problem(thread: &mut Thread, method: &str, rest: &str) -> u16 {
    let (status, body) = answer(thread, bearing(method, &format!("/.diana{rest}"), TOKEN));
    assert!(body["error"].is_string(), "{body}");
    status
}

const RULES: &str = "
limits:
  - Url: /
    rules:
      - {name: r, actor: account, unit: day, rpu: 3, algo: W, ban: {after: 2, within: 1m, for: 5m, max: 1h}}
      - {name: l, actor: account, unit: day, rpu: 9, algo: W, scope: local}
      - {name: a, actor: address, unit: day, rpu: 9, algo: TB, hot: {over: 5, per: 10s}}
      - {name: c, actor: [account, device], unit: day, rpu: 9, algo: SW}
      - {name: f, actor: account, in_flight: 5}
      - {name: q, actor: account, unit: second, rpu: 9, algo: LB, absent: share}
";

#[test]
fn usage_is_told_and_lifted() {
    let mut thread = with(Some(TOKEN), RULES);
    let rules = "limits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 3, algo: W, ban: {after: 2, within: 1m, for: 5m, max: 1h}}]}]";
    let mut plain = with(Some(TOKEN), rules);
    for stream in 10..13 {
        assert!(plain.request(1, stream, "ada"));
    }
    let seen = get(&mut plain, "/usage?rule=r&actor.account=ada");
    assert_eq!(
        (&seen["rule"], &seen["scope"], &seen["limit"]),
        (&json!("r"), &json!("gateway"), &json!(3))
    );
    let caller = &seen["callers"][0];
    assert_eq!(
        (&caller["by"], &caller["used"], &caller["remaining"]),
        (&json!(["header"]), &json!(3), &json!(0))
    );
    assert!(caller["until"].as_f64().is_some_and(|until| until > 1.7e9), "{seen}");
    assert_eq!((&caller["banned_until"], &caller["shared"]), (&json!(null), &json!(false)));
    assert!(!plain.request(1, 13, "ada"));
    assert_eq!(plain.host.lines(), [""; 0], "nothing has changed");
    let seen = post(&mut plain, "/reset?rule=r&actor.account=ada");
    assert_eq!(
        (&seen["callers"][0]["used"], &seen["callers"][0]["remaining"]),
        (&json!(0), &json!(3))
    );
    let lines = plain.host.lines();
    let key = seen["callers"][0]["key"].as_str().unwrap();
    assert_eq!(lines, [format!("admin: reset rule=r key={key}")]);
    for stream in 20..23 {
        assert!(plain.request(1, stream, "ada"), "it has all of it again");
    }
    assert!(!plain.request(1, 23, "ada"), "and no more");
    assert!(!plain.request(1, 24, "ada"));
    let seen = get(&mut plain, "/usage?rule=r&actor.account=ada");
    assert!(seen["callers"][0]["banned_until"].is_number(), "{seen}");
    post(&mut plain, "/reset?rule=r&actor.account=ada");
    assert!(!plain.request(1, 25, "ada"), "still banned");
    let seen = post(&mut plain, "/unban?rule=r&actor.account=ada");
    assert_eq!(seen["callers"][0]["banned_until"], json!(null));
    assert!(plain.request(1, 26, "ada"));
    let seen = post(&mut plain, "/ban?rule=r&actor.account=ada&for=5m");
    assert!(seen["callers"][0]["banned_until"].is_number());
    assert!(!plain.request(1, 27, "ada") && plain.request(1, 28, "bob"));
    plain.pass(301 * SECOND);
    assert!(plain.request(1, 29, "ada"));
    // What another scope does, or another kind of rule.
    for (what, rule, status) in [
        ("usage", "l", 409),
        ("reset", "l", 409),
        ("ban", "l", 409),
        ("reset", "f", 409),
        ("unban", "a", 409),
        ("reset", "q", 409),
    ] {
        let method = if what == "usage" { "GET" } else { "POST" };
        let name = if rule == "a" { "actor.address=10.0.0.1" } else { "actor.account=ada" };
        let more = if what == "ban" { "&for=5m" } else { "" };
        let rest = format!("/{what}?rule={rule}&{name}{more}");
        assert_eq!(problem(&mut thread, method, &rest), status, "{rest}");
    }
    let seen = get(&mut thread, "/usage?rule=f&actor.account=ada");
    assert_eq!(
        (&seen["callers"][0]["in_flight"], &seen["callers"][0]["remaining"]),
        (&json!(0), &json!(5))
    );
    let seen = get(&mut thread, "/usage?rule=q&actor.account=");
    assert_eq!(
        seen["callers"][0]["key"],
        json!("00000000000000010000000000000001"),
        "those who share"
    );
}

/// What is reserved for requests under way stays charged, whatever tells in the end what they used.
#[test]
fn a_reset_leaves_what_is_reserved() {
    for algo in ["W", "SW", "TB"] {
        let cost = "{response: {header: x-tokens-used}, reserve: 2, max: 4}";
        let rule =
            format!("{{name: r, actor: account, unit: day, rpu: 5, algo: {algo}, cost: {cost}}}");
        let mut thread = with(Some(TOKEN), &format!("limits: [{{Url: /, rules: [{rule}]}}]"));
        for stream in [10, 11] {
            assert!(thread.request(1, stream, "ada"));
        }
        let seen = post(&mut thread, "/reset?rule=r&actor.account=ada");
        let caller = &seen["callers"][0];
        assert_eq!(
            (&caller["reserved"], &caller["remaining"]),
            (&json!(4), &json!(1)),
            "{algo}: {seen}"
        );
        assert!(!thread.request(1, 12, "ada"), "{algo}");
    }
}

#[test]
fn callers_are_looked_for_under_every_source_of_their_actors() {
    let rules = "limits: [{Url: /, rules: [{name: d, actor: device, unit: day, rpu: 9, algo: W}, \
                 {name: c, actor: [account, device], unit: day, rpu: 9, algo: SW}]}]";
    let mut thread = with(Some(TOKEN), rules);
    let from =
        |account: &str| FakeRequest::get("/").header("x-account-id", account).from("10.1.2.3");
    assert!(thread.ask(1, 10, from("a b&c=%")));
    assert!(thread.ask(1, 11, from("x").header("x-device-id", "10.1.2.3")));
    let seen = get(&mut thread, "/usage?rule=d&actor.device=10.1.2.3");
    let used = |seen: &Value, place: usize| seen["callers"][place]["used"].as_u64().unwrap();
    assert_eq!((used(&seen, 0), used(&seen, 1)), (1, 1), "{seen}");
    assert_eq!(seen["callers"][1]["by"], json!(["client_address"]));
    let rest = "/usage?rule=c&actor.account=a+b%26c%3d%25&actor.device=10.1.2.3";
    let seen = get(&mut thread, rest);
    assert_eq!((used(&seen, 0), used(&seen, 1)), (0, 1), "{seen}");
    assert_eq!(seen["callers"][1]["by"], json!(["header", "client_address"]));
    let seen = get(&mut thread, "/usage?rule=d&actor.device=phone");
    assert_eq!(seen["callers"].as_array().unwrap().len(), 1, "that is no address");
    let long = "x".repeat(60 << 10);
    let seen = get(&mut thread, &format!("/usage?rule=d&actor.device={long}"));
    assert_eq!(used(&seen, 0), 0);
}

#[test]
fn what_is_in_force_and_who_comes_most() {
    let mut thread = with(Some(TOKEN), RULES);
    for stream in 10..13 {
        thread.ask(1, stream, FakeRequest::get("/").from("10.1.2.3"));
    }
    thread.pass(2 * SECOND);
    let rules = get(&mut thread, "/rules");
    assert_eq!((&rules["namespace"], &rules["from"]), (&json!("ns"), &json!("local")));
    assert!(rules["since"].as_f64().is_some_and(|since| since > 1.7e9));
    let rule = rules["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "a").unwrap();
    assert_eq!(
        (&rule["actors"], &rule["scope"], &rule["algo"]),
        (&json!(["address"]), &json!("gateway"), &json!("TB"))
    );
    assert_eq!(
        (&rule["limit"], &rule["per"], &rule["allowed"]),
        (&json!(9), &json!(86400), &json!(3))
    );
    let top = get(&mut thread, "/top?rule=a");
    assert_eq!(top["callers"][0]["requests"], json!(3), "{top}");
    let key = top["callers"][0]["key"].as_str().unwrap();
    let usage = get(&mut thread, &format!("/usage?rule=a&key={key}"));
    assert_eq!(usage["callers"][0]["used"], json!(3), "{top} {usage}");
    assert_eq!(problem(&mut thread, "GET", "/top?rule=r"), 409);
}

const FLEET: &str = "redis: {cluster: redis, timeout: 20ms}\nlimits: [{Url: /, rules: [{name: g, actor: account, \
                     unit: day, rpu: 9, algo: W, scope: global, ban: {after: 5, within: 1m, for: 5m}}]}]";

#[test]
fn of_a_fleet_redis_is_asked() {
    let mut thread = with(Some(TOKEN), FLEET);
    let asks = |thread: &mut Thread, method: &str, rest: &str| {
        let request = bearing(method, &format!("/.diana{rest}?rule=g&actor.account=ada"), TOKEN);
        assert!(!thread.ask(1, 90, request));
        assert!(thread.host.replies.borrow().is_empty(), "it waits");
        thread.pass(2 * MILLISECOND);
        thread.host.calls.borrow().len() as u32 - 1
    };
    let call = asks(&mut thread, "GET", "/usage");
    // The rule: four are left; one is lent, two are reserved, all ends in a second, and five are charged. Then the ban.
    let usage = [0, 0, 0, 4, 1, 0, 2, 1_000_000, 5, 0, 0];
    let body = [&usage[..], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    thread.answer(1, call, Some(200), &decides(&body));
    let (status, seen) = reply(&mut thread).unwrap();
    let caller = &seen["callers"][0];
    assert_eq!(
        (status, &caller["used"], &caller["lent"], &caller["reserved"]),
        (200, &json!(2), &json!(1), &json!(2))
    );
    let call = asks(&mut thread, "POST", "/reset");
    thread.answer(1, call, Some(200), &decides(&body));
    assert_eq!(reply(&mut thread).unwrap().0, 200);
    assert!(thread.host.lines()[0].starts_with("admin: reset rule=g key="));
    // A client that leaves leaves the order as it is.
    let call = asks(&mut thread, "POST", "/unban");
    thread.leave(1, 90);
    thread.answer(1, call, Some(200), &decides(&body));
    assert!(thread.host.lines()[0].starts_with("admin: unban rule=g key="));
    assert_eq!(reply(&mut thread), None);
    let call = asks(&mut thread, "GET", "/usage");
    thread.answer(1, call, Some(503), b"");
    let again = thread.host.replies.borrow()[0].1.headers().any(|it| it == ("retry-after", "1"));
    assert!(again, "it says when to ask again");
    let (status, told) = reply(&mut thread).unwrap();
    let why = told["error"].as_str().unwrap();
    assert!(status == 503 && why.contains("may have been done"), "{status}: {told}");
}

#[test]
fn at_most_32_orders_are_answered_at_once() {
    let mut thread = with(Some(TOKEN), FLEET);
    for stream in 0..70 {
        let request = bearing("GET", "/.diana/usage?rule=g&actor.account=ada", TOKEN);
        assert!(!thread.ask(1, 100 + stream, request));
    }
    thread.pass(2 * MILLISECOND);
    // To each what is told of the rule and of its ban.
    let body = [&[0, 0, 0, 4, 1, 0, 2, 1_000_000, 5, 0, 0][..], &[0; 10]].concat().repeat(70);
    thread.answer(1, 0, Some(200), &decides(&body));
    for answered in [32, 64, 70] {
        assert_eq!(thread.host.replies.borrow().len(), answered);
        thread.pass(MILLISECOND);
    }
}
