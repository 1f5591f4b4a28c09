//! Instances without references, and the work that they leave to others.

use std::rc::{Rc, Weak};

use super::{FakeHost, MILLISECOND, Thread};
use crate::support::redis::{admits, decides};
use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use diana_worker::remote::FIRST_READ_INTERVAL;
use diana_worker::{Instance, Stream};
use kit::fake::FakeRequest;
use kit::model::redis::Redis;

const FLEET: &str = "redis: {cluster: redis, timeout: 20ms}\nlimits: [{Url: /, rules: [{name: r, actor: account, unit: \
                     day, rpu: 100, algo: W, scope: global}]}]";

/// A worker with a lease of a caller's permits.
fn with_lease() -> Thread {
    let mut thread = Thread::with(FLEET);
    grant_lease(&mut thread, 1);
    thread
}

/// Redis leases permits of a busy caller to a worker. Its latest root makes the call.
fn grant_lease(thread: &mut Thread, latest: u32) {
    (0..20).for_each(|stream| assert!(!thread.request(1, 100 + stream, "ann")));
    thread.pass(2 * MILLISECOND);
    let token = thread.host.calls.borrow().len() - 1;
    let mut body = [0, 0, 0, 50, 1, 7, 0, 3, 0, 0, 0].repeat(20);
    // The eighth request makes its caller busy, so that it asks for a block.
    body[7 * 11..8 * 11].copy_from_slice(&[0, 0, 0, 50, 1, 7, 20, 3, 0, 100_000, 0]);
    thread.answer(latest, token as u32, Some(200), &decides(&body));
    assert!(thread.request(1, 11, "ann"), "it has a block");
    thread.streams.clear();
}

fn weak(thread: &Thread, root: u32) -> Weak<Instance> {
    Rc::downgrade(thread.roots[&root].instance().unwrap())
}

/// It lives until its work is done, and no longer.
#[test]
fn ended_instance_returns_its_leases_first() {
    let mut thread = with_lease();
    let old = weak(&thread, 1);
    assert!(thread.configure(1, "limits: []"));
    assert!(old.upgrade().is_some());
    thread.pass(2 * MILLISECOND);
    assert_eq!(thread.host.calls.borrow().len(), 2, "the block goes back");
    let body = admits(&thread.host.calls.borrow()[1].1);
    thread.answer(1, 1, Some(200), &body);
    assert!(old.upgrade().is_none());
}

/// Another root does it instead.
#[test]
fn another_root_returns_leases_of_an_ended_one() {
    let mut thread = with_lease();
    let old = weak(&thread, 1);
    assert!(thread.configure(2, "limits: []"));
    thread.end(1);
    assert!(old.upgrade().is_some());
    thread.pass(2 * MILLISECOND);
    assert_eq!(thread.host.calls.borrow().len(), 2, "the block goes back");
}

/// Remote rules received by another worker are applied at the next poll, and the latest root does
/// the remaining work at once.
#[test]
fn replaced_remote_rules_return_leases_at_once() {
    let centre = format!("{FLEET}\nremote: {{cluster: centre, path: /rules}}");
    let mut other = Thread::with(&centre);
    other.tick(1);
    let data = other.host.data.clone();
    let mut thread = Thread::of(FakeHost { data, random: 5, ..FakeHost::default() });
    assert!(thread.configure(1, &centre));
    thread.tick(1);
    assert!(thread.configure(2, "namespace: other\nlimits: []"));
    other.answer(1, 0, Some(200), b"limits: []");
    thread.pass(FIRST_READ_INTERVAL - 5 * MILLISECOND);
    grant_lease(&mut thread, 2);
    let before = thread.host.calls.borrow().len();
    thread.pass(6 * MILLISECOND);
    let calls = thread.host.calls.borrow();
    let [(root, _)] = &calls[before..] else { panic!("it stays, with {} calls", calls.len()) };
    assert_eq!(*root, 2);
}

/// No root is left to be called for the work.
#[test]
fn last_root_drops_unused_instances() {
    let mut thread = with_lease();
    let old = weak(&thread, 1);
    thread.end(1);
    assert!(old.upgrade().is_none());
}

