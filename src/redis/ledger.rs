//! Settlements to send to Redis: the difference between reserved and used permits of requests, and
//! changes of in-flight slots.
//!
//! No request waits for them. They are sent in numbered batches, and Redis applies each batch once:
//! a batch without a reply is sent again unchanged until it is confirmed. Thus no settlement is
//! applied twice, or lost while Redis is unavailable.

mod slots;

use std::collections::VecDeque;

use hashbrown::HashTable;

use super::protocol::{Charge, SettlementBatch};
use super::shard::Shard;
use diana_policy::key::Key;
use diana_policy::time::Micros;

/// The maximum of waiting charges. Beyond it, the reservation counts as the usage.
const MOST: usize = 8192;

/// The maximum of charges in a batch.
const BATCH: usize = 64;

/// Charges to settle, by shard.
#[derive(Default)]
pub struct Ledgers {
    /// Its own ledgers, and those taken over from clients that have ended.
    shards: Vec<Ledger>,
    /// The random number that identifies it as a sender.
    sender: u64,
    /// The number of this holder of in-flight slots. It increases each time that its slots are
    /// forgotten.
    holder: u64,
    /// Any charge of an in-flight slot, to report others.
    template: Option<Charge>,
    /// Charges dropped for lack of room since the counter was last read.
    pub dropped: u64,
}

/// A rule and a caller of it, and the number of its in-flight slots.
type HeldSlots = ((u64, Key), u64);

struct Ledger {
    shard: Shard,
    sender: u64,
    waiting: VecDeque<Charge>,
    /// The next batch, and its number.
    batch: Vec<Charge>,
    number: u64,
    /// Whether it is pending, and when it was sent.
    is_pending: bool,
    sent: Micros,
    /// Callers with in-flight slots, and when the shard last received a heartbeat.
    held: HashTable<HeldSlots>,
    heartbeat_at: Micros,
    /// Whether the shard may have forgotten its slots, and the callers with slots that it has not
    /// reported again so far.
    is_reporting: bool,
    unreported: Vec<(u64, Key)>,
}

impl Ledgers {
    /// Adds a charge to settle in a shard.
    pub fn add(&mut self, shard: Shard, charge: Charge) {
        if self.is_full() {
            self.dropped += 1;
            return;
        }
        if let Some(ledger) = self.own_ledger(shard) {
            ledger.waiting.push_back(charge);
        }
    }

    /// Sets the random number.
    pub fn begin(&mut self, random: u64) {
        self.sender = random;
        self.renew_holder(random);
    }

    /// Takes over the unsettled charges of ledgers that have ended.
    pub fn inherit(&mut self, other: &mut Ledgers) {
        for mut ledger in std::mem::take(&mut other.shards) {
            // A pending batch is sent again under the same number.
            ledger.is_pending = false;
            ledger.drop_slots();
            if self.waiting() + ledger.waiting.len() > MOST {
                self.dropped += std::mem::take(&mut ledger.waiting).len() as u64;
            }
            if ledger.is_any() {
                self.shards.push(ledger);
            }
        }
        self.dropped += std::mem::take(&mut other.dropped);
    }

    fn waiting(&self) -> usize {
        self.shards.iter().map(|ledger| ledger.waiting.len()).sum()
    }

    fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// How many charges can be added.
    #[must_use]
    pub fn room(&self) -> usize {
        MOST.saturating_sub(self.waiting())
    }

