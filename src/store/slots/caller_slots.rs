//! Reads callers from slots, and changes them by compare-and-swap.

use std::rc::Rc;
use std::sync::Arc;

use super::Traffic;
use super::arrears::OpenArrears;
use super::names::{Names, bucket};
use super::outstanding::{self, Outstanding};
use super::slot::SlotFormat;
use super::transaction::{Home, Transaction};
use super::{SlotDraft, Slots};
use crate::counter_spec::CounterSpec;
use crate::lease::{Block, Lease};
use diana_algorithm::{Algorithm, UsageReport};
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::settlement::Settlement;
use diana_policy::time::Micros;

/// The slots of one rule, by caller. A read of a caller costs one access to shared data, or two if
/// buckets are in use.
pub(crate) struct CallerSlots {
    slots: Slots,
    pub(super) algorithm: Arc<dyn Algorithm>,
    window: Micros,
    /// Whether outstanding permits are those that no reply of the authority contains, and not
    /// leases, which hold back a bucket.
    asks_after: bool,
    names: Names,
    pub(super) scratch: Box<[u64]>,
}

impl CallerSlots {
    pub(crate) fn new(
        spec: &CounterSpec,
        namespace: &str,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
    ) -> CallerSlots {
        let algorithm = spec.algorithm.clone();
        let names = Names::new(namespace, spec.fingerprint, spec.keys);
        let has_arrears = spec.is_share || spec.asks_after;
        let format = SlotFormat { words: algorithm.properties().words, has_arrears };
        CallerSlots {
            slots: Slots::new(data, traffic, format),
            window: algorithm.properties().window,
            asks_after: spec.asks_after,
            names,
            scratch: vec![0; algorithm.properties().words].into(),
            algorithm,
        }
    }

    /// Switches to another algorithm with the same format of states.
    pub(crate) fn use_algorithm(&mut self, algorithm: &Arc<dyn Algorithm>) {
        self.algorithm = algorithm.clone();
    }

    /// Remaining permits.
    pub(crate) fn left(&self, transaction: &Transaction) -> u64 {
        self.algorithm.balance(&transaction.state, transaction.now).remaining
    }

    /// The charged permits of a state that was read or made for `transaction`.
    pub(crate) fn charged(&self, state: &[u64], transaction: &Transaction) -> u64 {
        self.algorithm.balance(state, transaction.now).charged
    }

    /// Remaining permits after the charge, including the rest of a lease.
    pub(crate) fn remaining_after(
        &mut self,
        transaction: &Transaction,
        lease: Option<&mut Lease>,
    ) -> u64 {
        let (block, left) = lease.map(|lease| lease.block()).unwrap_or_default();
        let refund = Settlement::refund(block.receipt, left);
        let Transaction { now, after, .. } = transaction;
        self.algorithm.settle(after, *now, &refund, &mut self.scratch);
        self.algorithm.balance(&self.scratch, transaction.now).remaining
    }

    /// Reads the caller.
    pub(crate) fn read(&mut self, transaction: &mut Transaction) {
        transaction.slot = self.get_slot(transaction);
        if self.load(transaction) {
            return;
        }
        let Transaction { now, slot: SlotDraft { slot, .. }, state, .. } = transaction;
        let (algorithm, scratch, now) = (&*self.algorithm, &mut self.scratch, *now);
        let expected = self.names.callers();
        if slot.len() >= expected {
            slot.sweep(algorithm, now, state, scratch);
        }
        transaction.home = if slot.len() < 2 * expected { Home::New } else { Home::Overflow };
        transaction.outstanding = Outstanding::unpack(0, now.mono);
        transaction.arrears = OpenArrears::default();
        state.fill(0);
        let spilled = slot.spilled();
        if transaction.is_overflow() || now.mono < spilled {
            self.load_bucket(transaction);
        }
    }

    /// Reads the caller, and writes nothing. Returns false if it has no state of its own.
    pub(crate) fn read_known(&mut self, transaction: &mut Transaction) -> bool {
        transaction.slot = self.slots.get(self.names.slot(transaction.key));
        if transaction.slot.is_new() {
            if self.slots.is_absent(self.names.count()) {
                return false;
            }
            transaction.slot = self.get_slot(transaction);
        }
        self.load(transaction)
    }

    /// Loads a caller from its slot. Returns false if it is not there.
    fn load(&mut self, transaction: &mut Transaction) -> bool {
        transaction.decided = None;
        let Transaction { key, at, slot: SlotDraft { slot, .. }, state, .. } = transaction;
        let (algorithm, scratch) = (&*self.algorithm, &mut self.scratch);
        let now = slot.watermark().no_earlier(*at, self.window);
        transaction.now = now;
        let Some(index) = slot.find(key.hash) else { return false };
        transaction.home = Home::Slot;
        transaction.outstanding = Outstanding::unpack(slot.load(index, state), now.mono);
        transaction.arrears = slot.arrears(index);
        if self.asks_after {
            transaction.outstanding.age(now.mono);
            return true;
        }
        transaction.outstanding.settle(algorithm, state, scratch, now.mono);
        if transaction.arrears.is_any() {
            transaction.arrears.limit(algorithm.balance(state, now).charged);
        }
        true
    }

