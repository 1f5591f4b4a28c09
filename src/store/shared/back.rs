//! What goes back to the gateway: blocks, charges, and places in a line.

use super::view::Home;
use super::{Shared, Store};
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
        self.begin(key, now);
        while self.view.slots.may_try() {
            self.view.look(key, now);
            let counted = self.leases.find(key).is_some_and(|lease| self.view.give_back(lease));
            if !counted || self.view.keep() {
                break;
            }
        }
        self.leases.forget(key);
    }

    /// Undoes a charge that the gateway was asked for, and gives back the block that came with it.
    pub(super) fn undo_charge(&mut self) {
        let since = self.view.now().mono;
        while self.view.slots.may_try() && self.view.is_untouched(&self.after) {
            if self.view.keep() {
                return self.leases.forget(self.key);
            }
        }
        self.take_back(self.place(), since);
    }

    /// Takes back the permits of one request that was charged under `receipt` at `since`, and what is
    /// left of a block.
    pub(super) fn take_back(&mut self, receipt: u64, since: Micros) {
        while self.view.slots.may_try() {
            self.look();
            if self.view.home() == Home::New {
                return;
            }
            self.view.take_back(receipt, self.meter.cost, since);
            if self.view.keep() {
                return self.leases.forget(self.key);
            }
        }
    }
}
