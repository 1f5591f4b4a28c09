//! Places in flight that are held in Redis by this worker.
//!
//! What Redis granted counts for one or two terms, since the answer might get lost, and only from the settlement on which says
//! that the place is held for as long as this worker says that it lives. So nobody who left, died or did not hear leaves any behind.

use super::{Ledger, Ledgers, MOST};
use crate::redis::part::Part;
use crate::redis::protocol::{Back, Charge};
use crate::time::{Micros, SECOND};

/// How often a part hears that whoever holds places in flight lives, and how long it takes to forget them otherwise, less
/// what an answer may take.
const BEAT: Micros = SECOND / 2;
const FORGETS: Micros = SECOND;

/// Bits of a holder's number.
const NUMBER: u64 = (1 << 53) - 1;

impl Ledgers {
    /// Names whoever holds places here by a random number.
    pub(super) fn name_holder(&mut self, random: u64) {
        if self.holder == 0 {
            self.holder = (random & NUMBER).max(1);
        }
    }

    /// A place of a caller was taken in a part, in a term, and is held from now on. By whom, which is to be said when it is
    /// free.
    pub fn hold(&mut self, part: Part, charge: Charge, term: u64, now: Micros) -> u64 {
        let is_forgotten = |it: &Ledger| it.part == part && it.held > 0 && it.is_forgotten(now);
        if self.parts.iter().any(is_forgotten) {
            self.forget();
        }
        self.add_place(part, Charge { back: Back::Holds { term }, ..charge });
        if let Some(ledger) = self.own(part) {
            if ledger.held == 0 {
                ledger.told = now;
            }
            ledger.held += 1;
        }
        self.holder
    }

    /// A place that was held so is free. What was forgotten meanwhile is not counted any more.
    pub fn free(&mut self, part: Part, charge: Charge, holder: u64) {
        if holder != self.holder {
            return;
        }
        self.add_place(part, Charge { back: Back::Frees, ..charge });
        if let Some(ledger) = self.own(part) {
            ledger.held = ledger.held.saturating_sub(1);
        }
    }

    /// Says that whoever holds places lives, where that has not been said lately, by a charge of anybody's. Whether any are held.
    pub fn beat(&mut self, charge: &Charge, now: Micros) -> bool {
        if self.parts.iter().any(|ledger| ledger.held > 0 && ledger.is_forgotten(now)) {
            self.forget();
        }
        let (mut holds, mut due) = (false, Vec::new());
        for ledger in self.parts.iter().filter(|ledger| ledger.held > 0) {
            holds = true;
            let is_idle = ledger.batch.is_empty() && ledger.waiting.is_empty();
            if is_idle && now.saturating_sub(ledger.told) >= BEAT {
                due.push(ledger.part);
            }
        }
        for at in due {
            self.add_place(at, Charge { back: Back::Lives, ..charge.clone() });
        }
        holds
    }

    fn add_place(&mut self, part: Part, charge: Charge) {
        if self.waiting >= MOST {
            self.forget();
        }
        self.add(part, Charge { numbers: charge.numbers.held_by(self.holder), ..charge });
    }

    /// Gives up all places that are held: nobody can tell any more which of them are still counted.
    pub(super) fn forget(&mut self) {
        self.holder = (self.holder + 1) & NUMBER;
        self.parts.iter_mut().for_each(|ledger| ledger.held = 0);
    }
}

impl Ledger {
    /// Whether the part may have forgotten what is held.
    fn is_forgotten(&self, now: Micros) -> bool {
        now.saturating_sub(self.told) >= FORGETS
    }
}
