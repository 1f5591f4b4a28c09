//! Windows for requests of which only a part counts in the end: used permits are counted separately
//! from reserved ones.
//!
//! The state is that of the window twice: charged when a request comes, and charged when its use is
//! known. Only the first decides. If the second would admit the request, the refusal is due to
//! reserved permits, and ends when they are settled.

use std::sync::Arc;

use super::{Algorithm, Balance, Properties, copy};
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

/// An algorithm that holds a charge until its window ends, so that two states of it can be
/// compared.
pub trait CountsUsed: Algorithm {
    /// Adds what a request used to the state `used`, and writes the state after it into `new`: as
    /// of its charge while that counts in the state `charged`, and at `now` beyond its reservation.
    fn add_used(
        &self,
        used: &[u64],
        charged: &[u64],
        now: Now,
        settlement: &Settlement,
        new: &mut [u64],
    );

    /// Writes the reserved part of the state `charged` into `new`: its charges without those of the
    /// state `used`, under the same receipts.
    fn without_used(&self, charged: &[u64], used: &[u64], new: &mut [u64]);
}

#[derive(Debug)]
struct Counted {
    inner: Arc<dyn CountsUsed>,
    properties: Properties,
}

/// The same limit, which counts used permits separately from reserved ones.
#[must_use]
pub fn counted(inner: Arc<dyn CountsUsed>) -> Arc<dyn Algorithm> {
    let plain = *inner.properties();
    Arc::new(Counted { properties: Properties { words: 2 * plain.words, ..plain }, inner })
}

impl Counted {
    /// The charged state, and the used state.
    fn parts<'s>(&self, state: &'s [u64]) -> (&'s [u64], &'s [u64]) {
        state.split_at_checked(state.len() / 2).unwrap_or_default()
    }

    fn parts_mut<'s>(&self, state: &'s mut [u64]) -> (&'s mut [u64], &'s mut [u64]) {
        state.split_at_mut_checked(state.len() / 2).unwrap_or_default()
    }
}

impl Algorithm for Counted {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn step(&self, old: &[u64], now: Now, delay: Micros, cost: u64, new: &mut [u64]) -> Decision {
        let ((charged, used), (new_charged, new_used)) = (self.parts(old), self.parts_mut(new));
        match self.inner.step(charged, now, delay, cost, new_charged) {
            Decision::Refuse { retry: Retry::After(_) }
                if self.inner.balance(used, now).remaining >= cost =>
            {
                Decision::Refuse { retry: Retry::Soon }
            }
            refusal @ Decision::Refuse { .. } => refusal,
            admitted @ Decision::Admit { .. } => {
                copy(used, new_used);
                admitted
            }
        }
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        self.inner.receipt(self.parts(charged).0)
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        let ((charged, used), (new_charged, new_used)) = (self.parts(old), self.parts_mut(new));
        self.inner.settle(charged, now, settlement, new_charged);
        self.inner.add_used(used, charged, now, settlement, new_used);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        None
    }

    fn balance(&self, state: &[u64], now: Now) -> Balance {
        let (charged, used) = self.parts(state);
        let all = self.inner.balance(charged, now);
        let used = self.inner.balance(used, now).charged;
        Balance { reserved: all.charged.saturating_sub(used), ..all }
    }

    fn reset(&self, old: &[u64], _now: Now, _out: u64, new: &mut [u64]) -> bool {
        let ((charged, used), (new_charged, new_used)) = (self.parts(old), self.parts_mut(new));
        new_used.fill(0);
        self.inner.without_used(charged, used, new_charged);
        true
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        let (charged, used) = self.parts(state);
        self.inner.expires(charged, now).max(self.inner.expires(used, now))
    }
}