    /// Loads the usage of the caller's bucket, which is at least the caller's.
    fn load_bucket(&mut self, transaction: &mut Transaction) {
        transaction.bucket = self.slots.get(self.names.bucket(transaction.key));
        if let Some(index) = transaction.bucket.slot.find(bucket(transaction.key)) {
            transaction.bucket.slot.load(index, &mut transaction.state);
        }
    }

    /// Returns the rest of a lease. Returns false if there was none.
    pub(crate) fn return_lease(
        &mut self,
        transaction: &mut Transaction,
        (block, left): (Block, u64),
    ) -> bool {
        if transaction.home != Home::Slot || block.permits == 0 {
            return false;
        }
        if let Some(outstanding) = transaction.outstanding.without(block.permits, block.term) {
            transaction.outstanding = outstanding;
            self.settle(transaction, &Settlement::refund(block.receipt, left));
        } else {
            // The return is late: the permits no longer count as outstanding.
            let (receipt, since) = (block.receipt, outstanding::over(block.term));
            self.settle(transaction, &Settlement { receipt, since, reserved: left, used: 0 });
        }
        transaction.arrears.remove(left);
        true
    }

    /// Returns true if the caller is unknown.
    pub(crate) fn is_unknown(&self, transaction: &Transaction) -> bool {
        transaction.home == Home::New && transaction.state.iter().all(|word| *word == 0)
    }

    /// Settles a charge.
    pub(crate) fn settle(&mut self, transaction: &mut Transaction, settlement: &Settlement) {
        let Transaction { state, now, .. } = transaction;
        self.algorithm.settle(state, *now, settlement, &mut self.scratch);
        state.swap_with_slice(&mut self.scratch);
    }

    /// Corrects the state by a report of the authority.
    pub(crate) fn learn(&mut self, transaction: &mut Transaction, report: &UsageReport) {
        self.algorithm.learn(&transaction.state, report, &mut self.scratch);
        transaction.state.swap_with_slice(&mut self.scratch);
    }

    /// Writes the state after the charge, with a leased block. Returns false if another worker was
    /// faster.
    pub(crate) fn write(&mut self, transaction: &mut Transaction, block: u64) -> bool {
        if transaction.is_overflow() {
            return self.write_bucket(transaction);
        }
        transaction.slot.slot.put(
            transaction.key.hash,
            transaction.outstanding.with(block).pack(),
            &transaction.after,
            transaction.arrears,
        );
        self.swap_slot(transaction)
    }

    /// Writes the current state, with returned permits. Returns false if another worker was faster.
    pub(crate) fn write_returned(&mut self, transaction: &mut Transaction) -> bool {
        std::mem::swap(&mut transaction.state, &mut transaction.after);
        let written = self.write(transaction, 0);
        std::mem::swap(&mut transaction.state, &mut transaction.after);
        written
    }

    /// Returns true if the caller's state is still the one after the charge. The next write
    /// replaces the state read here.
    pub(crate) fn is_untouched(&mut self, transaction: &mut Transaction) -> bool {
        transaction.slot = self.get_slot(transaction);
        let (draft, hash) = if transaction.is_overflow() {
            transaction.bucket = self.slots.get(self.names.bucket(transaction.key));
            (&transaction.bucket, bucket(transaction.key))
        } else {
            (&transaction.slot, transaction.key.hash)
        };
        let Some(index) = draft.slot.find(hash) else { return false };
        draft.slot.load(index, &mut self.scratch);
        transaction.arrears = draft.slot.arrears(index);
        *self.scratch == *transaction.after
    }

    /// After charging an overflow bucket, also writes the caller's slot, so that a concurrent
    /// insert of the caller fails its compare-and-swap and reads the bucket again.
    fn write_bucket(&mut self, transaction: &mut Transaction) -> bool {
        let none = OpenArrears::default();
        transaction.bucket.slot.put(bucket(transaction.key), 0, &transaction.after, none);
        if !self.slots.swap(self.names.bucket(transaction.key), &transaction.bucket) {
            transaction.lost += 1;
            return false;
        }
        // If the wall clock is set back, a window lasts longer than it seems now, but at most one
        // length longer.
        let longest = transaction.now.mono.saturating_add(self.window);
        let until = self.algorithm.expires(&transaction.after, transaction.now).max(longest);
        while transaction.may_try() {
            transaction.slot.slot.spill(until);
            if self.swap_slot(transaction) {
                return true;
            }
            transaction.slot = self.get_slot(transaction);
            if transaction.slot.slot.find(transaction.key.hash).is_some() {
                // By now the caller has an entry, without this charge.
                return false;
            }
        }
        false
    }

    fn swap_slot(&mut self, transaction: &mut Transaction) -> bool {
        let name = self.names.slot(transaction.key);
        let written = self.slots.swap(name, &transaction.slot);
        transaction.lost += usize::from(!written);
        written
    }

    fn get_slot(&mut self, transaction: &mut Transaction) -> SlotDraft {
        let found = self.slots.get(self.names.slot(transaction.key));
        let is_news = found.is_new()
            && transaction.key != Key::ALL
            && self.slots.agree_on(&mut self.names, &mut transaction.lost);
        if !is_news {
            return found;
        }
        self.slots.get(self.names.slot(transaction.key))
    }
}
