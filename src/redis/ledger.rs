//! Settlements to send to Redis: the difference between reserved and used permits of requests, and
//! changes of in-flight slots.
//!
//! No request waits for them. They are sent in numbered batches, and Redis applies each batch once:
//! a batch without a reply is sent again unchanged until it is confirmed. Thus no settlement is
//! applied twice, or lost while Redis is unavailable.

mod places;

use std::collections::VecDeque;

use hashbrown::HashTable;

use super::protocol::{Charge, Settles};
use super::shard::Shard;
use diana_policy::time::Micros;

/// The maximum of waiting charges. Beyond it, the reservation counts as the usage.
const MOST: usize = 8192;

/// The maximum of charges in a batch.
const BATCH: usize = 64;

/// Charges to settle, by shard.
#[derive(Default)]
pub struct Ledgers {
    /// Its own ledgers, and those taken over from clients that have ended.
    parts: Vec<Ledger>,
    /// The random number that identifies it as a sender.
    sender: u64,
    /// The number of this holder of in-flight slots. It increases each time that its slots are
    /// forgotten.
    holder: u64,
    /// Charges dropped for lack of room since the counter was last read.
    pub dropped: u64,
}

/// A rule and a caller of it, and the number of its in-flight slots.
type HeldSlots = ((u64, u64), u64);

struct Ledger {
    part: Shard,
    sender: u64,
    waiting: VecDeque<Charge>,
    /// The next batch, and its number.
    batch: Vec<Charge>,
    number: u64,
    /// Whether it is pending, and when it was sent.
    is_out: bool,
    sent: Micros,
    /// Callers with in-flight slots, and when the shard last received a heartbeat.
    held: HashTable<HeldSlots>,
    told: Micros,
}

impl Ledgers {
    /// Adds a charge to settle in a shard.
    pub fn add(&mut self, part: Shard, charge: Charge) {
        if self.is_full() {
            self.dropped += 1;
            return;
        }
        if let Some(ledger) = self.own(part) {
            ledger.waiting.push_back(charge);
        }
    }

    /// Sets the random number.
    pub fn begin(&mut self, random: u64) {
        self.sender = random;
        self.name_holder(random);
    }

    /// Takes over the unsettled charges of ledgers that have ended.
    pub fn inherit(&mut self, other: &mut Ledgers) {
        for mut ledger in std::mem::take(&mut other.parts) {
            // A pending batch is sent again under the same number.
            ledger.is_out = false;
            ledger.held.clear();
            if self.waiting() + ledger.waiting.len() > MOST {
                self.dropped += std::mem::take(&mut ledger.waiting).len() as u64;
            }
            if ledger.is_any() {
                self.parts.push(ledger);
            }
        }
        self.dropped += std::mem::take(&mut other.dropped);
    }

    fn waiting(&self) -> usize {
        self.parts.iter().map(|ledger| ledger.waiting.len()).sum()
    }

    fn is_full(&self) -> bool {
        self.waiting() >= MOST
    }

    /// Returns true if any charge is unsettled.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.parts.iter().any(Ledger::is_any)
    }

    /// Its own ledger of a shard, created if necessary.
    fn own(&mut self, part: Shard) -> Option<&mut Ledger> {
        let sender = self.sender;
        let is_own = |ledger: &Ledger| ledger.part == part && ledger.sender == sender;
        if !self.parts.iter().any(is_own) {
            self.parts.push(Ledger::new(part, sender));
        }
        self.parts.iter_mut().find(|ledger| is_own(ledger))
    }

    /// Returns true if a batch can be sent to a shard that is not in `away`.
    #[must_use]
    pub fn is_ready(&self, away: &[Shard]) -> bool {
        self.parts.iter().any(|ledger| ledger.is_ready(away))
    }

    /// The batches that can be sent, at most one for each shard.
    #[must_use]
    pub fn take(&mut self, away: &[Shard], now: Micros) -> Vec<(Shard, Settles, Vec<Charge>)> {
        let mut taken = Vec::new();
        let is_first = |ledger: &&mut Ledger| {
            let is_new = !taken.contains(&ledger.part);
            taken.extend(is_new.then_some(ledger.part));
            is_new
        };
        let ready = self.parts.iter_mut().filter(|ledger| ledger.is_ready(away)).filter(is_first);
        let take = |ledger: &mut Ledger| {
            if ledger.batch.is_empty() {
                let count = BATCH.min(ledger.waiting.len());
                ledger.batch.extend(ledger.waiting.drain(..count));
            }
            (ledger.is_out, ledger.sent) = (true, now);
            let Ledger { sender, number, .. } = *ledger;
            let asks = ledger.batch.len();
            (ledger.part, Settles { sender, number, asks }, ledger.batch.clone())
        };
        ready.map(take).collect()
    }

    /// Handles the end of a batch's call. Unless it was applied, the batch is sent again.
    pub fn come_back(&mut self, part: Shard, settles: Settles, taken: bool) {
        let is_it = |ledger: &Ledger| {
            (ledger.part, ledger.sender, ledger.number) == (part, settles.sender, settles.number)
        };
        let Some(at) = self.parts.iter().position(is_it) else { return };
        if let Some(ledger) = self.parts.get_mut(at) {
            ledger.is_out = false;
            if taken {
                if ledger.batch.iter().any(places::is_place) {
                    ledger.told = ledger.told.max(ledger.sent);
                }
                ledger.batch.clear();
                ledger.number += 1;
                if ledger.sender != self.sender && !ledger.is_any() {
                    self.parts.swap_remove(at);
                }
            }
        }
    }

    /// Drops all charges, because the hashes of callers have changed.
    pub(super) fn clear(&mut self) {
        self.forget();
        let next = |ledger: &Ledger| (ledger.part, ledger.number + 1);
        let own = self.parts.iter().filter(|ledger| ledger.sender == self.sender);
        let own: Vec<_> = own.map(next).collect();
        let left = |ledger: &Ledger| (ledger.waiting.len() + ledger.batch.len()) as u64;
        self.dropped += self.parts.iter().map(left).sum::<u64>();
        self.parts.clear();
        // A pending batch has another number.
        let anew = |(part, number)| Ledger { number, ..Ledger::new(part, self.sender) };
        self.parts.extend(own.into_iter().map(anew));
    }
}

impl Ledger {
    fn new(part: Shard, sender: u64) -> Ledger {
        let (waiting, batch) = (VecDeque::new(), Vec::new());
        let (number, is_out, sent, held, told) = (1, false, 0, HashTable::new(), 0);
        Ledger { part, sender, waiting, batch, number, is_out, sent, held, told }
    }

    fn is_any(&self) -> bool {
        !self.batch.is_empty() || !self.waiting.is_empty()
    }

    fn is_ready(&self, away: &[Shard]) -> bool {
        self.is_any() && !self.is_out && away.binary_search(&self.part).is_err()
    }
}