    /// Returns true if any charge is unsettled.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.shards.iter().any(Ledger::is_any)
    }

    /// Its own ledger of a shard, created if necessary.
    fn own_ledger(&mut self, shard: Shard) -> Option<&mut Ledger> {
        let sender = self.sender;
        let is_own = |ledger: &Ledger| ledger.shard == shard && ledger.sender == sender;
        if !self.shards.iter().any(is_own) {
            self.shards.push(Ledger::new(shard, sender));
        }
        self.shards.iter_mut().find(|ledger| is_own(ledger))
    }

    /// Returns true if a batch can be sent to a shard that is not in `unavailable`.
    #[must_use]
    pub fn is_ready(&self, unavailable: &[Shard]) -> bool {
        self.shards.iter().any(|ledger| ledger.is_ready(unavailable))
    }

    /// The batches that can be sent, at most one for each shard.
    #[must_use]
    pub fn take(
        &mut self,
        unavailable: &[Shard],
        now: Micros,
    ) -> Vec<(Shard, SettlementBatch, Vec<Charge>)> {
        let mut taken = Vec::new();
        let is_first = |ledger: &&mut Ledger| {
            let is_new = !taken.contains(&ledger.shard);
            taken.extend(is_new.then_some(ledger.shard));
            is_new
        };
        let ready =
            self.shards.iter_mut().filter(|ledger| ledger.is_ready(unavailable)).filter(is_first);
        let (holder, template) = (self.holder, self.template.as_ref());
        let take = |ledger: &mut Ledger| {
            if ledger.batch.is_empty() {
                let count = BATCH.min(ledger.waiting.len());
                ledger.batch.extend(ledger.waiting.drain(..count));
                ledger.add_reports(template, holder, BATCH, now);
            }
            (ledger.is_pending, ledger.sent) = (true, now);
            let Ledger { sender, number, .. } = *ledger;
            let asks = ledger.batch.len();
            (ledger.shard, SettlementBatch { sender, number, asks }, ledger.batch.clone())
        };
        ready.map(take).collect()
    }

    /// Handles the end of a batch's call. Unless it was applied, the batch is sent again.
    pub fn on_batch_end(&mut self, shard: Shard, settles: SettlementBatch, taken: bool) {
        let is_it = |ledger: &Ledger| {
            (ledger.shard, ledger.sender, ledger.number) == (shard, settles.sender, settles.number)
        };
        let Some(at) = self.shards.iter().position(is_it) else { return };
        if let Some(ledger) = self.shards.get_mut(at) {
            ledger.is_pending = false;
            if taken {
                if ledger.batch.iter().any(slots::is_slot) {
                    ledger.heartbeat_at = ledger.heartbeat_at.max(ledger.sent);
                }
                ledger.is_reporting &= !ledger.unreported.is_empty();
                ledger.batch.clear();
                ledger.number += 1;
                if ledger.sender != self.sender && !ledger.is_any() {
                    self.shards.swap_remove(at);
                }
            }
        }
    }

    /// Drops all charges, because the hashes of callers have changed.
    pub fn clear(&mut self) {
        self.forget();
        let next = |ledger: &Ledger| (ledger.shard, ledger.number + 1);
        let own = self.shards.iter().filter(|ledger| ledger.sender == self.sender);
        let own: Vec<_> = own.map(next).collect();
        let left = |ledger: &Ledger| (ledger.waiting.len() + ledger.batch.len()) as u64;
        self.dropped += self.shards.iter().map(left).sum::<u64>();
        self.shards.clear();
        // A pending batch has another number.
        let anew = |(shard, number)| Ledger { number, ..Ledger::new(shard, self.sender) };
        self.shards.extend(own.into_iter().map(anew));
    }
}

impl Ledger {
    fn new(shard: Shard, sender: u64) -> Ledger {
        let (waiting, batch) = (VecDeque::new(), Vec::new());
        Ledger {
            shard,
            sender,
            waiting,
            batch,
            number: 1,
            is_pending: false,
            sent: 0,
            held: HashTable::new(),
            heartbeat_at: 0,
            is_reporting: false,
            unreported: Vec::new(),
        }
    }

    fn is_any(&self) -> bool {
        !self.batch.is_empty() || !self.waiting.is_empty() || !self.unreported.is_empty()
    }

    fn is_ready(&self, unavailable: &[Shard]) -> bool {
        self.is_any() && !self.is_pending && unavailable.binary_search(&self.shard).is_err()
    }
}
