//! The bound of each algorithm, checked by an oracle that remembers every admission.

use diana_algorithm::Entry;
use diana_policy::decision::Decision;
use fastrand::Rng;

use super::case::Case;
use super::stream;
use crate::oracle::{Admission, Promise, oracle};

/// Checks every decision about random requests of one caller.
pub fn holds(entry: &Entry, case: &Case, rng: &mut Rng) {
    let oracle = oracle(entry.short);
    let mut state = vec![0; case.algorithm.properties().words];
    let mut past: Vec<Admission> = Vec::new();
    for (now, cost) in stream::random(case, rng, 200) {
        let mut new = state.clone();
        let decision = case.algorithm.step(&state, now, 0, cost, &mut new);
        let promise = oracle.promise(&case.quota, &past, now, cost);
        let seen = match decision {
            Decision::Admit { wait } => {
                past.push(Admission { at: now, leaves: now.mono + wait, cost });
                state = new;
                Promise::Admitted { wait }
            }
            Decision::Refuse { .. } => Promise::Refused,
        };
        assert!(promise == Promise::Either || promise == seen, "{seen:?}, {promise:?} at {now:?}");
    }
    oracle.check_departures(&case.quota, past);
}
