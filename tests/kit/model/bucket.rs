//! What the script knows of a bucket beyond the step in Rust: what is out on lease counts as still
//! lying in it, and for how long too little drained therefore.

use std::rc::Rc;

use diana_core::algorithm::Algorithm;

use super::{FAR, LONG, State};

/// A bucket that holds no requests.
#[derive(Clone)]
pub struct Bucket {
    pub algorithm: Rc<dyn Algorithm>,
    pub rpu: u64,
    pub fastest: u64,
    pub unit: u64,
}

impl Bucket {
    /// The debt at an instant.
    pub fn debt(&self, words: &[u64], at: u64) -> u128 {
        let mut drained = vec![0; words.len()];
        self.algorithm.hold_back(words, 0, at, &mut drained);
        u128::from(drained[1]) << 64 | u128::from(drained[0])
    }

    /// How long it takes until it has drained.
    fn ticks(&self, debt: u128) -> u64 {
        match self.rpu {
            0 => FAR,
            rpu => u64::try_from(debt.div_ceil(rpu.into())).unwrap_or(FAR).min(FAR),
        }
    }

    /// Holds back what is out on lease, term by term.
    pub fn settle(&self, state: &mut State, now: u64) {
        let (mut out, mut term) = (state.terms.leased(), state.terms.long_term());
        while out > 0 {
            let at = ((term + 1) * LONG).min(now);
            let held = u128::from(out) * u128::from(self.unit);
            let short = held.saturating_sub(self.debt(&state.words, at));
            if short > 0 {
                state.slack += self.ticks(short);
            }
            let old = state.words.clone();
            self.algorithm.hold_back(&old, out, at, &mut state.words);
            if at == now && now < (term + 1) * LONG {
                break;
            }
            out = if term == state.terms.long_term() { state.terms.leased_last() } else { 0 };
            term += 1;
        }
    }

    /// Takes back what was charged at `since`.
    pub fn take_back(&self, state: &mut State, left: u64, since: u64) {
        let gone = u128::from(state.words[2].saturating_sub(since)) * u128::from(self.fastest);
        if self.rpu > 0 {
            state.slack += self.ticks(gone.min(u128::from(left) * u128::from(self.unit)));
        }
        let old = state.words.clone();
        self.algorithm.take_back(&old, 0, left, since, &mut state.words);
    }

    /// No more can be missing than there is.
    pub fn cap(&self, state: &mut State, now: u64) {
        state.slack = state.slack.min(self.ticks(self.debt(&state.words, now)));
    }
}
