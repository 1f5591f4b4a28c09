//! Bans of a fleet, which Redis counts.
//!
//! Refusals go there as errands, for which nobody waits; a request that asks Redis about the rule asks
//! about the ban with it. What comes back is kept in the gateway's sets, where all its workers find
//! it. While Redis cannot be relied upon the gateway counts for itself. Refusals are lost only with a
//! trip that came to nothing.

use std::rc::Rc;

use crate::key::Key;
use crate::policy::Ban;
use crate::policy::redis::OnFailure;
use crate::redis::link::{BANS, Link};
use crate::redis::protocol::{Back, Charge, Numbers};

/// The bans of one rule in the fleet.
pub(in crate::store) struct Far {
    link: Rc<Link>,
    /// The number of the rule's store.
    number: usize,
    identity: u64,
    numbers: Numbers,
    keys: u64,
}

impl Far {
    pub(in crate::store) fn new(
        link: Rc<Link>,
        number: usize,
        identity: u64,
        ban: &Ban,
        keys: usize,
    ) -> Far {
        Far { link, number, identity, numbers: Numbers::of_ban(ban), keys: keys as u64 }
    }

    /// Whether everybody is refused, whatever it did.
    pub(super) fn denies(&self) -> bool {
        self.link.alone.get() && self.link.on_failure == OnFailure::Deny
    }

    /// Has refusals counted, if Redis can be relied upon; with none it only looks.
    pub(super) fn send(&self, key: Key, refusals: u64) -> bool {
        let together = !self.link.alone.get();
        if together {
            self.link.send(BANS + self.number, self.charge(key, refusals));
        }
        together
    }

    /// What counts so many refusals; with none it only looks.
    pub(super) fn charge(&self, caller: Key, refusals: u64) -> Charge {
        Charge {
            identity: self.identity,
            caller,
            numbers: self.numbers,
            cost: refusals,
            grain: 1,
            want: 0,
            soon: 0,
            shadow: false,
            tentative: false,
            keys: self.keys,
            back: Back::default(),
        }
    }
}
