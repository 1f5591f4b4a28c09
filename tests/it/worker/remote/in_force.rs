//! The document that polls name: never a newer one than a worker of the gateway uses.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use diana_policy::port::SharedData;
use diana_worker::remote::{SILENT, YOUNG, version_of};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::seed;

use super::{EVERY, Gateway, LOCAL, MILLISECOND, SECOND, Server, Worker, document};

/// How polls name this document.
fn named(name: &str) -> String {
    format!("{:016x}", version_of(document(name).as_bytes()))
}

/// The documents that polls name in this time.
fn named_in(gateway: &mut Gateway, ticks: u64) -> Vec<String> {
    let polls = Rc::<RefCell<Vec<_>>>::default();
    let named = Rc::clone(&polls);
    gateway.on_poll = Some(Box::new(move |document, _| named.borrow_mut().push(document.into())));
    gateway.run(ticks);
    polls.take()
}

#[test]
fn poll_names_the_document_in_force_and_a_refused_one() {
    let mut gateway = Gateway::serving("a");
    let (a, b) = (named("a"), named("b"));
    let bad = document("Bad Name");
    let refused = format!("{:016x}", version_of(bad.as_bytes()));
    assert_eq!(named_in(&mut gateway, EVERY + SECOND), ["-".to_owned(), a.clone()]);
    gateway.server = Server::Serves(bad);
    let with_refused = format!("{a} refused={refused}");
    assert_eq!(named_in(&mut gateway, 2 * EVERY), [a.clone(), with_refused.clone()]);
    // Nothing is known of a newer one.
    gateway.server = Server::Responds(503);
    assert_eq!(named_in(&mut gateway, 2 * EVERY), [(); 2].map(|()| with_refused.clone()));
    gateway.serve("a");
    assert_eq!(named_in(&mut gateway, 2 * EVERY), [with_refused, a.clone()]);
    gateway.serve("b");
    assert_eq!(named_in(&mut gateway, 3 * EVERY), [a, b.clone(), b]);
}

#[test]
fn poll_names_the_oldest_document_while_a_worker_stands_still() {
    let mut gateway = Gateway::serving("a");
    gateway.run(EVERY);
    let leader = gateway.leader();
    let stalled = gateway.workers.remove((leader + 1) % 4);
    for name in ["b", "c"] {
        gateway.serve(name);
        let claims = named_in(&mut gateway, 100 * EVERY);
        assert_eq!(claims, vec![named("a"); 100], "{name}");
    }
    gateway.workers.push(stalled);
    gateway.run(EVERY);
    assert_eq!(named_in(&mut gateway, EVERY), [named("c")]);
}

/// A worker that ends says so; one that crashed is dropped a minute after another one has come in its place.
#[test]
fn ended_worker_does_not_count() {
    let mut gateway = Gateway::serving("a");
    gateway.run(EVERY);
    let at = (gateway.leader() + 1) % 4;
    assert_eq!(gateway.workers.remove(at).poller.retire(&gateway.data), -1);
    gateway.serve("b");
    gateway.run(EVERY + SECOND);
    assert_eq!(named_in(&mut gateway, EVERY), [named("b")]);
    let at = (gateway.leader() + 1) % 3;
    drop(gateway.workers.remove(at));
    gateway.serve("c");
    gateway.run(EVERY + SECOND);
    assert_eq!(named_in(&mut gateway, 20 * EVERY), vec![named("b"); 20]);
    gateway.start(LOCAL);
    let claims = named_in(&mut gateway, SILENT + EVERY);
    assert_eq!(claims, [vec![named("b"); 6], vec![named("c")]].concat());
}

#[test]
fn silent_worker_counts_for_a_minute_after_another_has_come() {
    const START: u64 = 1_000 * SECOND;
    for (later, counts) in [(SILENT - 1, true), (SILENT, false)] {
        let data = FakeSharedData::default();
        let [mut first, mut silent] = [1, 2].map(|id| Worker::new(LOCAL, id, START, &data));
        first.tick(START, &data);
        first.answer(Some(200), &document("a"), START, &data);
        silent.tick(START, &data);
        silent.tick(START + SECOND, &data);
        silent.tick(START + 2 * SECOND, &data);
        assert_eq!(silent.rule, "a");
        // Another one comes, which `silent` does not see.
        let came = START + EVERY;
        first.tick(came, &data);
        first.answer(Some(200), &document("b"), came, &data);
        Worker::new(LOCAL, 3, came, &data).tick(came, &data);
        first.tick(came + SECOND / 2, &data);
        let (mut latest, now) = (Worker::new(LOCAL, 4, came, &data), came + later);
        latest.tick(now, &data);
        let wanted = if counts { named("a") } else { named("b") };
        assert_eq!(latest.header(0, "x-diana-document"), Some(wanted));
    }
}

