//! Looking at what a caller used in the fleet, and lifting it.

use super::RedisStore;
use crate::protocol::{Back, Charge, RuleReply};
use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_store::usage::{Unliftable, Usage};

impl RedisStore {
    /// What Redis is asked to tell what a caller used.
    #[must_use]
    pub fn looks_at(&self, key: Key) -> Charge {
        Charge { back: Back::Looks, ..self.nothing(key) }
    }

    /// What it is asked to lift that.
    #[must_use]
    pub fn lifts(&self, key: Key) -> Charge {
        Charge { back: Back::Lifts, ..self.nothing(key) }
    }

    /// Whether what was used can be lifted.
    ///
    /// # Errors
    /// Why not.
    pub fn can_lift(&self) -> Result<(), Unliftable> {
        let nobody = vec![0; self.terms.spec.algorithm.properties().words];
        let mut new = nobody.clone();
        match self.terms.spec.daily {
            Some(_) => Err(Unliftable::Quota),
            None if self.terms.spec.algorithm.reset(&nobody, Now::default(), 0, &mut new) => Ok(()),
            None => Err(Unliftable::Line),
        }
    }

    /// What a caller has used, as Redis told.
    #[must_use]
    pub fn usage(&self, reply: &RuleReply) -> Usage {
        // In such a reply they stand in the place of what a charge is known by.
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

    /// What this worker was refused for a caller is lifted.
    pub fn forget_refusal(&mut self, key: Key) {
        if let Some(lease) = self.leases.find(key) {
            lease.forget_refusal();
        }
    }
}
