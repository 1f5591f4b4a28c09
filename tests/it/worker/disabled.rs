//! A document with `disabled: true`: no rule decides, and usage stays.

use super::{MILLISECOND, Thread};
use crate::support::redis::admits;
use diana_policy::time::SECOND;
use fastrand::Rng;
use kit::fake::FakeRequest;
use kit::host::FakeHost;
use kit::seed;

const DISABLED: &str = "disabled: true\n";

/// One rule of each kind, of any scope of a gateway.
const KINDS: [&str; 8] = [
    "unit: minute, rpu: 5, algo: W",
    "unit: minute, rpu: 5, algo: SW",
    "unit: minute, rpu: 5, algo: TB",
    "unit: second, rpu: 1, algo: LB, max_delay: 2s, max_queue: 9",
    "unit: second, rpu: 1, algo: TB, max_delay: 2s, max_queue: 9",
    "unit: day, rpu: 3, algo: W, quota: {accounts: 1000}",
    "unit: minute, rpu: 3, algo: W, ban: {after: 2, within: 1m, for: 5s}",
    "in_flight: 2",
];

/// Sends a request. Returns what became of it: whether it passed, and how many are refused so far.
fn send(thread: &mut Thread, stream: u32, account: &str) -> (bool, usize) {
    let passes = thread.request(1, stream, account);
    (passes, thread.host.refused().len())
}

/// The oracle is a worker that never receives the requests of the disabled times.
#[test]
fn usage_is_as_if_disabled_requests_had_not_come() {
    for kind in KINDS {
        let scopes = if kind.contains("quota") { &["local"][..] } else { &["local", "gateway"] };
        for scope in scopes {
            let mut rng = Rng::with_seed(seed::next());
            let rule = format!("name: r, actor: account, scope: {scope}, {kind}");
            let text = format!("limits: [{{Url: /, rules: [{{{rule}}}]}}]");
            let (mut other, mut thread) = (Thread::with(&text), Thread::with(&text));
            let (mut stream, mut open, mut refused) = (10, Vec::new(), 0);
            for _ in 0..60 {
                for _ in 0..rng.u32(1..9) {
                    let account = rng.choice(["ann", "bob"]).unwrap();
                    let (wanted, found) =
                        (send(&mut other, stream, account), send(&mut thread, stream, account));
                    assert_eq!(found, wanted, "{rule}");
                    refused = found.1;
                    open.push(stream);
                    stream += 1;
                }
                while rng.bool() && !open.is_empty() {
                    let stream = open.swap_remove(rng.usize(..open.len()));
                    other.leave(1, stream);
                    thread.leave(1, stream);
                }
                if rng.bool() {
                    assert!(other.configure(1, &text));
                    assert!(thread.configure(1, &format!("{DISABLED}{text}")));
                    for _ in 0..rng.u32(0..30) {
                        assert!(thread.request(1, stream, "ann"), "{rule}");
                        thread.leave(1, stream);
                        stream += 1;
                    }
                    let time = rng.u64(..2 * SECOND);
                    other.pass(time);
                    thread.pass(time);
                    assert!(other.configure(1, &text) && thread.configure(1, &text));
                }
                let time = rng.u64(..3 * SECOND);
                other.pass(time);
                thread.pass(time);
            }
            assert!(refused > 9, "{rule}: only {refused} were refused");
        }
    }
}

const LINE: &str = "limits: [{Url: /, rules: [{actor: account, unit: second, rpu: 5, algo: LB, max_delay: 20s, \
                    max_queue: 200}]}]";

#[test]
fn held_requests_go_on_at_once_in_their_order() {
    let mut thread = Thread::with(LINE);
    (10..80).for_each(|stream| _ = thread.request(1, stream, "ann"));
    assert!(!thread.request(1, 80, "bob") || !thread.request(1, 81, "bob"));
    assert!(thread.configure(1, &format!("{DISABLED}{LINE}")));
    thread.leave(1, 20);
    thread.pass(3 * MILLISECOND);
    let mut wanted: Vec<u32> = (11..80).filter(|stream| *stream != 20).collect();
    // The turn of the second caller comes with the first of the other one.
    wanted.insert(1, 81);
    assert_eq!(*thread.host.resumed.borrow(), wanted);
    thread.pass(30 * SECOND);
    assert_eq!(*thread.host.resumed.borrow(), wanted);
    assert_eq!(thread.host.next(), None, "nothing is left to do");
}

