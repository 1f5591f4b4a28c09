//! What goes back to the gateway: blocks, charges, and places in a line.

use super::Shared;
use super::view::{Home, Look};
use crate::key::Key;
use crate::time::{Micros, Now};

impl Shared {
    /// Gives back all blocks that are idle, or all of them. Whether any is still out.
    pub(super) fn hand_in_blocks(&mut self, now: Now, all: bool) -> bool {
        let (keys, any) = self.leases.idle(now, all);
        keys.into_iter().for_each(|key| self.hand_in(key, now));
        any
    }

    fn hand_in(&mut self, key: Key, now: Now) {
        let mut look = self.nobody(key, now);
        while look.may_try() {
            self.view.look(&mut look);
            let lease = self.leases.find(key);
            let counted = lease.is_some_and(|lease| self.view.give_back(&mut look, lease));
            if !counted || self.view.keep(&mut look) {
                break;
            }
        }
        self.leases.forget(key);
    }

    /// Undoes a charge that the gateway was asked for, and gives back the block that came with it.
    pub(super) fn undo_charge(&mut self, look: &mut Look) {
        let receipt = self.spec.algorithm.receipt(&look.after);
        let since = look.now.mono;
        while look.may_try() && self.view.is_untouched(look) {
            if self.view.keep(look) {
                return self.leases.forget(look.key);
            }
        }
        self.take_back(receipt, since, look);
    }

    /// Takes back the permits of one request that was charged under `receipt` at `since`, and what is
    /// left of a block.
    pub(super) fn take_back(&mut self, receipt: u64, since: Micros, look: &mut Look) {
        while look.may_try() {
            self.look(look);
            if look.home == Home::New {
                return;
            }
            self.view.take_back(look, receipt, self.spec.cost, since);
            if self.view.keep(look) {
                return self.leases.forget(look.key);
            }
        }
    }
}
