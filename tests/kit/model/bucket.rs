//! Buckets in the script. In addition to the step in Rust, leased permits count as still in the
//! bucket.

use std::sync::Arc;

use diana_algorithm::Algorithm;
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;

use super::{LONG, State};

/// A bucket that does not hold requests.
#[derive(Clone)]
pub struct Bucket {
    pub algorithm: Arc<dyn Algorithm>,
    pub unit: u64,
}

impl Bucket {
    /// The debt at an instant.
    pub fn debt(&self, words: &[u64], at: u64) -> u128 {
        let mut drained = vec![0; words.len()];
        self.algorithm.hold_back(words, 0, at, &mut drained);
        u128::from(drained[1]) << 64 | u128::from(drained[0])
    }

    /// Holds back the outstanding leases, term by term.
    pub fn settle(&self, state: &mut State, now: u64) {
        let (mut out, mut term) = (state.terms.leased(), state.terms.long_term());
        while out > 0 {
            let at = ((term + 1) * LONG).min(now);
            let old = state.words.clone();
            self.algorithm.hold_back(&old, out, at, &mut state.words);
            if at == now && now < (term + 1) * LONG {
                break;
            }
            out = if term == state.terms.long_term() { state.terms.leased_last() } else { 0 };
            term += 1;
        }
    }

    /// Returns a charge made at `since`.
    pub fn take_back(&self, state: &mut State, left: u64, since: u64) {
        let old = state.words.clone();
        let unused = Settlement { receipt: 0, since, reserved: left, used: 0 };
        self.algorithm.settle(&old, Now::default(), &unused, &mut state.words);
    }
}
