//! Reads and resets a caller's usage.

use super::Shared;
use crate::usage::{OrderError, Usage};
use diana_algorithm::Balance;
use diana_policy::key::Key;
use diana_policy::time::Now;

impl Shared {
    pub(super) fn usage_of(&mut self, key: Key, now: Now) -> Usage {
        let mut transaction = self.begin(key, now);
        self.slots.read(&mut transaction);
        let (algorithm, now) = (&self.spec.algorithm, transaction.now);
        let Balance { remaining, charged, reserved, .. } =
            algorithm.balance(&transaction.state, now);
        let leased = transaction.outstanding.out();
        Usage {
            used: charged.saturating_sub(leased).saturating_sub(reserved),
            reserved,
            leased,
            remaining,
            ends: algorithm.expires(&transaction.state, now).saturating_sub(now.mono),
            in_flight: None,
            is_shared: transaction.is_overflow(),
            ban: None,
        }
    }

    /// Leases stay charged, so that they may still be spent. Their workers return them, and forget
    /// refusals of the caller, within a second.
    pub(super) fn reset(&mut self, key: Key, now: Now) -> Result<(), OrderError> {
        let mut transaction = self.begin(key, now);
        while transaction.may_try() {
            self.slots.read(&mut transaction);
            if transaction.is_overflow() {
                return Err(OrderError::Shared);
            }
            let (algorithm, kept) = (&self.spec.algorithm, transaction.outstanding.out());
            if !algorithm.reset(&transaction.state, transaction.now, kept, &mut transaction.after) {
                return Err(OrderError::InUse);
            }
            if self.slots.is_unknown(&transaction) {
                break;
            }
            if self.slots.write(&mut transaction, 0) {
                break;
            }
        }
        if let Some(lease) = self.leases.find(key) {
            lease.forget_refusal();
        }
        if transaction.may_try() { Ok(()) } else { Err(OrderError::Busy) }
    }
}