#[test]
fn held_requests_of_another_namespace_keep_their_turns() {
    let mut thread = Thread::with(LINE);
    assert!(thread.configure(2, &format!("namespace: other\n{LINE}")));
    assert!(thread.request(2, 10, "ann") && !thread.request(2, 11, "ann"));
    assert!(thread.configure(1, &format!("{DISABLED}{LINE}")));
    thread.pass(SECOND / 10);
    assert_eq!(*thread.host.resumed.borrow(), [0; 0]);
    thread.pass(SECOND / 5);
    assert_eq!(*thread.host.resumed.borrow(), [11]);
}

const FLEET: &str = "redis: {cluster: redis}\nlimits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 9, \
                     algo: W, scope: global}]}]";

/// Sends requests for some time. All of them pass.
fn send_many(thread: &mut Thread) {
    for stream in 100..120 {
        assert!(thread.request(1, stream, "ann"));
        thread.leave(1, stream);
        thread.pass(SECOND);
    }
}

#[test]
fn redis_is_not_called() {
    let mut thread = Thread::with(FLEET);
    assert!(!thread.request(1, 10, "ann"));
    thread.pass(2 * MILLISECOND);
    let body = admits(&thread.host.calls.borrow()[0].1);
    thread.answer(1, 0, Some(200), &body);
    thread.leave(1, 10);
    assert!(thread.configure(1, &format!("{DISABLED}{FLEET}")));
    send_many(&mut thread);
    assert_eq!(thread.host.calls.borrow().len(), 1);
    assert!(thread.configure(1, FLEET));
    assert!(!thread.request(1, 11, "ann"), "it is asked again");
}

/// Another worker has found that Redis is unavailable.
#[test]
fn unavailable_redis_is_not_probed() {
    let mut other = Thread::with(FLEET);
    assert!(!other.request(1, 10, "ann"));
    other.pass(2 * MILLISECOND);
    other.lose(1, 0);
    let data = other.host.data.clone();
    let mut thread = Thread::of(FakeHost { data, random: 5, ..FakeHost::default() });
    thread.host.set(other.host.now.get().mono + SECOND);
    assert!(thread.configure(1, &format!("{DISABLED}{FLEET}")));
    send_many(&mut thread);
    assert_eq!(thread.host.calls.borrow().len(), 0);
    assert_eq!(thread.host.count_of("diana.ns.mode.gateway"), 0, "it counts nothing");
    assert!(thread.configure(1, FLEET));
    assert!(thread.request(1, 11, "ann"), "by its share");
    thread.pass(SECOND);
    assert!(!thread.host.calls.borrow().is_empty(), "it is probed again");
}

#[test]
fn disabled_document_is_seen_in_metrics_and_log() {
    let mut thread = Thread::with(LINE);
    let gauge = |thread: &Thread| thread.host.count_of("diana.ns.disabled");
    assert_eq!(gauge(&thread), 0);
    assert!(thread.configure(1, &format!("{DISABLED}{LINE}")));
    assert_eq!(gauge(&thread), 1);
    let lines = thread.host.lines();
    assert!(lines.iter().any(|line| line.starts_with("`disabled: true`: ")), "{lines:?}");
    assert!(thread.configure(2, LINE));
    thread.end(1);
    assert_eq!(gauge(&thread), 0);
}

/// Headers that only Diana may set are still removed from requests.
#[test]
fn forged_marks_are_still_removed() {
    let text = format!("{DISABLED}mark: x-limited\n{LINE}");
    let thread = Thread::with(&text);
    let instance = thread.roots[&1].instance().unwrap();
    assert_eq!(instance.marks().iter().map(|name| &**name).collect::<Vec<_>>(), ["x-limited"]);
    assert!(!instance.reads_headers());
}

#[test]
fn exempt_and_addressless_requests_are_not_counted() {
    let rules = "{actor: address, unit: second, rpu: 1}";
    let text = format!(
        "{DISABLED}except: {{addresses: [10.0.0.0/8]}}\nlimits: [{{Url: /, rules: [{rules}]}}]"
    );
    let mut thread = Thread::with(&text);
    assert!(thread.ask(1, 10, FakeRequest::get("/")));
    thread.pass(2 * SECOND);
    let counts = thread.host.counts.borrow();
    assert!(!counts.keys().any(|name| name.ends_with("exempt") || name.ends_with("_missing")));
}
