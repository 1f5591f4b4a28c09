//! Reads and resets a caller's usage in the fleet.

use super::RedisStore;
use crate::protocol::{Back, Charge, RuleReply};
use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_store::usage::{Unliftable, Usage};

impl RedisStore {
    /// The question for a caller's usage.
    #[must_use]
    pub fn looks_at(&self, key: Key) -> Charge {
        Charge { back: Back::Looks, ..self.nothing(key) }
    }

    /// The question that resets a caller's usage.
    #[must_use]
    pub fn lifts(&self, key: Key) -> Charge {
        Charge { back: Back::Lifts, ..self.nothing(key) }
    }

    /// Checks whether usage can be reset.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn can_lift(&self) -> Result<(), Unliftable> {
        let nobody = vec![0; self.terms.spec.algorithm.properties().words];
        let mut new = nobody.clone();
        match self.terms.spec.daily {
            Some(_) => Err(Unliftable::Quota),
            None if self.terms.spec.algorithm.reset(&nobody, Now::default(), 0, &mut new) => Ok(()),
            None => Err(Unliftable::Line),
        }
    }

    /// A caller's usage, by the reply of Redis.
    #[must_use]
    pub fn usage(&self, reply: &RuleReply) -> Usage {
        // Such a reply has these values in place of receipts.
        let RuleReply { remaining, receipt: lent, block: reserved, lease: ends, .. } = *reply;
        let charged = reply.charged;
        Usage {
            used: charged.saturating_sub(lent).saturating_sub(reserved),
            reserved,
            lent,
            remaining,
            ends,
            in_flight: self.is_held.then_some(charged),
            is_shared: reply.overflow,
        }
    }

    /// Forgets the remembered refusal of a caller whose usage was reset.
    pub fn forget_refusal(&mut self, key: Key) {
        if let Some(lease) = self.leases.find(key) {
            lease.forget_refusal();
        }
    }
}
