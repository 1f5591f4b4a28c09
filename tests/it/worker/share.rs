//! The number of gateways in answers of a configuration server.

use super::{MILLISECOND, Thread};
use crate::support::redis::admits;
use diana_policy::time::SECOND;

const POLLS: &str = "remote: {cluster: centre, path: /rules, every: 1s}\nlimits: []";

/// A document with a limit of the fleet.
fn document(rest: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: account, unit: day, rpu: 10, algo: W, scope: global{rest}}}]}}]"
    )
}

/// The server answers the latest call.
fn answer(thread: &mut Thread, body: &str, gateways: u64) {
    let token = thread.host.calls.borrow().len() as u32 - 1;
    thread.answer_with(1, token, Some(200), body.as_bytes(), Some(gateways));
}

/// The requests of a caller that pass until one is refused.
fn admitted(thread: &mut Thread, account: &str) -> usize {
    let mut streams = 1_000 * thread.streams.len() as u32..;
    (0..100).find(|_| !thread.request(1, streams.next().unwrap(), account)).unwrap()
}

#[test]
fn limit_is_divided_by_the_reported_gateways() {
    let mut thread = Thread::with(POLLS);
    thread.pass(MILLISECOND);
    answer(&mut thread, &document(", share: true, near: 50"), 3);
    assert_eq!(admitted(&mut thread, "a"), 4, "with the first answer");
    // Another pod appears, then two go for more than five seconds.
    thread.pass(SECOND);
    answer(&mut thread, &document(", share: true, near: 50"), 4);
    assert_eq!(admitted(&mut thread, "b"), 3);
    for seconds in 0..6 {
        assert_eq!(admitted(&mut thread, &seconds.to_string()), 3);
        thread.pass(SECOND);
        answer(&mut thread, &document(", share: true, near: 50"), 2);
    }
    assert_eq!(admitted(&mut thread, "c"), 5);
    // Above 50 per cent of the part.
    thread.pass(SECOND);
    assert_eq!(thread.host.count_of("diana.ns.rule.r.near"), 2 + 7 * 2 + 3);
    // A rule without `share` has the whole limit.
    answer(&mut thread, &document(""), 2);
    assert_eq!(admitted(&mut thread, "d"), 10);
}

#[test]
fn number_in_the_rule_is_the_least() {
    let mut thread = Thread::with(&document(", share: 5"));
    assert_eq!(admitted(&mut thread, "a"), 2);
    let own = format!("remote: {{cluster: centre, path: /rules}}\n{}", document(", share: 5"));
    let mut thread = Thread::with(&own);
    thread.pass(MILLISECOND);
    answer(&mut thread, &document(", share: 5"), 3);
    assert_eq!(admitted(&mut thread, "a"), 2);
    thread.pass(10 * SECOND);
    answer(&mut thread, &document(", share: 5"), 10);
    assert_eq!(admitted(&mut thread, "b"), 1);
}

/// Redis may know fewer of them.
#[test]
fn reported_gateways_are_the_least_without_redis() {
    let own = format!("redis: {{cluster: redis, timeout: 20ms}}\n{POLLS}");
    let mut thread = Thread::with(&own);
    thread.pass(MILLISECOND);
    answer(&mut thread, &document(""), 3);
    let instance = thread.roots[&1].instance().cloned().unwrap();
    assert_eq!(instance.gateways(), 3, "before a reply of Redis");
    assert!(!thread.request(1, 10, "a"));
    thread.pass(2 * MILLISECOND);
    let token = thread.host.calls.borrow().len() - 1;
    let body = admits(&thread.host.calls.borrow()[token].1);
    thread.answer(1, token as u32, Some(200), &body);
    assert_eq!(instance.gateways(), 3);
}
