//! What the stores of a configuration and its desk have in common.

use std::cell::Cell;

use super::protocol::Charge;
use crate::policy::redis::OnFailure;

/// Most errands that wait. There is no more than one for each lease that wants something.
const MOST: usize = 8192;

/// Added to the number of a store, it is that of the bans of the same rule.
pub const BANS: usize = 1 << 31;

/// Something that a store wants done with the next trip, for which no request waits.
pub struct Errand {
    /// The number of the store.
    pub store: usize,
    /// What is asked, at no cost; or refusals that may lead to a ban.
    pub charge: Charge,
}

impl Errand {
    /// Whether the store waits for an answer; otherwise it only gives something back.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.charge.want > 0 || self.store >= BANS
    }
}

/// What a store may know of the desk, and hand it.
pub struct Link {
    /// What becomes of the rules while the gateway is alone.
    pub on_failure: OnFailure,
    /// Whether Redis cannot be relied upon, so that the gateway counts alone.
    pub alone: Cell<bool>,
    /// Active gateways as last known, at least one.
    pub gateways: Cell<u64>,
    /// Whether Redis was ever wanted here. The host also runs the filter where no request comes, and
    /// from where Redis cannot be reached.
    pub in_use: Cell<bool>,
    errands: Cell<Vec<Errand>>,
}

impl Link {
    /// A link to a Redis that can be relied upon.
    #[must_use]
    pub fn new(on_failure: OnFailure) -> Link {
        let (alone, gateways) = (Cell::new(false), Cell::new(1));
        Link { on_failure, alone, gateways, in_use: Cell::default(), errands: Cell::default() }
    }

    /// Sends an errand with the next trip. Where too many wait, only what asks for permits still goes.
    pub fn send(&self, store: usize, charge: Charge) {
        let mut errands = self.errands.take();
        let errand = Errand { store, charge };
        if errands.len() < MOST || errand.charge.want > 0 {
            errands.push(errand);
        }
        self.errands.set(errands);
    }

    /// At most `most` errands, the oldest first.
    pub fn take(&self, most: usize) -> Vec<Errand> {
        let mut errands = self.errands.take();
        self.errands.set(errands.split_off(most.min(errands.len())));
        errands
    }

    /// Whether there are any.
    pub fn has_errands(&self) -> bool {
        let errands = self.errands.take();
        let any = !errands.is_empty();
        self.errands.set(errands);
        any
    }
}
