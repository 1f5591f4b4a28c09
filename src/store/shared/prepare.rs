//! Prepares a charge: the state after the request, and a block for the next ones.

use super::{CounterSpec, Shared};
use crate::lease::Block;
use crate::slots::transaction::Transaction;
use diana_policy::decision::Decision;
use diana_policy::time::Micros;

/// A block is at most this fraction of the remaining permits, so that blocks shrink to zero near
/// the limit.
const FRACTION: u64 = 8;

impl Shared {
    pub(super) fn step(&self, transaction: &mut Transaction, permits: u64) -> Decision {
        self.spec.algorithm.step(
            &transaction.state,
            transaction.now,
            0,
            permits,
            &mut transaction.after,
        )
    }

    /// Prepares the state after a charge of one request that leaves `delay` later, and of a new
    /// block if the caller is busy. Returns the permits of the block.
    pub(super) fn prepare(
        &mut self,
        transaction: &mut Transaction,
        cost: u64,
        delay: Micros,
    ) -> Result<u64, Decision> {
        let decision = match transaction.decided.take() {
            Some(decision) => decision,
            None => self.step(transaction, cost),
        };
        match decision {
            Decision::Admit { wait } if wait > delay => Err(Decision::Admit { wait }),
            // Its own turn is not rounded to a tick, so that errors do not accumulate.
            Decision::Admit { wait } if wait < delay => {
                let Transaction { state, now, after, .. } = transaction;
                match self.spec.algorithm.step(state, *now, delay, cost, after) {
                    Decision::Admit { .. } => Ok(0),
                    refusal @ Decision::Refuse { .. } => Err(refusal),
                }
            }
            Decision::Admit { .. } => Ok(self.prepare_block(transaction, cost)),
            refusal @ Decision::Refuse { .. } => Err(refusal),
        }
    }

    /// Adds a block to the charge, if possible. Returns its permits.
    fn prepare_block(&mut self, transaction: &mut Transaction, cost: u64) -> u64 {
        let (CounterSpec { algorithm, unit_cost, .. }, at) = (&self.spec, transaction.at);
        if transaction.is_overflow()
            || algorithm.spend_by(&transaction.after, transaction.now).is_none()
        {
            return 0;
        }
        let Some(lease) = self.leases.claim(transaction.key) else { return 0 };
        let want = lease.permits_to_lease(cost, at);
        let left = algorithm.balance(&transaction.after, transaction.now).remaining;
        let room = algorithm
            .properties()
            .most_out
            .saturating_sub(transaction.outstanding.out())
            .min(transaction.outstanding.room());
        let block = want.min(left / FRACTION).min(room) / unit_cost * unit_cost;
        if block > 0 && self.step(transaction, cost + block) == Decision::NOW { block } else { 0 }
    }

    /// Stores the block that the charge leased.
    pub(super) fn store_block(&mut self, transaction: &Transaction, permits: u64) {
        let (algorithm, Transaction { key, at, now, after, outstanding, .. }) =
            (&self.spec.algorithm, transaction);
        let block = Block { permits, term: outstanding.term(), receipt: algorithm.receipt(after) };
        let life = algorithm.spend_by(after, *now).unwrap_or(0).saturating_sub(now.mono);
        self.leases.renew(*key, block, life, *at);
    }
}
