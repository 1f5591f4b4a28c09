//! Permits leased by a worker: their end and their return.

use std::rc::Rc;

use diana_policy::Quota;
use diana_policy::decision::Decision;
use diana_policy::time::{Now, SECOND, Unit};
use fastrand::Rng;

use kit::store::gateway::{Gateway, PACE, START, interrupt};
use kit::store::rule::Rule;

const MS: u64 = 1000;

/// A block is returned after this time.
const IDLE: u64 = 50 * MS;

fn gateway(short: &str, quota: Quota, workers: usize) -> Gateway {
    Gateway::new(Rule::new(short, quota), 100, workers)
}

fn second(rpu: u64) -> Quota {
    Quota::new(Unit::Second, rpu)
}

#[test]
fn sliding_window_lease_is_not_spent_late() {
    let gateway = gateway("SW", second(1000), 2);
    gateway.take(0, 50);
    gateway.at(950 * MS);
    gateway.flood(0);
    gateway.at(1100 * MS);
    gateway.flood(1);
    gateway.verify();
}

/// In the tick in which a window ends, by either clock, the next one has begun. Permits of the
/// previous one would exceed the limit by a block.
#[test]
fn lease_is_not_spent_when_its_window_ends() {
    let late = START.later(950 * MS);
    let by_wall = Now { mono: late.mono + MS, wall: START.wall + SECOND };
    let by_mono = Now { mono: START.mono + SECOND, wall: late.wall + MS };
    for (end, by) in [(START.later(SECOND), "both"), (by_wall, "wall"), (by_mono, "mono")] {
        let gateway = gateway("W", second(1000), 2);
        gateway.request(0, 1);
        gateway.clock.set(late);
        gateway.take(0, 50);
        gateway.clock.set(end);
        let (next, held) = (gateway.flood(1), gateway.flood(0));
        assert_eq!((next, held), (1000, 0), "by {by}");
    }
}

#[test]
fn spike_after_idleness_is_admitted_once() {
    let gateway = gateway("TB", second(1000), 2);
    gateway.take(0, 100);
    // The bucket would be full again, but the worker may still spend its permits.
    gateway.at(90 * MS);
    let spike = gateway.flood(1);
    assert!(gateway.flood(0) >= 50);
    gateway.verify();
    assert!(spike >= 500, "half of the bucket at least is nobody's");
}

#[test]
fn at_most_half_of_a_bucket_is_leased() {
    let gateway = gateway("TB", Quota { burst: Some(1000), ..second(100_000) }, 21);
    // The bucket is never empty, and each of twenty workers requests a hundred permits.
    for request in 0..4000 {
        gateway.pass(50);
        assert!(gateway.request(request % 20, 1).unwrap().is_admitted());
    }
    gateway.pass(20 * MS);
    let left = gateway.flood(20);
    assert!((500..1000).contains(&left), "{left} are left for a newcomer");
}

#[test]
fn every_permit_is_used_at_the_limit() {
    for short in ["W", "SW", "TB"] {
        let gateway = gateway(short, second(1000), 4);
        let mut given = 0;
        for request in 0..2000 {
            given += u64::from(gateway.request(request % 4, 1).unwrap().is_admitted());
        }
        assert_eq!(given, 1000, "{short}");
    }
}

#[test]
fn idle_leases_are_returned() {
    for short in ["W", "SW", "TB"] {
        let gateway = gateway(short, second(1000), 1);
        let given = gateway.take(0, 20);
        let nothing_out = if short == "TB" { 1000 } else { 1000 - given };
        gateway.at(IDLE - 1);
        assert!(gateway.maintain(0));
        assert!(gateway.left(1) < nothing_out, "{short}: too early");
        gateway.at(IDLE);
        gateway.maintain(0);
        assert_eq!(gateway.left(1), nothing_out, "{short}");
        assert!(!gateway.maintain(0), "nothing is left to do");
    }
}

#[test]
fn ended_lease_is_returned_despite_more_requests() {
    let minute = Quota::new(Unit::Minute, 1000);
    // At any point of a lease term, returned permits still count as outstanding.
    for (short, begins) in ["W", "SW"].into_iter().flat_map(|it| [0, 250, 499].map(|ms| (it, ms))) {
        let gateway = gateway(short, minute, 1);
        gateway.at(begins * MS);
        let mut given = gateway.take(0, 20);
        for _ in 0..18 {
            gateway.wait(PACE);
            given += u64::from(gateway.request(0, 1).unwrap().is_admitted());
        }
        gateway.wait(PACE);
        assert_eq!(gateway.left(1), 1000 - given, "{short}, from {begins} ms on");
    }
}

