//! The leases of a gateway from an authority outside of it: one for each busy caller, in shared data.
//!
//! A worker takes a part of the block there, and spends it alone (`leases.rs`). The lease counts the
//! demand of all workers, and only one of them asks for the next block at a time.

use std::rc::Rc;

use super::lease::{Block, Lease, Pace};
use super::slots::names::Names;
use super::slots::{ATTEMPTS, Found, HOST};
use crate::Account;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, Now};
use diana_policy::words;

/// Words of a line.
const WORDS: usize = Lease::WORDS + 4;

/// Bytes of a line.
const LINE: usize = WORDS * size_of::<u64>();

/// The leases of one rule. Each caller has one possible line, as in [`Leases`](super::leases::Leases).
pub struct GatewayLeases {
    data: Rc<dyn SharedData>,
    names: Names,
}

/// The lease of one caller, and the block before it, which any worker returns with the next question:
/// no return needs a separate call.
#[derive(Debug, Clone, Copy, Default)]
pub struct GatewayLease {
    /// The lease.
    pub lease: Lease,
    former: (Block, u64),
}

impl GatewayLease {
    fn of_words(words: &[u64; WORDS]) -> GatewayLease {
        let (lease, former) = words.split_at(Lease::WORDS);
        let lease = lease.try_into().map_or(Lease::default(), Lease::of_words);
        let &[permits, term, receipt, left] = former else { return GatewayLease::default() };
        GatewayLease { lease, former: (Block { permits, term, receipt }, left) }
    }

    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let (lease, former) = words.split_at_mut(Lease::WORDS);
        lease.copy_from_slice(&self.lease.words());
        let (Block { permits, term, receipt }, left) = self.former;
        former.copy_from_slice(&[permits, term, receipt, left]);
        words
    }

    /// Takes back the part of a worker. Returns false if it is a part of neither block.
    #[must_use]
    pub fn merge(&mut self, part: Block, left: u64) -> bool {
        if self.lease.merge(part, left) {
            return true;
        }
        let (block, unspent) = &mut self.former;
        let is_same = block.permits > 0 && part.is_charged_as(*block);
        if is_same {
            (block.permits, *unspent) = (block.permits + part.permits, *unspent + left);
        }
        is_same
    }

    /// Keeps a block that another one follows. Returns the one before it.
    pub fn follow(&mut self, former: (Block, u64)) -> Option<(Block, u64)> {
        if former.0.permits == 0 {
            return None;
        }
        Some(std::mem::replace(&mut self.former, former)).filter(|(block, _)| block.permits > 0)
    }

    /// Removes the permits to return with the question for the next block: spent ones, which count as
    /// outstanding until then, and unspent ones if no request is expected before the reply.
    pub fn take_before_next(&mut self, now: Now, pace: Pace) -> [(Block, u64); 2] {
        let keeps_rest = self.lease.has_next(now, pace);
        [std::mem::take(&mut self.former), self.lease.take_before_next(keeps_rest, now)]
    }

    /// Returns true if the blocks must be returned now. Spent ones of a slow caller are returned with the
    /// next question, or count as outstanding until their term ends.
    #[must_use]
    pub fn has_ended(&self, now: Now, pace: Pace) -> bool {
        let unspent = self.lease.block().1 + self.former.1;
        let returns_spent = self.lease.has_ended(now) && self.lease.has_next(now, pace);
        unspent > 0 && !self.lease.has(0, now) || returns_spent
    }

    /// Removes both blocks, for return.
    pub fn take_blocks(&mut self) -> [(Block, u64); 2] {
        [std::mem::take(&mut self.former), self.lease.take_block()]
    }
}

impl GatewayLeases {
    /// The leases of the rule with this fingerprint in a namespace.
    #[must_use]
    pub fn new(namespace: &str, fingerprint: u64, data: Rc<dyn SharedData>) -> GatewayLeases {
        GatewayLeases { data, names: Names::new(namespace, fingerprint, 1) }
    }

    /// Memory in bytes for `callers`.
    pub(crate) fn bytes(callers: Option<usize>) -> u64 {
        Names::lines(callers) * (HOST + LINE as u64)
    }

    /// Changes the lease of a caller, which begins if there is none. `change` is called again if
    /// other workers are faster. Returns its latest result, or `None` if the line has permits of
    /// another caller.
    pub fn change<T>(
        &mut self,
        Account { key, plan }: Account,
        now: Micros,
        mut change: impl FnMut(&mut GatewayLease) -> T,
    ) -> Option<T> {
        let name = self.names.line(key);
        for _ in 0..ATTEMPTS {
            let (words, number) = words::read(&*self.data, name);
            let mut known = GatewayLease::of_words(&words);
            if known.lease.key() != key {
                if !known.lease.is_over(now) {
                    return None;
                }
                known = GatewayLease { lease: Lease::of(key, plan), ..GatewayLease::default() };
            }
            let result = change(&mut known);
            let changed = known.words();
            if changed == words || words::write(changed, &*self.data, name, number) {
                return Some(result);
            }
        }
        None
    }
}

/// Classifies a line of a removed rule.
pub(crate) fn classify(bytes: &[u8], now: Micros) -> Found {
    let (words, _) = bytes.as_chunks();
    // Otherwise it is empty, or the rule has not written it.
    let Ok(words) = <&[[u8; 8]; WORDS]>::try_from(words) else { return Found::Empty };
    let GatewayLease { lease, .. } = GatewayLease::of_words(&words.map(u64::from_le_bytes));
    if lease.is_over(now) { Found::Over(Vec::new()) } else { Found::InUse(lease.ends()) }
}
