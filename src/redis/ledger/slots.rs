//! In-flight slots of this worker in Redis.
//!
//! A slot that Redis granted counts for one to two seconds, since the reply may be lost. A
//! settlement then confirms it, and it counts as long as this worker sends heartbeats. Thus clients
//! that left, dead workers and lost replies leave no slots behind. Each settlement contains the
//! number of all slots of its caller in this worker, so that a Redis that lost data is soon correct
//! again.

use super::{HeldSlots, Ledger, Ledgers};
use crate::protocol::{Charge, Effect};
use crate::shard::Shard;
use diana_policy::time::{Micros, SECOND};

/// The heartbeat interval of a shard, and the time without a heartbeat after which the shard may
/// have forgotten the slots, less the time of a reply.
const BEAT: Micros = SECOND / 2;
const FORGETS: Micros = SECOND;

/// Bits of a holder's number.
const NUMBER: u64 = (1 << 53) - 1;

impl Ledgers {
    /// Gives this holder of slots a random number.
    pub(super) fn renew_holder(&mut self, random: u64) {
        if self.holder == 0 {
            self.holder = (random & NUMBER).max(1);
        }
    }

    /// Records a slot of a caller that a shard granted in `term`. Returns the holder's number, for
    /// [`Ledgers::free`].
    pub fn hold(&mut self, shard: Shard, charge: Charge, term: u64, now: Micros) -> u64 {
        let is_forgotten =
            |it: &Ledger| it.shard == shard && !it.held.is_empty() && it.is_forgotten(now);
        if self.shards.iter().any(is_forgotten) {
            self.forget();
        }
        self.make_room();
        let Some(ledger) = self.own_ledger(shard) else { return 0 };
        if ledger.held.is_empty() {
            ledger.heartbeat_at = now;
        }
        let slots = ledger.take(caller(&charge));
        let effect = Effect::HoldSlots { term, slots };
        self.add_slot(shard, Charge { effect, ..charge });
        self.holder
    }

    /// Frees a slot that was recorded under `holder`. Slots that were forgotten since do not count
    /// any more.
    pub fn free(&mut self, shard: Shard, charge: Charge, holder: u64) {
        self.make_room();
        if holder != self.holder {
            return;
        }
        let left = self.own_ledger(shard).and_then(|ledger| ledger.free(caller(&charge)));
        let Some(slots) = left else { return };
        self.add_slot(shard, Charge { effect: Effect::FreeSlots { slots }, ..charge });
    }

    /// Sends heartbeats that are due, with any charge as a template. Returns true if this worker
    /// has slots.
    pub fn heartbeat(&mut self, charge: &Charge, now: Micros) -> bool {
        if self.shards.iter().any(|ledger| !ledger.held.is_empty() && ledger.is_forgotten(now)) {
            self.forget();
        }
        let (mut holds, mut due) = (false, Vec::new());
        for ledger in self.shards.iter().filter(|ledger| !ledger.held.is_empty()) {
            holds = true;
            if now.saturating_sub(ledger.heartbeat_at) >= BEAT && !ledger.reports_slots() {
                due.push(ledger.shard);
            }
        }
        for at in due {
            self.add_slot(at, Charge { effect: Effect::Heartbeat, ..charge.clone() });
        }
        holds
    }

    /// Forgets all slots if the ledger is full: a missing settlement would leave Redis with a wrong
    /// number.
    fn make_room(&mut self) {
        if self.is_full() {
            self.forget();
        }
    }

    fn add_slot(&mut self, shard: Shard, charge: Charge) {
        self.add(shard, Charge { numbers: charge.numbers.held_by(self.holder), ..charge });
    }

    /// Forgets all slots, when it is unknown which of them Redis still counts.
    pub(super) fn forget(&mut self) {
        self.holder = (self.holder + 1) & NUMBER;
        for ledger in &mut self.shards {
            ledger.held.clear();
            ledger.waiting.retain(|charge| !is_slot(charge));
            // A repeated batch must keep its length, but must not revive the old holder.
            for charge in ledger.batch.iter_mut().filter(|charge| is_slot(charge)) {
                let numbers = charge.numbers.held_by(self.holder);
                *charge = Charge { effect: Effect::Heartbeat, numbers, ..charge.clone() };
            }
        }
    }
}

/// Returns true for charges that contain the holder's number, so that Redis sees a heartbeat.
pub(super) fn is_slot(charge: &Charge) -> bool {
    matches!(charge.effect, Effect::HoldSlots { .. } | Effect::FreeSlots { .. } | Effect::Heartbeat)
}

fn caller(charge: &Charge) -> (u64, u64) {
    (charge.fingerprint, charge.caller.hash)
}

/// A caller's key is already a hash under a secret.
fn hash(&((_, caller), _): &HeldSlots) -> u64 {
    caller
}

impl Ledger {
    /// Adds a slot of a caller. Returns the number of its slots.
    fn take(&mut self, caller: (u64, u64)) -> u64 {
        let entry = self.held.entry(caller.1, |(it, _)| *it == caller, hash);
        let mut entry = entry.or_insert((caller, 0));
        let (_, slots) = entry.get_mut();
        *slots += 1;
        *slots
    }

    /// Removes a slot of a caller. Returns the number of its remaining slots, or `None` if it had
    /// none.
    fn free(&mut self, caller: (u64, u64)) -> Option<u64> {
        let mut entry = self.held.find_entry(caller.1, |(it, _)| *it == caller).ok()?;
        let (_, slots) = entry.get_mut();
        *slots -= 1;
        let left = *slots;
        if left == 0 {
            entry.remove();
        }
        Some(left)
    }

    /// Returns true if a waiting or sent charge contains the holder's number.
    fn reports_slots(&self) -> bool {
        self.batch.iter().chain(&self.waiting).any(is_slot)
    }

    /// Returns true if the shard may have forgotten the slots.
    fn is_forgotten(&self, now: Micros) -> bool {
        now.saturating_sub(self.heartbeat_at) >= FORGETS
    }
}
