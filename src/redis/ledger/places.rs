//! Places in flight that are held in Redis by this worker.
//!
//! What Redis granted counts for a second or two, since the answer might get lost, and only from the settlement on which says
//! that the place is held for as long as this worker says that it lives. So nobody who left, died or did not hear leaves any behind.
//! Each settlement says how many places its caller has here in all, so that a Redis which lost some of it is right again soon.

use super::{Held, Ledger, Ledgers};
use crate::part::Part;
use crate::protocol::{Back, Charge};
use diana_policy::time::{Micros, SECOND};

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
        let is_forgotten =
            |it: &Ledger| it.part == part && !it.held.is_empty() && it.is_forgotten(now);
        if self.parts.iter().any(is_forgotten) {
            self.forget();
        }
        self.make_room();
        let Some(ledger) = self.own(part) else { return 0 };
        if ledger.held.is_empty() {
            ledger.told = now;
        }
        let places = ledger.take(caller(&charge));
        let back = Back::Holds { term, places };
        self.add_place(part, Charge { back, ..charge });
        self.holder
    }

    /// A place that was held so is free. What was forgotten meanwhile is not counted any more.
    pub fn free(&mut self, part: Part, charge: Charge, holder: u64) {
        self.make_room();
        if holder != self.holder {
            return;
        }
        let left = self.own(part).and_then(|ledger| ledger.free(caller(&charge)));
        let Some(places) = left else { return };
        self.add_place(part, Charge { back: Back::Frees { places }, ..charge });
    }

    /// Says that whoever holds places lives, where that has not been said lately, by a charge of anybody's. Whether any are held.
    pub fn beat(&mut self, charge: &Charge, now: Micros) -> bool {
        if self.parts.iter().any(|ledger| !ledger.held.is_empty() && ledger.is_forgotten(now)) {
            self.forget();
        }
        let (mut holds, mut due) = (false, Vec::new());
        for ledger in self.parts.iter().filter(|ledger| !ledger.held.is_empty()) {
            holds = true;
            if now.saturating_sub(ledger.told) >= BEAT && !ledger.tells_of_places() {
                due.push(ledger.part);
            }
        }
        for at in due {
            self.add_place(at, Charge { back: Back::Lives, ..charge.clone() });
        }
        holds
    }

    /// What does not fit would leave Redis with another number of places than are held.
    fn make_room(&mut self) {
        if self.is_full() {
            self.forget();
        }
    }

    fn add_place(&mut self, part: Part, charge: Charge) {
        self.add(part, Charge { numbers: charge.numbers.held_by(self.holder), ..charge });
    }

    /// Gives up all places that are held: nobody can tell any more which of them are still counted.
    pub(super) fn forget(&mut self) {
        self.holder = (self.holder + 1) & NUMBER;
        for ledger in &mut self.parts {
            ledger.held.clear();
            ledger.waiting.retain(|charge| !is_place(charge));
            // Whatever is sent again has to be as long. Who was forgotten shall not live once more by it.
            for charge in ledger.batch.iter_mut().filter(|charge| is_place(charge)) {
                let numbers = charge.numbers.held_by(self.holder);
                *charge = Charge { back: Back::Lives, numbers, ..charge.clone() };
            }
        }
    }
}

/// Only these name the holder, so that Redis knows it lives.
pub(super) fn is_place(charge: &Charge) -> bool {
    matches!(charge.back, Back::Holds { .. } | Back::Frees { .. } | Back::Lives)
}

fn caller(charge: &Charge) -> (u64, u64) {
    (charge.fingerprint, charge.caller.hash)
}

/// Names of callers are hashes under a secret.
fn hash(&((_, caller), _): &Held) -> u64 {
    caller
}

impl Ledger {
    /// A caller takes a place. How many of its are held now.
    fn take(&mut self, caller: (u64, u64)) -> u64 {
        let entry = self.held.entry(caller.1, |(it, _)| *it == caller, hash);
        let mut entry = entry.or_insert((caller, 0));
        let (_, places) = entry.get_mut();
        *places += 1;
        *places
    }

    /// A caller's place is free. How many of its are still held, if any were.
    fn free(&mut self, caller: (u64, u64)) -> Option<u64> {
        let mut entry = self.held.find_entry(caller.1, |(it, _)| *it == caller).ok()?;
        let (_, places) = entry.get_mut();
        *places -= 1;
        let left = *places;
        if left == 0 {
            entry.remove();
        }
        Some(left)
    }

    /// Returns true if a waiting or sent charge names the holder.
    fn tells_of_places(&self) -> bool {
        self.batch.iter().chain(&self.waiting).any(is_place)
    }

    /// Whether the part may have forgotten what is held.
    fn is_forgotten(&self, now: Micros) -> bool {
        now.saturating_sub(self.told) >= FORGETS
    }
}
