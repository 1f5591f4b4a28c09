//! Any algorithm, for requests of which only some count in the end: what is reserved for those under way is told apart
//! from what was used.
//!
//! State is that of the algorithm twice: charged when a request comes, and charged when it has counted. Only the first
//! decides; a refusal that the second would not confirm is one for what is reserved only, and ends when that is settled.

use std::rc::Rc;

use super::{Algorithm, copy};
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

#[derive(Debug)]
struct Counted {
    inner: Rc<dyn Algorithm>,
}

/// The same limit, for requests of which only some count.
#[must_use]
pub fn counted(inner: Rc<dyn Algorithm>) -> Rc<dyn Algorithm> {
    Rc::new(Counted { inner })
}

impl Counted {
    /// What is reserved or used, and what is used.
    fn parts<'s>(&self, state: &'s [u64]) -> (&'s [u64], &'s [u64]) {
        state.split_at_checked(self.inner.words()).unwrap_or_default()
    }

    fn parts_mut<'s>(&self, state: &'s mut [u64]) -> (&'s mut [u64], &'s mut [u64]) {
        state.split_at_mut_checked(self.inner.words()).unwrap_or_default()
    }
}

impl Algorithm for Counted {
    fn words(&self) -> usize {
        2 * self.inner.words()
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
        let ((reserved, used), (new_reserved, new_used)) = (self.parts(old), self.parts_mut(new));
        match self.inner.step(reserved, now, cost, new_reserved) {
            Decision::Refuse { retry: Retry::After(_) }
                if self.inner.remaining(used, now) >= cost =>
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

    fn refund(&self, old: &[u64], receipt: u64, permits: u64, new: &mut [u64]) {
        let ((reserved, used), (new_reserved, new_used)) = (self.parts(old), self.parts_mut(new));
        self.inner.refund(reserved, receipt, permits, new_reserved);
        copy(used, new_used);
    }

    fn debit(&self, old: &[u64], now: Now, permits: u64, new: &mut [u64]) {
        let ((reserved, used), (new_reserved, new_used)) = (self.parts(old), self.parts_mut(new));
        self.inner.debit(reserved, now, permits, new_reserved);
        self.inner.debit(used, now, permits, new_used);
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        let ((reserved, used), (new_reserved, new_used)) = (self.parts(old), self.parts_mut(new));
        self.inner.settle(reserved, now, settlement, new_reserved);
        self.inner.note_used(used, reserved, now, settlement, new_used);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        None
    }

    fn charged(&self, state: &[u64], now: Now) -> u64 {
        self.inner.charged(self.parts(state).0, now)
    }

    fn reserved(&self, state: &[u64], now: Now) -> u64 {
        let (reserved, used) = self.parts(state);
        self.inner.charged(reserved, now).saturating_sub(self.inner.charged(used, now))
    }

    fn lift(&self, old: &[u64], _now: Now, _out: u64, new: &mut [u64]) -> bool {
        let ((reserved, used), (new_reserved, new_used)) = (self.parts(old), self.parts_mut(new));
        new_used.fill(0);
        self.inner.without_used(reserved, used, new_reserved)
    }

    fn most_at_once(&self) -> u64 {
        self.inner.most_at_once()
    }

    fn remaining(&self, state: &[u64], now: Now) -> u64 {
        self.inner.remaining(self.parts(state).0, now)
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        let (reserved, used) = self.parts(state);
        self.inner.expires(reserved, now).max(self.inner.expires(used, now))
    }

    fn policy(&self) -> (u64, Micros) {
        self.inner.policy()
    }
}
