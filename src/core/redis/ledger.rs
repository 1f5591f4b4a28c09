//! What is to be settled in Redis: charges whose requests used less or more than was reserved for them.
//!
//! Nobody waits for it. It goes out in numbered batches, of which Redis takes each one once: one whose answer got lost
//! is sent again as it was, until it is answered. So nothing is settled twice, nor forgotten while Redis is away.

mod places;

use std::collections::VecDeque;

use super::part::Part;
use super::protocol::Charge;
use crate::time::Micros;

/// Most charges that wait. What does not fit stays as it was reserved.
const MOST: usize = 8192;

/// Most of them in a batch.
const BATCH: usize = 64;

/// The charges that are to be settled, by the parts of Redis where they lie.
#[derive(Default)]
pub struct Ledgers {
    parts: Vec<Ledger>,
    waiting: usize,
    /// The number under which places in flight are held here, and one more for each time that they were forgotten.
    holder: u64,
    /// Those that did not fit, since somebody last took note.
    pub dropped: u64,
}

struct Ledger {
    part: Part,
    waiting: VecDeque<Charge>,
    /// The batch that is to be taken next, and its number.
    batch: Vec<Charge>,
    number: u64,
    /// Whether it is on its way, and since when.
    is_out: bool,
    sent: Micros,
    /// Places that are held, and when the part last heard of it that they are.
    held: u64,
    told: Micros,
}

impl Ledgers {
    /// Has a charge settled where it lies.
    pub fn add(&mut self, part: Part, charge: Charge) {
        if self.waiting >= MOST {
            self.dropped += 1;
            return;
        }
        self.waiting += 1;
        match self.parts.iter_mut().find(|ledger| ledger.part == part) {
            Some(ledger) => ledger.waiting.push_back(charge),
            None => {
                let (waiting, batch) = (VecDeque::from([charge]), Vec::new());
                let (number, is_out, sent, held, told) = (1, false, 0, 0, 0);
                self.parts.push(Ledger { part, waiting, batch, number, is_out, sent, held, told });
            }
        }
    }

    /// Whether a batch can leave for one of the parts that are not `away`.
    #[must_use]
    pub fn is_ready(&self, away: &[Part]) -> bool {
        self.parts.iter().any(|ledger| ledger.is_ready(away))
    }

    /// The batches that can leave, each with its part and its number.
    pub(super) fn take(&mut self, away: &[Part], now: Micros) -> Vec<(Part, u64, Vec<Charge>)> {
        let ready = self.parts.iter_mut().filter(|ledger| ledger.is_ready(away));
        let take = |ledger: &mut Ledger| {
            if ledger.batch.is_empty() {
                let count = BATCH.min(ledger.waiting.len());
                ledger.batch.extend(ledger.waiting.drain(..count));
                self.waiting -= count;
            }
            (ledger.is_out, ledger.sent) = (true, now);
            (ledger.part, ledger.number, ledger.batch.clone())
        };
        ready.map(take).collect()
    }

    /// The batch with a number has come back; unless it was taken it is sent again.
    pub(super) fn come_back(&mut self, part: Part, number: u64, taken: bool) {
        let is_it = |ledger: &&mut Ledger| ledger.part == part && ledger.number == number;
        if let Some(ledger) = self.parts.iter_mut().find(is_it) {
            ledger.is_out = false;
            if taken {
                ledger.batch.clear();
                ledger.number += 1;
                ledger.told = ledger.told.max(ledger.sent);
            }
        }
    }

    /// Gives all of it up: callers have other names from now on.
    pub(super) fn clear(&mut self) {
        self.waiting = 0;
        self.forget();
        for ledger in &mut self.parts {
            ledger.waiting.clear();
            ledger.batch.clear();
            ledger.is_out = false;
            // Whatever is on its way has another number.
            ledger.number += 1;
        }
    }
}

impl Ledger {
    fn is_ready(&self, away: &[Part]) -> bool {
        let is_any = !self.batch.is_empty() || !self.waiting.is_empty();
        is_any && !self.is_out && away.binary_search(&self.part).is_err()
    }
}
