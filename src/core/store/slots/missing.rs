//! Why a request lacks permits.

use super::transaction::Transaction;
use super::transactions::Transactions;
use crate::decision::{Decision, Retry};
use crate::store::lease::LIFE;
use crate::time::Micros;

/// Why permits are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Missing {
    /// They were used, and come back in so many ticks.
    Used(Micros),
    /// Others hold them, for so many ticks at most.
    Out(Micros),
    /// They are about to come back one by one, and might have come already.
    Gathers(Micros),
}

impl Transactions {
    /// Why a request of `cost` permits is refused for `retry` ticks.
    pub(in crate::store) fn missing(
        &mut self,
        transaction: &Transaction,
        cost: u64,
        retry: Micros,
    ) -> Missing {
        let out = transaction.outstanding.out();
        if out > 0 {
            let ends = transaction.outstanding.ends().saturating_sub(transaction.now.mono).max(1);
            match self.retry_without(transaction, out, cost) {
                Some(0) => return Missing::Out(ends),
                Some(without) if without < retry => return Missing::Used(without),
                _ => {}
            }
        }
        // A bucket does not drain below what is out, so it may have been charged too much by what
        // drains while a lease lives.
        let drains = self.algorithm.most_out() < u64::MAX && retry <= 2 * LIFE;
        if drains && transaction.outstanding.was_any() {
            Missing::Gathers(retry)
        } else {
            Missing::Used(retry)
        }
    }

    /// Ticks until a request would be admitted if `out` permits had come back.
    fn retry_without(&mut self, transaction: &Transaction, out: u64, cost: u64) -> Option<Micros> {
        if self.left(transaction).saturating_add(out) >= cost {
            return Some(0);
        }
        let receipt = self.algorithm.receipt(&transaction.state);
        let mut without = transaction.state.clone();
        self.algorithm.refund(&transaction.state, receipt, out, &mut without);
        match self.algorithm.step(&without, transaction.now, cost, &mut self.scratch) {
            Decision::Refuse { retry: Retry::After(ticks) } => Some(ticks),
            Decision::Refuse { retry: Retry::Soon | Retry::Never } => None,
            Decision::Admit { .. } => Some(0),
        }
    }
}
