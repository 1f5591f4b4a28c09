//! Callers that an operator names by the key in the access log, so that no token stands in the query.

use diana_worker::host::Level;
use serde_json::{Value, json};

use super::{FLEET, MILLISECOND, TOKEN, Thread, answer, bearing, get, post, problem, with};
use crate::fleet::redis::decides;

const RULES: &str = "
limits:
  - Url: /
    rules:
      - {name: r, actor: account, unit: day, rpu: 3, algo: W, ban: {after: 9, within: 1m, for: 5m}}
";

/// The key in the filter state of the last refusal, which is also its line in the log.
fn logged_key(thread: &Thread) -> String {
    let state = thread.host.refusal.take().expect("a refusal").by.state();
    let (_, key) = state.split_once(" key=").unwrap();
    key.to_owned()
}

/// One of a caller that was admitted three times and refused once.
fn used_up() -> (Thread, String) {
    let mut thread = with(Some(TOKEN), RULES);
    for stream in 10..13 {
        assert!(thread.request(1, stream, "ada"));
    }
    assert!(!thread.request(1, 13, "ada"));
    let key = logged_key(&thread);
    (thread, key)
}

#[test]
fn logged_key_finds_the_usage_of_its_caller() {
    let (mut thread, key) = used_up();
    let mut named = get(&mut thread, "/usage?rule=r&actor.account=ada");
    named["callers"][0]["by"] = json!([]);
    assert_eq!(
        (&named["callers"][0]["key"], &named["callers"][0]["used"]),
        (&json!(key), &json!(3))
    );
    assert_eq!(get(&mut thread, &format!("/usage?rule=r&key={key}")), named);
    let upper = key.to_uppercase();
    assert_eq!(get(&mut thread, &format!("/usage?rule=r&key={upper}")), named);
}

#[test]
fn logged_key_resets_bans_and_unbans_its_caller() {
    let (mut thread, key) = used_up();
    post(&mut thread, &format!("/reset?rule=r&key={key}"));
    assert_eq!(thread.host.lines(), [format!("admin: reset rule=r key={key}")]);
    assert!(thread.request(1, 14, "ada"));
    post(&mut thread, &format!("/ban?rule=r&key={key}&for=5m"));
    assert!(!thread.request(1, 15, "ada"));
    assert!(thread.request(1, 16, "bob"));
    post(&mut thread, &format!("/unban?rule=r&key={key}"));
    assert!(thread.request(1, 17, "ada"));
}

#[test]
fn key_of_a_rule_for_all_is_its_only_one() {
    let rules = "limits: [{Url: /, rules: [{name: r, actor: all, unit: day, rpu: 3, algo: W}]}]";
    let mut thread = with(Some(TOKEN), rules);
    assert!(thread.request(1, 10, "ada"));
    let seen = get(&mut thread, "/usage?rule=r&key=00000000000000000000000000000000");
    assert_eq!(seen["callers"][0]["used"], json!(1));
    let other = "/usage?rule=r&key=26de6e73a1b2c3d426de6e73a1b2c3d4";
    assert_eq!(problem(&mut thread, "GET", other), 400);
}

#[test]
fn key_in_a_query_needs_the_token() {
    let (mut thread, key) = used_up();
    let path = format!("/.diana/reset?rule=r&key={key}");
    let wrong = bearing("POST", &path, "another token of 24 bytes");
    assert_eq!(answer(&mut thread, wrong), (404, json!({"error": "not found"})));
    assert!(!thread.request(1, 14, "ada"));
    assert!(thread.host.log.borrow().iter().all(|(level, _)| *level != Level::Warn));
}

/// Redis names a caller by both halves of the key, and its part is chosen by the second one.
#[test]
fn key_finds_the_caller_of_a_global_rule_in_redis() {
    let mut thread = with(Some(TOKEN), FLEET);
    let mut called = |query: &str| -> (String, Value) {
        let path = format!("/.diana/usage?rule=g&{query}");
        assert!(!thread.ask(1, 90, bearing("GET", &path, TOKEN)));
        thread.pass(2 * MILLISECOND);
        let call = thread.host.calls.borrow().len() - 1;
        let body = String::from_utf8_lossy(&thread.host.calls.borrow()[call].1.body).into_owned();
        let usage = [0, 0, 0, 4, 1, 0, 2, 1_000_000, 5, 0, 0];
        let found = [&usage[..], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        thread.answer(1, call as u32, Some(200), &decides(&found));
        (body, super::reply(&mut thread).unwrap().1)
    };
    let (_, named) = called("actor.account=ada");
    let key = named["callers"][0]["key"].as_str().unwrap();
    let (body, seen) = called(&format!("key={key}"));
    assert!(body.contains(&format!(":{key}")), "{body}");
    assert_eq!(seen["callers"][0]["key"], json!(key));
    assert_eq!(seen["callers"][0]["used"], named["callers"][0]["used"]);
}
