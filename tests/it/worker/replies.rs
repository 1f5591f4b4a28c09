//! Reports about admitted requests, and remote rules.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use super::{MILLISECOND, Thread};
use crate::support::redis::decides;
use diana_policy::headers::Headers;
use diana_policy::key::Key;
use diana_policy::port::{Property, Pseudo, Request, Values};
use diana_policy::time::SECOND;
use kit::ending::FakeEnding;

fn fields(thread: &mut Thread, stream: u32) -> Headers {
    thread.responds(stream).unwrap_or_default()
}

/// At once, after it was held, and after it waited for Redis.
#[test]
fn response_gets_headers_and_log_a_line() {
    let assert_reported = |thread: &mut Thread, stream: u32| {
        let fields = fields(thread, stream);
        assert!(fields.get("ratelimit").unwrap().contains("r="), "{fields:?}");
        assert_eq!(thread.host.states.take().len(), 1);
        assert!(self::fields(thread, stream).is_empty(), "once");
    };
    let rule = |rule: &str| {
        format!(
            "accepted: {{headers: true, filter_state: true}}\nredis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{{actor: account, {rule}}}]}}]"
        )
    };
    let mut thread = Thread::with(&rule("unit: minute, rpu: 5, algo: W, scope: local"));
    assert!(thread.request(1, 10, "ann"));
    assert_reported(&mut thread, 10);
    let mut thread = Thread::with(&rule("unit: second, rpu: 100, algo: LB, scope: local"));
    (10..12).for_each(|stream| _ = thread.request(1, stream, "ann"));
    thread.host.states.take();
    thread.pass(SECOND / 50);
    assert_eq!(*thread.host.resumed.borrow(), [11]);
    assert!(!fields(&mut thread, 11).is_empty());
    let mut thread = Thread::with(&rule("unit: day, rpu: 5, algo: W, scope: global"));
    thread.request(1, 10, "ann");
    thread.pass(2 * MILLISECOND);
    let body = decides(&[0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0]);
    thread.answer(1, 0, Some(200), &body);
    assert_reported(&mut thread, 10);
}

/// Of another filter in the chain, or of the upstream.
#[test]
fn present_limits_of_a_response_stay_alone() {
    let rules = "limits: [{Url: /, rules: [{name: r, actor: account, unit: minute, rpu: 5, algo: W, scope: local}]}]";
    let accepted = "accepted: {headers: true}";
    let added = |fields: &str, present: &[(&str, &str)]| {
        let response = format!("response: {{fields: {fields}}}");
        let mut thread = Thread::with(&format!("{accepted}\n{response}\n{rules}"));
        assert!(thread.request(1, 10, "ann"));
        let ending = present
            .iter()
            .fold(FakeEnding::answered(200), |ending, (name, value)| ending.header(name, value));
        let stream = thread.streams.get_mut(&10).unwrap();
        let fields = stream.response(&ending, &thread.worker, &thread.host).unwrap();
        fields.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    let limits = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
    let others = [("ratelimit", "\"a\";r=1"), ("x-ratelimit-limit-tokens", "9")];
    assert_eq!(added("x-ratelimit", &others), limits);
    for name in limits {
        assert_eq!(added("x-ratelimit", &[(name, "")]), [""; 0], "{name}");
        assert_eq!(added("ietf", &[(name, "1")]), ["ratelimit-policy", "ratelimit"], "{name}");
    }
    // A list of items, to which others may be added.
    assert_eq!(added("ietf", &others), ["ratelimit-policy", "ratelimit"]);
}

/// A call that no rule knows a caller of, with a count of the reads of its address.
struct Anonymous {
    address: String,
    reads: Rc<Cell<u32>>,
}

impl Request for Anonymous {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        match which {
            Pseudo::Path => Some(Cow::Borrowed(b"/")),
            Pseudo::Method => Some(Cow::Borrowed(b"POST")),
            Pseudo::Authority => None,
        }
    }

    fn header(&self, name: &str) -> Values<'_> {
        if name == "content-type" { Values::One(b"application/grpc") } else { Values::None }
    }

    fn client(&self) -> Option<IpAddr> {
        self.reads.set(self.reads.get() + 1);
        self.address.parse().ok()
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}