/// Workers that differ twice: one stood still for so long that it was dropped, another one since a later document.
#[test]
fn worker_that_comes_back_has_the_oldest_document() {
    const START: u64 = 1_000 * SECOND;
    let data = FakeSharedData::default();
    let [mut leader, mut first, mut second] =
        [1, 2, 3].map(|id| Worker::new(LOCAL, id, START, &data));
    let serve = |leader: &mut Worker, name: &str, now: u64| {
        for now in [now, now + SECOND / 2] {
            leader.tick(now, &data);
            if leader.sent.len() > leader.answered {
                leader.answer(Some(200), &document(name), now, &data);
            }
        }
    };
    serve(&mut leader, "a", START);
    first.tick(START + SECOND, &data);
    first.tick(START + 2 * SECOND, &data);
    serve(&mut leader, "b", START + EVERY + SECOND);
    for since in 0..2 * SILENT / SECOND {
        second.tick(START + 2 * EVERY + since * SECOND, &data);
    }
    let now = START + 3 * SILENT;
    serve(&mut leader, "c", now);
    // Registers `a`, and then applies the newest.
    first.tick(now + SECOND, &data);
    assert_eq!((first.rule.as_str(), second.rule.as_str()), ("c", "b"));
    let mut latest = Worker::new(LOCAL, 4, now, &data);
    latest.tick(now + EVERY + SECOND, &data);
    assert_eq!(latest.header(0, "x-diana-document"), Some(named("a")));
}

/// A record that was lost may lack workers, until all of them have written to it again.
#[test]
fn young_record_names_no_document() {
    const START: u64 = 1_000 * SECOND;
    for (later, wanted) in [(YOUNG - 1, "-".to_owned()), (YOUNG, named("a"))] {
        let data = FakeSharedData::default();
        let mut worker = Worker::new(LOCAL, 1, START, &data);
        // Its turn is a microsecond after each interval.
        for now in [START, START + SECOND] {
            worker.tick(now, &data);
            worker.answer(Some(200), &document("a"), now, &data);
        }
        let key = data.keys().into_iter().find(|key| key.ends_with("/in_force")).unwrap();
        data.set(&key, b"damaged");
        let due = START + EVERY + 1;
        worker.tick(due - later, &data);
        assert_eq!(worker.sent.len(), 2);
        worker.tick(due, &data);
        assert_eq!(worker.header(2, "x-diana-document"), Some(wanted));
    }
}

/// The number of a rule. 0 for the gateway's own.
fn number(rule: &str) -> u64 {
    rule.strip_prefix('r').map_or(0, |number| number.parse().unwrap())
}