#[test]
fn lease_is_spent_for_50_milliseconds() {
    // At any point of a lease term.
    for begins in [0, 499 * MS] {
        let gateway = gateway("W", Quota::new(Unit::Minute, 1000), 1);
        gateway.at(begins);
        gateway.take(0, 20);
        for (ms, is_asked) in [(49, false), (50, true)] {
            gateway.at(begins + ms * MS);
            let before = gateway.traffic(0).writes.get();
            assert!(gateway.request(0, 1).unwrap().is_admitted());
            assert_eq!(gateway.traffic(0).writes.get() > before, is_asked, "after {ms} ms");
        }
    }
}

#[test]
fn dead_worker_loses_only_its_leases() {
    for short in ["W", "SW", "TB"] {
        let gateway = gateway(short, second(1000), 2);
        let given = gateway.take(0, 40);
        gateway.crash(0);
        let held = 1000 - given - gateway.left(1);
        let others = gateway.flood(1);
        assert_eq!(given + held + others, 1000, "{short}");
        // The other worker continues throughout, with its own leases.
        for _ in 0..100 {
            gateway.wait(10 * MS);
            gateway.request(1, 1);
        }
        gateway.wait(SECOND);
        assert_eq!(gateway.flood(1), 1000, "{short}");
        gateway.verify();
    }
}

#[test]
fn leases_of_a_dead_worker_expire_despite_renewals() {
    let gateway = gateway("TB", second(1000), 2);
    gateway.take(0, 100);
    gateway.crash(0);
    for _ in 0..60 {
        gateway.wait(20 * MS);
        assert!(gateway.request(1, 1).unwrap().is_admitted());
    }
    // Refilled, except for the usage of the other worker.
    let spike = gateway.flood(1);
    assert!(spike >= 950, "{spike}");
}

#[test]
fn slow_worker_keeps_leases_of_others() {
    let gateway = Rc::new(gateway("TB", second(1000), 3));
    gateway.request(0, 1);
    interrupt(&gateway, Rng::with_seed(0), |gateway, _| {
        if gateway.clock.get() == START {
            gateway.at(1001 * MS);
            gateway.take(1, 100);
        }
    });
    // Its clock was read a second before it writes.
    assert!(gateway.request(0, 1).unwrap().is_admitted());
    gateway.at(1090 * MS);
    assert!(gateway.flood(2) >= 500);
    assert!(gateway.flood(1) >= 100);
    gateway.verify();
}

/// Their callers, or their turns, would be unknown.
#[test]
fn shared_buckets_and_queues_have_no_leases() {
    let lined = Quota { max_delay: Some(SECOND), burst: Some(1000), ..second(1000) };
    for (short, quota, others) in
        [("W", second(1000), 32), ("TB", second(1000), 32), ("TB", lined, 0)]
    {
        let gateway = Gateway::new(Rule::new(short, quota), 16, 1);
        (100..100 + others).for_each(|other| _ = gateway.request(0, other));
        (0..100).for_each(|_| _ = gateway.request(0, 1));
        assert_eq!(gateway.left(1), 900, "{short}");
    }
}

#[test]
fn cached_refusal_has_an_exact_retry_delay() {
    let gateway = gateway("W", Quota::new(Unit::Minute, 1), 2);
    let traffic = gateway.traffic(0);
    assert_eq!(gateway.flood(0), 1);
    let asked = gateway.asked.get();
    for ticks in [1, 100 * MS, 999 * MS] {
        gateway.at(ticks);
        let refused = gateway.request(0, 1).unwrap();
        assert_eq!(refused, Decision::retry(60 * SECOND - ticks));
    }
    assert_eq!(gateway.asked.get(), asked);
    assert_eq!(traffic.writes.get(), 2);
}

#[test]
fn zero_limit_reads_no_shared_data() {
    let gateway = gateway("W", second(0), 1);
    assert_eq!(gateway.flood(0), 0);
    assert_eq!(gateway.asked.get(), 0);
}
