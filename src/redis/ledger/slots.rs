//! In-flight slots of this worker in Redis.
//!
//! A slot that Redis granted counts for one to two seconds, since the reply may be lost. A
//! settlement then confirms it, and it counts as long as this worker sends heartbeats. Thus clients
//! that left, dead workers and lost replies leave no slots behind. Each settlement contains the
//! number of all slots of its caller in this worker, so that a Redis that lost data is soon correct
//! again.
//!
//! After a time without heartbeats, because this worker stood still or was cut off, Redis may have
//! forgotten its slots. It reports all of them again, and takes no other one before.

use super::{HeldSlots, Ledger, Ledgers};
use crate::protocol::{Charge, Effect};
use crate::shard::Shard;
use diana_policy::key::Key;
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
        self.make_room();
        self.template = Some(charge.clone());
        let Some(ledger) = self.own_ledger(shard) else { return 0 };
        if ledger.held.is_empty() {
            ledger.heartbeat_at = now;
        }
        ledger.report_forgotten(now);
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
        let (mut holds, mut due) = (false, Vec::new());
        for ledger in self.shards.iter_mut().filter(|ledger| !ledger.held.is_empty()) {
            holds = true;
            ledger.report_forgotten(now);
            if now.saturating_sub(ledger.heartbeat_at) >= BEAT && !ledger.reports_slots() {
                due.push(ledger.shard);
            }
        }
        for at in due {
            self.add_slot(at, Charge { effect: Effect::Heartbeat, ..charge.clone() });
        }
        holds
    }

    /// Returns true if a shard may have forgotten slots of this worker, which has not reported them
    /// again so far.
    pub fn is_reporting(&mut self, shard: Shard, now: Micros) -> bool {
        let is_it = |ledger: &&mut Ledger| ledger.shard == shard && !ledger.held.is_empty();
        self.shards.iter_mut().find(is_it).is_some_and(|ledger| {
            ledger.report_forgotten(now);
            ledger.is_reporting
        })
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
            ledger.drop_slots();
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

fn caller(charge: &Charge) -> (u64, Key) {
    (charge.fingerprint, charge.caller)
}

/// A caller's key is already a hash under a secret.
fn hash(&((_, caller), _): &HeldSlots) -> u64 {
    caller.hash
}

impl Ledger {
    /// Adds a slot of a caller. Returns the number of its slots.
    fn take(&mut self, caller: (u64, Key)) -> u64 {
        let entry = self.held.entry(caller.1.hash, |(it, _)| *it == caller, hash);
        let mut entry = entry.or_insert((caller, 0));
        let (_, slots) = entry.get_mut();
        *slots += 1;
        *slots
    }

    /// Removes a slot of a caller. Returns the number of its remaining slots, or `None` if it had
    /// none.
    fn free(&mut self, caller: (u64, Key)) -> Option<u64> {
        let mut entry = self.held.find_entry(caller.1.hash, |(it, _)| *it == caller).ok()?;
        let (_, slots) = entry.get_mut();
        *slots -= 1;
        let left = *slots;
        if left == 0 {
            entry.remove();
            self.unreported.retain(|other| *other != caller);
        }
        Some(left)
    }

    /// Drops all slots without a report.
    pub(super) fn drop_slots(&mut self) {
        self.held.clear();
        self.unreported.clear();
        self.is_reporting = false;
    }

    /// Begins to report all slots again if the shard may have forgotten them.
    fn report_forgotten(&mut self, now: Micros) {
        if !self.is_reporting && !self.held.is_empty() && self.is_forgotten(now) {
            self.is_reporting = true;
            self.unreported = self.held.iter().map(|(caller, _)| *caller).collect();
        }
    }

    /// Adds reports of slots to the next batch, up to `most` charges. If too much time has passed
    /// since the previous batch, the shard may have forgotten that, too, and all slots are
    /// reported.
    pub(super) fn add_reports(
        &mut self,
        template: Option<&Charge>,
        holder: u64,
        most: usize,
        now: Micros,
    ) {
        if self.is_forgotten(now) {
            self.is_reporting = false;
            self.report_forgotten(now);
        }
        while self.batch.len() < most
            && let Some(template) = template
            && let Some((fingerprint, caller)) = self.unreported.pop()
        {
            let is_it = |(held, _): &HeldSlots| *held == (fingerprint, caller);
            if let Some((_, slots)) = self.held.find(caller.hash, is_it) {
                let effect = Effect::FreeSlots { slots: *slots };
                let numbers = template.numbers.held_by(holder);
                let charge = Charge { fingerprint, caller, numbers, effect, ..template.clone() };
                self.batch.push(charge);
            }
        }
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