/// The law: while workers start, end, crash and stand still, and documents come, no poll names a
/// newer document than any worker has; and afterwards polls name the newest.
#[test]
fn polls_never_name_a_newer_document_than_a_worker_has() {
    let mut random = Rng::with_seed(seed::next());
    let (polls, older) = (Rc::<Cell<u64>>::default(), Rc::<Cell<u64>>::default());
    for _ in 0..100 {
        let (mut last, mut stalled) = (1, Vec::<Worker>::new());
        let mut gateway = Gateway::new(random.usize(2..5), LOCAL, Server::Serves(document("r1")));
        // The oldest rule of the workers that stand still.
        let oldest = Rc::new(Cell::new(u64::MAX));
        let newest = Rc::new(Cell::new(last));
        let (least, latest) = (Rc::clone(&oldest), Rc::clone(&newest));
        let (all, behind) = (Rc::clone(&polls), Rc::clone(&older));
        gateway.on_poll = Some(Box::new(move |claim, rules| {
            let (version, _) = claim.split_once(' ').unwrap_or((claim, ""));
            let claimed = (1..=latest.get()).find(|it| named(&format!("r{it}")) == version);
            assert_eq!(claimed.is_none(), version == "-", "{claim}");
            let has = rules.iter().map(|rule| number(rule)).min().unwrap().min(least.get());
            assert!(claimed.unwrap_or(0) <= has, "{claim} of {rules:?}, {}", least.get());
            all.set(all.get() + 1);
            behind.set(behind.get() + u64::from(claimed.unwrap_or(0) < latest.get()));
        }));
        // The first start that a worker which stands still may not have seen.
        let mut started = Some(gateway.now);
        gateway.run(random.u64(MILLISECOND..=EVERY));
        for _ in 0..30 {
            let count = gateway.workers.len();
            match random.u8(0..8) {
                0 if count > 1 => stalled.push(gateway.workers.swap_remove(random.usize(0..count))),
                1 if count > 1 => {
                    let ended = gateway.workers.swap_remove(random.usize(0..count));
                    _ = ended.poller.retire(&gateway.data);
                }
                2 if count > 1 => drop(gateway.workers.swap_remove(random.usize(0..count))),
                3 => {
                    gateway.start(LOCAL);
                    started.get_or_insert(gateway.now);
                    gateway.run(MILLISECOND);
                }
                4 if !stalled.is_empty() => {
                    gateway.workers.push(stalled.swap_remove(random.usize(0..stalled.len())));
                }
                5 => gateway.server = Server::Serves(document("Bad Name")),
                _ => {
                    last += 1;
                    newest.set(last);
                    gateway.serve(&format!("r{last}"));
                }
            }
            let ticks = random.u64(MILLISECOND..EVERY);
            if started.is_some_and(|started| gateway.now + ticks >= started + SILENT) {
                // None stands still for longer after a start.
                gateway.workers.append(&mut stalled);
                gateway.run(SECOND);
                started = None;
            }
            oldest.set(stalled.iter().map(|it| number(&it.rule)).min().unwrap_or(u64::MAX));
            gateway.run(ticks);
        }
        oldest.set(u64::MAX);
        gateway.workers.append(&mut stalled);
        gateway.start(LOCAL);
        gateway.serve(&format!("r{last}"));
        gateway.run(SILENT + 2 * EVERY);
        assert_eq!(named_in(&mut gateway, EVERY), [named(&format!("r{last}"))]);
    }
    assert!(older.get() > 100 && polls.get() > 2_000, "{} of {}", older.get(), polls.get());
}

/// The number of gateways is that of the server: more at once, fewer after five seconds of reports without a failure.
#[test]
fn number_of_gateways_grows_at_once_and_falls_late() {
    const START: u64 = 1_000 * SECOND;
    let config = LOCAL.replace('}', ", every: 1s}");
    let data = FakeSharedData::default();
    let [mut leader, mut other] = [1, 2].map(|id| Worker::new(&config, id, START, &data));
    let mut known = Vec::new();
    let reports = [
        (Some(200), Some(3), 3),
        (Some(304), Some(5), 5),
        (Some(200), Some(2), 5),
        (Some(200), Some(3), 5),
        (Some(200), None, 5),
        (Some(200), Some(2), 5),
        (Some(200), Some(2), 5),
        // Five seconds after the first report of fewer, the most of them.
        (Some(200), Some(2), 3),
        (Some(503), Some(1), 3),
        (Some(200), Some(2), 3),
        (Some(200), Some(0), 3),
        (Some(200), Some(10_001), 3),
        (Some(200), Some(4), 4),
    ];
    for (second, (status, reported, _)) in (0..).zip(reports) {
        let now = START + second * SECOND + u64::from(second > 0);
        leader.tick(now, &data);
        let answer = (&*document("a"), Some("\"tag\""), reported);
        leader.answer_with(status, answer, now, &data);
        other.tick(now, &data);
        assert_eq!(leader.gateways, other.gateways);
        known.push(other.gateways);
    }
    assert_eq!(known, reports.map(|(_, _, wanted)| wanted));
    // A new worker has it before its first poll.
    let mut new = Worker::new(&config, 3, START, &data);
    new.tick(START + 60 * SECOND, &data);
    assert_eq!((new.gateways, data.get("nothing")), (4, None));
}
