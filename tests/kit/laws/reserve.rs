//! Requests that leave later than their own turn, since another rule holds them.

use diana_algorithm::{Entry, REGISTRY};
use diana_policy::decision::{Decision, Retry};
use diana_policy::time::Now;
use fastrand::Rng;

use super::case::Case;
use super::{equivalence, stream};
use crate::oracle::{Admission, oracle};

/// The requests of one caller are delayed at random. Departures keep the bound, a charge equals
/// that of a request that arrives when this one leaves, and a refusal ends at its retry delay,
/// while the turn of the other rule approaches.
pub fn holds(entry: &Entry, case: &Case, rng: &mut Rng) {
    let algorithm = &*case.algorithm;
    let mut state = vec![0; algorithm.properties().words];
    let mut past: Vec<Admission> = Vec::new();
    for (now, cost) in stream::random(case, rng, 100) {
        let mut new = state.clone();
        let own = algorithm.step(&state, now, 0, cost, &mut new);
        let far = 25 << rng.u8(0..20);
        let interval = case.quota.period() / case.quota.rpu.max(1);
        let mut delay = match rng.u8(0..4) {
            0 => 0,
            1 => rng.u64(0..=3 * interval),
            _ => rng.u64(0..=far),
        };
        if let Decision::Admit { wait } = own {
            delay = delay.max(wait);
        }
        let mut reserve = |later: u64| {
            let delay = delay.saturating_sub(later);
            algorithm.step(&state, now.later(later), delay, cost, &mut new)
        };
        let longest = oracle(entry.short).max_delay(&case.quota);
        let decision = reserve(0);
        if longest == 0 {
            assert_eq!(decision, own, "a rule that holds nothing counts at the decision");
        }
        if own.is_admitted() {
            let holds = delay <= algorithm.properties().longest_delay;
            assert_eq!(decision.is_admitted(), holds, "{delay} of {own:?}");
        }
        match decision {
            Decision::Admit { wait } => {
                assert!(own.is_admitted(), "{own:?} is less than a wait");
                assert_eq!(wait, if longest == 0 { 0 } else { delay });
                assert!(wait <= longest, "held for {wait}");
                let leaves = now.later(wait);
                let mut then = state.clone();
                assert_eq!(algorithm.step(&state, leaves, 0, cost, &mut then), Decision::NOW);
                equivalence::decide(algorithm, &then, &new, stream::from(leaves, case, rng, 4));
                past.push(Admission { at: now, leaves: leaves.mono, cost });
                state = new;
            }
            Decision::Refuse { retry: Retry::After(u64::MAX) } => {}
            Decision::Refuse { retry: Retry::After(wait) } => {
                assert!(!reserve(wait - 1).is_admitted(), "{wait} is too late");
                assert!(reserve(wait).is_admitted(), "{wait} is too early");
            }
            Decision::Refuse { retry } => assert_eq!((own, retry), (Decision::NEVER, Retry::Never)),
        }
    }
    oracle(entry.short).check_departures(&case.quota, past);
}

/// Two rules evaluate the same requests, which leave at the first instant that both permit. Both
/// rules keep their bounds.
pub fn of_two_rules(entry: &Entry, case: &Case, rng: &mut Rng) {
    let other = &REGISTRY[rng.usize(0..REGISTRY.len())];
    let Some(beside) = case.beside(other, rng) else { return };
    let mut rules = [Rule::new(entry, case), Rule::new(other, &beside)];
    for (now, _) in stream::random(case, rng, 100) {
        let own = rules.each_mut().map(|rule| rule.charge(now, 0));
        let [Some(a), Some(b)] = own else { continue };
        let [Some(a), Some(b)] = rules.each_mut().map(|rule| rule.charge(now, a.max(b))) else {
            continue;
        };
        for (rule, wait) in rules.iter_mut().zip([a, b]) {
            rule.state.copy_from_slice(&rule.new);
            let leaves = now.mono + wait;
            rule.past.push(Admission { at: now, leaves, cost: rule.case.quota.cost });
        }
    }
    for rule in rules {
        oracle(rule.entry.short).check_departures(&rule.case.quota, rule.past);
    }
}

/// A rule with the state of one caller.
struct Rule<'c> {
    entry: &'c Entry,
    case: &'c Case,
    state: Vec<u64>,
    new: Vec<u64>,
    past: Vec<Admission>,
}

impl<'c> Rule<'c> {
    fn new(entry: &'c Entry, case: &'c Case) -> Rule<'c> {
        let state = vec![0; case.algorithm.properties().words];
        Rule { entry, case, new: state.clone(), state, past: Vec::new() }
    }

    /// The wait of a request that another rule holds for `delay`, charged to `new`.
    fn charge(&mut self, now: Now, delay: u64) -> Option<u64> {
        let Case { algorithm, quota } = self.case;
        match algorithm.step(&self.state, now, delay, quota.cost, &mut self.new) {
            Decision::Admit { wait } => Some(wait),
            Decision::Refuse { .. } => None,
        }
    }
}
