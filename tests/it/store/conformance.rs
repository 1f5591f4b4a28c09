//! Each store compared with a plain map that runs the same steps and never drops state.

use std::collections::HashMap;
use std::rc::Rc;

use diana_algorithm::Leasing;
use diana_policy::Scope;
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, SECOND};
use diana_store::Store;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::store::{Decided, Take};

use super::races::{gap, rounds};
use kit::oracle::oracle;
use kit::store::gateway::{PACE, START, key};
use kit::store::left;
use kit::store::rule::Rule;

const HOUR: u64 = 3600 * SECOND;

/// A store and the map.
struct Twin {
    store: Box<dyn Store>,
    rule: Rule,
    /// Whether the store has leases, which the map has not.
    leases: bool,
    /// Whether refusals are remembered.
    remembers: bool,
    /// When the wall clock was set.
    set: u64,
    states: HashMap<u64, Vec<u64>>,
    /// Callers and positions of possibly held requests.
    waiting: Vec<(u64, u64, u64)>,
}

impl Twin {
    fn new(rule: Rule, scope: Scope) -> Twin {
        let data = Rc::new(FakeSharedData::default());
        let mut tables = Tables::default();
        let store = Stores::new("test".into(), data, &mut tables).open(scope, rule.spec(1000));
        // A bucket does not refill while permits are leased, so it admits less for a while.
        let remembers = scope == Scope::Gateway;
        let leases = remembers && rule.spec(1).capabilities().leasing == Leasing::Bucket;
        Twin { store, rule, leases, remembers, set: 0, states: HashMap::new(), waiting: Vec::new() }
    }

    fn state(&self, caller: u64) -> Vec<u64> {
        let nobody = || vec![0; self.rule.algorithm.properties().words];
        self.states.get(&caller).cloned().unwrap_or_else(nobody)
    }

    fn request(&mut self, caller: u64, now: Now, rng: &mut Rng) {
        let cost = self.rule.cost(rng);
        let mut reservation = self.store.checked(key(caller).into(), cost, now);
        let decision = reservation.decision();
        assert!(!reservation.is_overflow, "there is room for everybody");
        let old = self.state(caller);
        let mut new = old.clone();
        let algorithm = self.rule.algorithm.clone();
        let expected = algorithm.step(&old, now, 0, cost, &mut new);
        let stingy = self.leases || self.remembers && now.mono < self.set + SECOND;
        if stingy && !decision.is_admitted() {
            return;
        }
        if self.remembers && !self.rule.is_even && !expected.is_admitted() {
            // A cheaper request was refused recently, and its retry delay is shorter.
            assert!(retry(decision) <= retry(expected), "{decision:?} at {now:?}");
            return;
        }
        assert_eq!(comparable(decision), comparable(expected), "at {now:?}");
        let Decision::Admit { wait } = decision else {
            assert!(
                self.store.remaining(&reservation).map(|it| it.permits)
                    <= Some(algorithm.balance(&old, now).remaining)
            );
            return;
        };
        let longest = oracle(self.rule.short).max_delay(&self.rule.quota);
        let held_elsewhere = longest > 0 && rng.bool();
        let delay = if held_elsewhere { wait + rng.u64(0..longest) } else { wait };
        let expected =
            if delay > wait { algorithm.step(&old, now, delay, cost, &mut new) } else { expected };
        let charged = self.store.charged(&mut reservation, delay);
        assert_eq!(charged, expected, "held for {delay} at {now:?}");
        if !expected.is_admitted() {
            return;
        }
        if rng.u8(0..4) == 0 {
            self.store.cancel(&mut reservation);
            return;
        }
        let receipt = reservation.receipt.unwrap();
        assert!(self.leases || receipt == algorithm.receipt(&new), "held for {delay} at {now:?}");
        self.waiting.push((caller, receipt, cost));
        let left = algorithm.balance(&new, now).remaining;
        let reported = self.store.remaining(&reservation).map(|it| it.permits).unwrap();
        assert!(
            reported == left || self.leases && reported < left,
            "{reported} reported, {left} left"
        );
        self.states.insert(caller, new);
    }

    fn leave(&mut self, now: Now, rng: &mut Rng) {
        if self.waiting.is_empty() || !self.rule.queues() {
            return;
        }
        let (caller, place, cost) = self.waiting.swap_remove(rng.usize(0..self.waiting.len()));
        let mut new = self.state(caller);
        let refund = Settlement::refund(place, cost);
        self.rule.algorithm.settle(&self.state(caller), now, &refund, &mut new);
        assert!(self.store.settle(&left(key(caller), place, cost), now));
        self.states.insert(caller, new);
    }

    /// A remembered refusal ignores the change.
    fn set_wall_clock(&mut self, now: Now, wall: u64) -> Now {
        self.set = now.mono;
        Now { wall, ..now }
    }

    fn wait(&mut self, now: Now, ticks: u64) -> Now {
        let mut passed = 0;
        while passed < ticks {
            passed = ticks.min(passed + PACE);
            if !self.store.maintain(now.later(passed)).is_busy {
                break;
            }
        }
        now.later(ticks)
    }
}

/// The retry delay of a decision, with all very long delays equal.
fn retry(decision: Decision) -> Option<Retry> {
    match decision {
        Decision::Admit { .. } => None,
        Decision::Refuse { retry } => Some(retry),
    }
}

fn comparable(decision: Decision) -> Decision {
    match decision {
        Decision::Refuse { retry: Retry::After(ticks) } if ticks > 1 << 62 => {
            Decision::retry(u64::MAX)
        }
        decision => decision,
    }
}

fn agrees(scope: Scope) {
    rounds(200, |rule, rng| {
        let mut twin = Twin::new(rule, scope);
        let mut now = START;
        for _ in 0..300 {
            let gap = gap(&twin.rule, rng);
            now = twin.wait(now, gap);
            match rng.u8(0..40) {
                0 => now = twin.set_wall_clock(now, now.wall - HOUR),
                1 => now = twin.set_wall_clock(now, now.wall + rng.u64(0..=HOUR)),
                2..=5 => twin.leave(now, rng),
                _ => twin.request(rng.u64(0..3), now, rng),
            }
        }
    });
}

#[test]
fn local_store_agrees_with_a_map() {
    agrees(Scope::Local);
}

#[test]
fn gateway_store_of_one_worker_agrees_with_a_map() {
    agrees(Scope::Gateway);
}