/// A stream may live longer than its root.
#[test]
fn pending_request_resumes_with_the_next_root() {
    let mut thread = with_lease();
    assert!(!thread.request(1, 12, "bob"));
    let old = weak(&thread, 1);
    thread.end(1);
    assert!(old.upgrade().is_some(), "the stream has it");
    assert!(thread.configure(2, "limits: []"));
    thread.pass(SECOND / 10);
    let calls = thread.host.calls.borrow().len();
    assert!(calls > 1, "it is asked for");
    thread.pass(SECOND);
    assert_eq!(thread.host.resumed.borrow().last(), Some(&12));
}

/// A stream may use it once more after its root has closed it.
#[test]
fn reactivated_instance_closes_after_its_last_stream() {
    let mut thread = Thread::with(
        "limits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 5, scope: local}]}]",
    );
    let mut stream = Stream::new(thread.roots[&1].instance().cloned().unwrap(), 40);
    assert!(thread.configure(1, "limits: []"));
    let request = FakeRequest::get("/").header("x-account-id", "ann");
    thread.host.begin(1);
    let step = stream.request(&request, &thread.worker, &thread.host);
    assert!(thread.host.take(40, step));
    thread.pass(SECOND);
    let keys = |thread: &Thread| thread.host.count_of("diana.ns.rule.r.keys");
    assert_eq!(keys(&thread), 1);
    drop(stream);
    thread.tick(1);
    assert_eq!(keys(&thread), 0, "at once");
}

/// A current instance is not closed without requests.
#[test]
fn current_instance_keeps_its_callers() {
    let mut thread = Thread::with(
        "limits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 9, scope: local, \
         hot: {over: 2, per: 10s}}]}]",
    );
    (10..15).for_each(|stream| assert!(thread.request(1, stream, "ann")));
    thread.pass(60 * SECOND);
    assert_eq!(thread.host.next(), None);
    assert_eq!(thread.host.count_of("diana.ns.rule.r.keys"), 1);
}

/// A rule that ends twice is cleared once, and data of other rules remains.
#[test]
fn rules_that_end_twice_are_cleared_once() {
    let text = |names: &[&str]| {
        let rule = |name: &&str| {
            format!(
                "{{name: {name}, actor: account, unit: minute, rpu: 5, algo: W, scope: gateway}}"
            )
        };
        let rules: Vec<String> = names.iter().map(rule).collect();
        format!("limits: [{{Url: /, rules: [{}]}}]", rules.join(", "))
    };
    // An empty slot has a head of 32 bytes.
    let full = |thread: &Thread| {
        let data = &thread.host.data;
        let names = data.keys().into_iter().filter(|name| name.starts_with("diana/2/"));
        names.filter(|name| data.get(name).is_some_and(|(value, _)| value.len() > 32)).count()
    };
    let mut thread = Thread::with(&text(&["r", "s"]));
    (10..30).for_each(|stream| assert!(thread.request(1, stream, &stream.to_string())));
    thread.streams.clear();
    assert!(thread.configure(1, "limits: []"));
    thread.pass(SECOND);
    assert!(thread.configure(1, &text(&["r"])));
    assert!(thread.request(1, 30, "ann"));
    thread.streams.clear();
    assert!(thread.configure(1, "limits: []"));
    assert!(full(&thread) > 30);
    thread.pass(200 * SECOND);
    assert_eq!(full(&thread), 0);
}

const SETTLED: &str = "redis: {cluster: redis, timeout: 20ms}\nlimits: [{Url: /, rules: [{name: r, actor: account, unit: \
                       day, rpu: 100000, algo: W, scope: global, cost: {response: {header: x-used}, reserve: 5, max: 9}}]}]";

/// Redis replies to all new calls.
fn serve(thread: &mut Thread, redis: &mut Redis, done: &mut usize) {
    loop {
        let Some((root, call)) = thread.host.calls.borrow().get(*done).cloned() else { return };
        let body = redis.answer(&call.body, thread.host.now.get().mono);
        if thread.roots.contains_key(&root) {
            thread.answer(root, *done as u32, Some(200), &body);
        }
        *done += 1;
    }
}