/// The milliseconds after which a call that the only rule refuses may be retried, with this jitter,
/// and the number of reads of the address.
fn retry(rule: &str, most: &str, address: String) -> (u64, u32) {
    let mut thread = Thread::with(&format!(
        "redis: {{cluster: redis}}\nresponse: {{jitter: {most}}}\n\
         limits: [{{Url: /, rules: [{{actor: all, unit: day, {rule}}}]}}]"
    ));
    let reads = Rc::new(Cell::new(0));
    let request = || Anonymous { address: address.clone(), reads: reads.clone() };
    if thread.ask(1, 10, request()) {
        assert!(!thread.ask(1, 11, request()));
    } else {
        thread.pass(2 * MILLISECOND);
        let refusal = decides(&[-1, 3_600_000_000, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        thread.answer(1, 0, Some(200), &refusal);
    }
    let (_, reply) = thread.host.replies.borrow_mut().pop().expect("it is refused");
    let pushback = reply.headers.get("grpc-retry-pushback-ms").expect("it may be retried");
    (pushback.parse().unwrap(), reads.get())
}

/// At once, and after it waited for Redis.
#[test]
fn jitter_without_a_known_caller_follows_the_address() {
    let v4 = |number: u32| Ipv4Addr::from_bits(number).to_string();
    let v6 = |number: u32| Ipv6Addr::from_bits(u128::from(number) << 64).to_string();
    for rule in ["rpu: 1, algo: W, scope: local", "rpu: 9, algo: W, scope: global"] {
        for address in [&v4 as &dyn Fn(u32) -> String, &v6] {
            let delays = (0..300).map(|number| retry(rule, "100s", address(number)));
            let (delays, reads): (BTreeSet<u64>, Vec<u32>) = delays.unzip();
            assert!(delays.len() > 290, "{rule}: {delays:?}");
            assert_eq!(reads, [1; 300], "{rule}");
            assert_eq!(retry(rule, "100s", address(7)), retry(rule, "100s", address(7)));
        }
        let (without, reads) = retry(rule, "0s", v4(7));
        assert_eq!((retry(rule, "0s", v4(8)).0, reads), (without, 0), "{rule}");
        // An internal listener has none.
        assert_eq!(retry(rule, "100s", String::new()), retry(rule, "100s", String::new()));
    }
}

#[test]
fn instance_reports_needed_headers() {
    let rules = |rule: &str| {
        format!("limits: [{{Url: /, rules: [{{unit: day, rpu: 9, scope: local, {rule}}}]}}]")
    };
    let thread = Thread::with(&rules("actor: account, hot: {over: 1, per: 10s, header: x-hot}"));
    let instance = thread.roots[&1].instance().cloned().unwrap();
    assert_eq!((instance.root(), instance.reads_headers()), (1, true));
    assert_eq!(instance.marks().iter().map(|mark| &**mark).collect::<Vec<_>>(), ["x-hot"]);
    let mut thread = Thread::new();
    assert!(thread.configure(5, &rules("actor: all")));
    let instance = thread.roots[&5].instance().cloned().unwrap();
    assert_eq!(instance.root(), 5);
    assert!(!instance.reads_headers() && instance.marks().is_empty());
    let thread = Thread::with(&rules("actor: all, cost: {header: x-cost, max: 5}"));
    assert!(thread.roots[&1].instance().unwrap().reads_headers());
}

#[test]
fn degraded_mode_is_reported() {
    let mut thread = Thread::with(
        "redis: {cluster: redis}\nlimits: [{Url: /, rules: [{actor: account, unit: day, rpu: 9, scope: global}]}]",
    );
    assert!(thread.configure(2, "limits: []"));
    let instance = thread.roots[&1].instance().cloned().unwrap();
    assert!(!instance.is_degraded(Key::ALL));
    thread.request(1, 10, "ann");
    // Its calls are made by the latest root.
    thread.tick(1);
    assert!(thread.host.calls.borrow().is_empty());
    thread.pass(2 * MILLISECOND);
    thread.lose(2, 0);
    assert!(instance.is_degraded(Key::ALL));
    thread.pass(SECOND);
    assert!(thread.host.calls.borrow().len() > 1);
}

const CENTRE: &str = "limits: [{Url: /, rules: [{name: own, actor: account, unit: day, rpu: 1, scope: local}]}]\n\
                      remote: {cluster: centre, path: /rules}";

#[test]
fn remote_rules_are_applied() {
    let mut thread = Thread::with(CENTRE);
    thread.pass(2 * SECOND);
    assert_eq!(thread.host.calls.borrow().len(), 1);
    assert_eq!(thread.host.calls.borrow()[0].1.destination.name(), "centre");
    assert!(thread.request(1, 10, "ann") && !thread.request(1, 11, "ann"));
    let document =
        b"limits: [{Url: /, rules: [{name: theirs, actor: account, unit: day, rpu: 2, scope: local}]}]";
    thread.answer(1, 0, Some(200), document);
    let count =
        |thread: &Thread, what: &str| thread.host.count_of(&format!("diana.ns.remote.{what}"));
    assert_eq!((count(&thread, "applied"), count(&thread, "fetched")), (1, 1));
    assert!(thread.request(1, 12, "bob") && thread.request(1, 13, "bob"));
    assert!(!thread.request(1, 14, "bob"));
    thread.pass(2 * SECOND);
    assert_eq!(count(&thread, "in_force"), 1);
    assert!(thread.host.lines().iter().any(|line| line.ends_with("start with no usage: theirs")));
    thread.end(1);
    assert_eq!(count(&thread, "in_force"), 0);
}

/// A switch, or another password, is an update of the same root.
#[test]
fn worker_counts_once_as_one_with_remote_rules() {
    let mut thread = Thread::with(CENTRE);
    thread.pass(2 * SECOND);
    thread.answer(1, 0, Some(200), b"limits: []");
    for _ in 0..3 {
        thread.pass(2 * SECOND);
        assert_eq!(thread.host.count_of("diana.ns.remote.in_force"), 1);
        assert!(thread.configure(1, CENTRE));
    }
    // Without a configuration server it is none.
    assert!(thread.configure(1, CENTRE.split_once("remote").unwrap().0));
    thread.pass(2 * SECOND);
    assert_eq!(thread.host.count_of("diana.ns.remote.in_force"), 0);
}

/// A root without requests is only called for polling.
#[test]
fn server_is_polled_in_time() {
    let mut thread = Thread::with(CENTRE);
    thread.pass(SECOND / 10);
    thread.answer(1, 0, Some(200), b"limits: []");
    for round in 1..5 {
        thread.pass(10 * SECOND + SECOND / 2);
        let calls = thread.host.calls.borrow().len();
        assert!((round..=round + 1).contains(&calls), "{calls} in round {round}");
        thread.answer(1, calls as u32 - 1, Some(503), b"");
        // Its timer expires four times a second to read the results of other workers.
        assert_eq!(thread.host.period(1), 250);
    }
}

/// An instance with a successor in its namespace returns its leases. One of another namespace does
/// not.
#[test]
fn only_a_replaced_instance_closes_when_quiet() {
    let text = |namespace: &str, name: &str| {
        format!(
            "namespace: {namespace}\nlimits: [{{Url: /{name}, rules: [{{name: {name}, actor: account, unit: day, rpu: 9, scope: local}}]}}]"
        )
    };
    for (namespace, keys) in [("shop", 0), ("bank", 1)] {
        let mut thread = Thread::with(&text("shop", "").replace("name: ,", "name: one,"));
        assert!(thread.request(1, 10, "ann"));
        assert!(thread.configure(2, &text(namespace, "two")));
        let of = |thread: &Thread| thread.host.count_of("diana.shop.rule.one.keys");
        thread.pass(3 * SECOND / 2);
        assert_eq!(of(&thread), 1);
        // Requests are too recent.
        assert!(thread.request(1, 11, "ann"));
        thread.pass(3 * SECOND / 2);
        assert_eq!(of(&thread), 1);
        thread.pass(5 * SECOND);
        assert_eq!(of(&thread), keys, "{namespace}");
        assert_eq!(thread.host.next(), None);
    }
}

/// An early call has nothing to do, and does not delay the next one.
#[test]
fn early_calls_change_nothing() {
    let line = |rpu: u64| {
        format!(
            "limits: [{{Url: /, rules: [{{name: r, actor: account, unit: second, rpu: {rpu}, algo: LB, scope: local}}]}}]"
        )
    };
    let mut thread = Thread::with(&line(100));
    thread.tick(1);
    assert!(thread.request(1, 10, "ann"));
    thread.tick(1);
    assert_eq!(thread.host.count_of("diana.ns.rule.r.allowed"), 0);
    assert!(thread.configure(2, &line(1000)));
    thread.tick(2);
    (11..16).for_each(|stream| assert!(!thread.request(1, stream, "ann")));
    thread.pass(SECOND / 50 + 2 * MILLISECOND);
    assert_eq!(*thread.host.resumed.borrow(), [11, 12]);
    // A request with a turn before the next call.
    assert!(thread.request(2, 20, "bob") && !thread.request(2, 21, "bob"));
    thread.pass(2 * MILLISECOND);
    assert_eq!(*thread.host.resumed.borrow(), [11, 12, 21]);
}

/// A call without work does not cancel the next one.
#[test]
fn call_without_work_keeps_the_next_one() {
    let mut thread = Thread::with(
        "limits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 9, scope: local}]}]",
    );
    (0..2).for_each(|_| thread.tick(1));
    assert_eq!(thread.host.next(), None);
    assert!(thread.request(1, 10, "ann"));
    assert!(thread.host.next().is_some());
}
