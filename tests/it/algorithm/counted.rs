//! Algorithms for rules that count only some requests: two states of the same algorithm, one of
//! reserved and used permits, which decides, and one of used permits.

use std::sync::Arc;

use diana_algorithm::{Algorithm, Balance, CountsUsed, counted, entry};
use diana_policy::Quota;
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, SECOND, Unit};
use fastrand::Rng;
use kit::seed;
use kit::store::gateway::START;
use kit::store::rule::Rule;

const LIMIT: u64 = 9;

/// Both halves, and the algorithm that must agree with them.
struct Twice {
    inner: Arc<dyn CountsUsed>,
    whole: Arc<dyn Algorithm>,
    reserved: Vec<u64>,
    used: Vec<u64>,
    state: Vec<u64>,
}

impl Twice {
    fn new(short: &str) -> Twice {
        let build = entry(short).unwrap().counts_used.unwrap();
        let inner = build(&Quota::new(Unit::Second, LIMIT)).unwrap();
        let (whole, zeros) = (counted(inner.clone()), vec![0; inner.properties().words]);
        let state = vec![0; whole.properties().words];
        Twice { inner, whole, reserved: zeros.clone(), used: zeros, state }
    }

    /// Applies a change to the halves and to the whole.
    fn change(
        &mut self,
        reserved: impl Fn(&dyn Algorithm, &[u64], &mut [u64]),
        used: impl Fn(&dyn CountsUsed, &[u64], &[u64], &mut [u64]),
        whole: impl Fn(&dyn Algorithm, &[u64], &mut [u64]),
    ) {
        let old = [self.reserved.clone(), self.used.clone(), self.state.clone()];
        reserved(&*self.inner, &old[0], &mut self.reserved);
        used(&*self.inner, &old[1], &old[0], &mut self.used);
        whole(&*self.whole, &old[2], &mut self.state);
        assert_eq!(self.state, [&self.reserved[..], &self.used[..]].concat());
    }

    fn step(&mut self, now: Now, cost: u64) -> Decision {
        let mut half = self.reserved.clone();
        let expected = self.inner.step(&self.reserved, now, 0, cost, &mut half);
        let mut new = self.state.clone();
        let decision = self.whole.step(&self.state, now, 0, cost, &mut new);
        match expected {
            Decision::Refuse { retry: Retry::After(_) }
                if self.inner.balance(&self.used, now).remaining >= cost =>
            {
                assert_eq!(decision, Decision::Refuse { retry: Retry::Soon });
            }
            other => assert_eq!(decision, other),
        }
        if expected.is_admitted() {
            (self.reserved, self.state) = (half, new);
            assert_eq!(self.state, [&self.reserved[..], &self.used[..]].concat());
        }
        decision
    }
}

#[test]
fn counted_algorithm_equals_two_plain_states() {
    let mut rng = Rng::with_seed(seed::next());
    let mut refused = [0; 2];
    for round in 0..120 {
        let mut twice = Twice::new(["W", "SW"][round % 2]);
        let (mut now, mut open): (Now, Vec<(u64, u64, u64)>) = (START, Vec::new());
        assert_eq!(twice.whole.properties().most_at_once, twice.inner.properties().most_at_once);
        assert_eq!(twice.whole.properties().quota(), twice.inner.properties().quota());
        for _ in 0..60 {
            now = now.later(rng.u64(..SECOND / 8));
            let permits = rng.u64(1..5);
            match rng.u8(..6) {
                0 if !open.is_empty() => {
                    let (receipt, since, reserved) = open.swap_remove(rng.usize(..open.len()));
                    let used = if rng.bool() { 0 } else { rng.u64(0..2 * reserved) };
                    let settlement = match rng.u8(..3) {
                        0 => Settlement::refund(receipt, reserved),
                        1 => Settlement::debit(permits),
                        _ => Settlement { receipt, since, reserved, used },
                    };
                    let settle = |it: &dyn Algorithm, old: &[u64], new: &mut [u64]| {
                        it.settle(old, now, &settlement, new);
                    };
                    let add = |it: &dyn CountsUsed, old: &[u64], all: &[u64], new: &mut [u64]| {
                        it.add_used(old, all, now, &settlement, new);
                    };
                    twice.change(settle, add, settle);
                }
                _ => match twice.step(now, permits) {
                    Decision::Admit { .. } => {
                        let receipt = twice.whole.receipt(&twice.state);
                        assert_eq!(receipt, twice.inner.receipt(&twice.reserved));
                        open.push((receipt, now.mono, permits));
                    }
                    Decision::Refuse { retry } => refused[usize::from(retry == Retry::Soon)] += 1,
                },
            }
            let Twice { inner, whole, reserved, used, state } = &twice;
            let (all, used_up) = (inner.balance(reserved, now), inner.balance(used, now));
            let reserved_only = all.charged.saturating_sub(used_up.charged);
            assert_eq!(whole.balance(state, now), Balance { reserved: reserved_only, ..all });
            let last = inner.expires(reserved, now).max(inner.expires(used, now));
            assert_eq!(whole.expires(state, now), last);
        }
    }
    assert!(refused.iter().all(|count| *count > 100), "too tame: {refused:?}");
}

/// An algorithm without settlement charges no debt.
#[test]
fn algorithm_without_settlement_has_no_debt() {
    let quota = Quota::new(Unit::Second, LIMIT);
    for (short, quota) in [
        ("LB", Quota { max_delay: Some(SECOND), ..quota }),
        ("TB", Quota { warm_up: Some(SECOND), ..quota }),
    ] {
        let algorithm = Rule::new(short, quota).algorithm;
        let mut charged = vec![0; algorithm.properties().words];
        let mut owes = charged.clone();
        assert!(algorithm.step(&owes, START, 0, 1, &mut charged).is_admitted());
        algorithm.settle(&charged, START, &Settlement::debit(5), &mut owes);
        assert_eq!(owes, charged, "{short}");
    }
}