/// Successive instances hand all their settlements to the latest one while Redis is unavailable,
/// and none are lost.
#[test]
fn latest_instance_has_all_settlements() {
    const MANY: u32 = 100;
    let (mut thread, mut redis, mut done) = (Thread::new(), Redis::default(), 0);
    let mut all = Vec::new();
    for root in 1..=MANY {
        assert!(thread.configure(root, &format!("{SETTLED}\n# {root}")));
        thread.request(root, 1000 + root, "ann");
        for _ in 0..4 {
            thread.pass(2 * MILLISECOND);
            serve(&mut thread, &mut redis, &mut done);
        }
        all.push(weak(&thread, root));
    }
    // Redis does not reply any more.
    for root in 1..MANY {
        assert!(thread.host.resumed.borrow().contains(&(1000 + root)), "{root}");
        thread.leave(root, 1000 + root);
        thread.end(root);
        thread.pass(10 * MILLISECOND);
    }
    thread.pass(3 * SECOND);
    let kept = all.iter().filter(|instance| instance.upgrade().is_some()).count();
    assert_eq!(kept, 1, "only the last one waits for Redis");
    done = thread.host.calls.borrow().len();
    for _ in 0..1000 {
        thread.pass(10 * MILLISECOND);
        serve(&mut thread, &mut redis, &mut done);
    }
    // One more request reads the remaining permits.
    thread.request(MANY, 5000, "ann");
    thread.pass(2 * MILLISECOND);
    let call = thread.host.calls.borrow()[done].1.clone();
    let body = redis.answer(&call.body, thread.host.now.get().mono);
    let used = u64::from(MANY - 1) * 9 + 5 + 5;
    let left = format!(":{}\r\n", 100_000 - used);
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(body.contains(&left), "{used} are used: {body}");
}

/// Slots are renewed as long as one of its requests is open, and no longer.
#[test]
fn replaced_instance_keeps_in_flight_slots() {
    let text = FLEET.replace("unit: day, rpu: 100, algo: W", "in_flight: 1");
    let (mut thread, mut redis, mut done) = (Thread::with(&text), Redis::default(), 0);
    let mut pass = |thread: &mut Thread, seconds: u64| {
        for _ in 0..seconds * 100 {
            thread.pass(10 * MILLISECOND);
            serve(thread, &mut redis, &mut done);
        }
    };
    thread.request(1, 10, "ann");
    pass(&mut thread, 1);
    assert_eq!(*thread.host.resumed.borrow(), [10]);
    let old = weak(&thread, 1);
    assert!(thread.configure(1, &format!("{text}\n# once more")));
    pass(&mut thread, 10);
    thread.request(1, 11, "ann");
    pass(&mut thread, 1);
    assert_eq!(thread.host.refused(), [11], "the place is taken");
    thread.leave(1, 10);
    pass(&mut thread, 3);
    assert!(old.upgrade().is_none(), "nothing is left of it");
    thread.request(1, 12, "ann");
    pass(&mut thread, 1);
    assert_eq!(*thread.host.resumed.borrow(), [10, 12], "the place is free");
}

/// An open cost is settled at the end of its request, and needs no report until then.
#[test]
fn replaced_instance_is_idle_while_costs_are_open() {
    let text = "limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 100, algo: W, scope: gateway, \
                cost: {response: {header: x-used}, reserve: 5, max: 9}}]}]";
    let mut thread = Thread::with(text);
    assert!(thread.request(1, 10, "ann"));
    let old = weak(&thread, 1);
    assert!(thread.configure(1, "limits: []"));
    thread.pass(SECOND);
    assert!(old.upgrade().is_some() && thread.host.next().is_none(), "its stream has it");
    assert!(thread.configure(1, "limits: []\n# again"));
    assert_eq!(thread.host.next(), None, "others come, and it rests");
}

/// The number of the host's calls in this number of seconds.
fn calls(thread: &mut Thread, seconds: u64) -> usize {
    let end = thread.host.now.get().mono + seconds * SECOND;
    let mut calls = 0;
    while let Some((fires, root)) = thread.host.next().filter(|(fires, _)| *fires <= end) {
        thread.host.set(fires);
        thread.tick(root);
        calls += 1;
        assert!(calls < 1000, "it never rests");
    }
    calls
}

/// The renewal of in-flight slots has its own interval.
#[test]
fn replaced_instance_has_no_extra_calls() {
    let text = "limits: [{Url: /, rules: [{actor: account, in_flight: 1, scope: gateway}]}]";
    let mut thread = Thread::with(text);
    assert!(thread.request(1, 10, "ann"));
    assert!(thread.configure(1, "limits: []"));
    assert!((10..=100).contains(&calls(&mut thread, 5)));
    // No request is open any more.
    thread.leave(1, 10);
    thread.pass(5 * SECOND);
    assert_eq!(calls(&mut thread, 5), 0);
}
