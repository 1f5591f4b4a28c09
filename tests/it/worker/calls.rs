//! Requests that wait for Redis.

use super::{MILLISECOND, Thread};
use crate::support::redis::{admits, decides};
use diana_policy::time::SECOND;

const FLEET: &str = "redis: {cluster: redis, timeout: 20ms}\nlimits: [{Url: /, rules: [{actor: account, unit: day, \
                     rpu: 10, algo: W, scope: global}]}]";

/// The roots that made calls since the first `seen` ones.
fn callers(thread: &Thread, seen: usize) -> Vec<u32> {
    thread.host.calls.borrow()[seen..].iter().map(|(root, _)| *root).collect()
}

fn admit(thread: &mut Thread, root: u32, token: u32) {
    let body = admits(&thread.host.calls.borrow()[token as usize].1);
    thread.answer(root, token, Some(200), &body);
}

#[test]
fn request_waits_only_for_its_own_reply() {
    let mut thread = Thread::with(FLEET);
    assert!(!thread.request(1, 10, "ann") && thread.streams[&10].is_open());
    assert!(thread.host.calls.borrow().is_empty(), "calls leave when the root is called");
    thread.pass(2 * MILLISECOND);
    assert_eq!(callers(&thread, 0), [1]);
    thread.answer(1, 77, Some(200), b"");
    assert!(thread.host.resumed.borrow().is_empty(), "that was another one's answer");
    admit(&mut thread, 1, 0);
    assert_eq!(*thread.host.resumed.borrow(), [10]);
    assert!(thread.responds(10).is_some());
    // Redis refuses for an hour.
    assert!(!thread.request(1, 11, "bob"));
    thread.pass(2 * MILLISECOND);
    let refusal = decides(&[-1, 3_600_000_000, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    thread.answer(1, 1, Some(200), &refusal);
    assert_eq!(thread.host.refused(), [11]);
    assert_eq!(*thread.host.resumed.borrow(), [10]);
}

#[test]
fn at_most_32_requests_resume_with_one_reply() {
    let mut thread = Thread::with(FLEET);
    (0..70).for_each(|stream| _ = thread.request(1, 10 + stream, &stream.to_string()));
    thread.pass(2 * MILLISECOND);
    admit(&mut thread, 1, 0);
    let instance = thread.roots[&1].instance().cloned().unwrap();
    assert_eq!((thread.host.resumed.borrow().len(), instance.ready()), (32, 38));
    thread.pass(MILLISECOND);
    assert_eq!(thread.host.resumed.borrow().len(), 64);
    thread.pass(MILLISECOND);
    assert_eq!((thread.host.resumed.borrow().len(), instance.ready()), (70, 0));
}

#[test]
fn departed_request_is_not_resumed() {
    let mut thread = Thread::with(FLEET);
    (10..13).for_each(|stream| _ = thread.request(1, stream, &stream.to_string()));
    thread.leave(1, 11);
    thread.pass(2 * MILLISECOND);
    thread.leave(1, 12);
    admit(&mut thread, 1, 0);
    assert_eq!(*thread.host.resumed.borrow(), [10]);
}

/// Replies to a root that has ended are lost, so the root that lives longest makes the calls.
#[test]
fn calls_are_sent_by_the_latest_root() {
    let mut thread = Thread::with(FLEET);
    assert!(thread.configure(2, FLEET));
    assert!(!thread.request(1, 10, "ann"));
    thread.pass(2 * MILLISECOND);
    assert_eq!(callers(&thread, 0), [2]);
    admit(&mut thread, 2, 0);
    assert_eq!(*thread.host.resumed.borrow(), [10]);
    // The questions of a root that ends are asked again by another one.
    assert!(!thread.request(1, 11, "bob"));
    thread.pass(2 * MILLISECOND);
    assert_eq!(callers(&thread, 1), [2]);
    thread.end(2);
    thread.pass(3 * MILLISECOND);
    assert_eq!(callers(&thread, 2), [1]);
    admit(&mut thread, 1, 2);
    assert_eq!(*thread.host.resumed.borrow(), [10, 11]);
}

#[test]
fn degraded_mode_counts_locally_and_probes() {
    let mut thread = Thread::with(FLEET);
    assert!(!thread.request(1, 10, "ann"));
    thread.pass(2 * MILLISECOND);
    thread.lose(1, 0);
    let instance = thread.roots[&1].instance().cloned().unwrap();
    assert_eq!((instance.unavailable_shards(), instance.gateways()), (1, 1));
    assert_eq!(*thread.host.resumed.borrow(), [10]);
    assert!(thread.host.lines().iter().any(|line| line.contains("is unavailable: ")));
    assert!(thread.request(1, 11, "ann"), "by the gateway's part of the limit");
    thread.pass(SECOND / 10);
    assert_eq!(callers(&thread, 2), [1], "a probe");
    admit(&mut thread, 1, 2);
    thread.pass(SECOND / 20 + MILLISECOND);
    admit(&mut thread, 1, 3);
    assert_eq!((instance.unavailable_shards(), instance.gateways()), (0, 2));
    thread.pass(MILLISECOND);
    assert!(thread.host.lines().iter().any(|line| line.contains("is available again")));
}

/// Two workers on one machine, with any configuration, give callers the same keys.
#[test]
fn workers_hash_callers_with_one_secret() {
    let mut first = Thread::with(FLEET);
    let seed = |thread: &mut Thread| {
        let before = thread.host.calls.borrow().len();
        thread.request(1, 10, "ann");
        thread.pass(2 * MILLISECOND);
        let body = thread.host.calls.borrow()[before].1.body.clone();
        let text = String::from_utf8_lossy(&body).into_owned();
        let place = text.find("$32\r\n").unwrap() + 5;
        text[place..place + 32].to_owned()
    };
    assert_eq!(seed(&mut first), "00000000000000090000000000000007");
    let data = first.host.data.clone();
    let host = super::FakeHost { data: data.clone(), random: 1, ..Default::default() };
    let mut second = Thread::of(host);
    assert!(second.configure(1, FLEET));
    assert_eq!(seed(&mut second), "00000000000000090000000000000007");
}
