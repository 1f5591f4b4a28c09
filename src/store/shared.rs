//! Usage counted for the whole gateway: callers in a fixed number of slots of shared data, updated
//! by compare-and-swap, so that the workers together never exceed a limit.
//!
//! A busy caller's permits are leased in blocks and spent without reading shared data. A block is
//! charged when it is leased, so leases can only make the gateway admit less. A request that lacks
//! permits while other workers hold leases is refused at once, with `retry-after: 1`.

mod arrears;
mod charge;
mod prepare;
mod read;
mod returns;
mod usage;

use std::rc::Rc;

use super::leases::Leases;
use super::plans::ByPlan;
use super::reservation::Memo;
use super::slots::caller_slots::CallerSlots;
use super::slots::names::Names;
use super::slots::slot::SlotFormat;
use super::slots::traffic::Traffic;
use super::slots::transaction::Transaction;
use super::usage::{Inquiry, Maintained, Order, OrderError, Remaining, Usage};
use super::{Account, CounterSpec, Reservation, Store};
use crate::permit::OpenCharge;
use diana_algorithm::latest_renewal;
use diana_policy::Memory;
use diana_policy::port::SharedData;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

/// The memory of a rule: leases in each worker, slots in the host. `is_share` as in
/// [`CounterSpec::is_share`].
pub(super) fn memory(words: usize, callers: Option<usize>, lines: usize, is_share: bool) -> Memory {
    let format = SlotFormat { words, has_arrears: is_share };
    let shared = Names::most(callers).map(|(slots, callers)| slots * format.bytes(callers));
    Memory { worker: Leases::bytes(callers.unwrap_or(1), lines), shared: shared.iter().sum() }
}

/// A rule that all workers count together.
pub struct Shared {
    spec: CounterSpec,
    plans: ByPlan<CounterSpec>,
    traffic: Rc<Traffic>,
    leases: Leases,
    slots: CallerSlots,
    /// The latest check by the state in the gateway, and its number.
    draft: Option<Box<Transaction>>,
    number: u64,
}

impl Shared {
    /// The store of a rule in a namespace.
    pub fn new(
        spec: CounterSpec,
        namespace: &str,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
    ) -> Shared {
        Shared {
            leases: Leases::of(&spec),
            slots: CallerSlots::new(&spec, namespace, data, traffic.clone()),
            traffic,
            plans: ByPlan::new(&spec),
            draft: None,
            number: 0,
            spec,
        }
    }

    /// Switches to the quota of this plan.
    #[inline]
    fn use_plan(&mut self, plan: u32) {
        if self.plans.select(plan, &mut self.spec, |spec| Some(spec.clone())) {
            self.slots.use_algorithm(&self.spec.algorithm);
            self.leases.plan = plan;
        }
    }

    /// Returns true if the draft is about this reservation.
    fn is_current(&self, reservation: &Reservation) -> bool {
        reservation.memo == Memo::Draft(self.number) && self.draft.is_some()
    }

    /// Records permits granted by Redis, as far as permits of this store's quota remain.
    pub fn record_grant(&mut self, account: Account, permits: u64, now: Now) {
        self.use_plan(account.plan);
        let mut transaction = self.begin(account.key, now);
        while transaction.may_try() {
            self.read(&mut transaction);
            let fitting = permits.min(self.slots.left(&transaction));
            if fitting == 0
                || !self.step(&mut transaction, fitting).is_admitted()
                || self.slots.write(&mut transaction, 0)
            {
                return;
            }
        }
    }
}

impl Store for Shared {
    fn check(&mut self, reservation: &mut Reservation) {
        self.use_plan(reservation.account.plan);
        if !self.recall(reservation) {
            self.read_and_check(reservation);
        }
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) {
        let Reservation { account, cost, now, memo, .. } = *reservation;
        if reservation.is_charged() || !reservation.is_admitted() {
            return;
        }
        if memo == Memo::Lease {
            reservation.receipt = self.leases.spend(account.key, cost, now);
            if reservation.is_charged() {
                return;
            }
        }
        self.use_plan(account.plan);
        if !self.is_current(reservation) {
            // Another request has spent the lease since the check, or was checked.
            self.read_and_check(reservation);
        }
        self.charge_gateway(reservation, delay);
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        let Some(receipt) = reservation.receipt.take() else { return };
        let Reservation { account, cost, now, memo, .. } = *reservation;
        if memo == Memo::Lease {
            return self.leases.unspend(account.key, cost);
        }
        self.use_plan(account.plan);
        if self.is_current(reservation)
            && let Some(mut draft) = self.draft.take()
        {
            self.undo_charge(cost, &mut draft);
            // Its copy of the slot is old.
            self.number += 1;
            self.draft = Some(draft);
        } else {
            let charge = Settlement { receipt, since: now.mono, reserved: cost, used: 0 };
            _ = self.settle_at(&charge, &mut self.begin(account.key, now));
        }
    }

    fn settle(&mut self, charge: &OpenCharge, now: Now) -> bool {
        let settlement = charge.settlement();
        if settlement.is_even() && !self.spec.keeps_used && !self.spec.is_share {
            return true;
        }
        self.use_plan(charge.plan);
        let mut transaction = self.begin(charge.key, now);
        self.settle_at(&settlement, &mut transaction)
    }

    fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining> {
        let Reservation { account, cost, now, .. } = *reservation;
        self.use_plan(account.plan);
        let algorithm = &self.spec.algorithm;
        let is_current = self.is_current(reservation);
        Some(match self.draft.as_deref().filter(|_| is_current) {
            Some(draft) if reservation.is_charged() => {
                let renewal = algorithm.balance(&draft.after, draft.now).renewal;
                let lease = self.leases.find(account.key);
                Remaining { permits: self.slots.remaining_after(draft, lease), renewal }
            }
            Some(draft) => algorithm.balance(&draft.state, draft.now).into(),
            None => {
                let renewal = latest_renewal(&**algorithm, cost, now);
                let mut transaction = self.begin(account.key, now);
                self.read(&mut transaction);
                Remaining { permits: self.slots.left(&transaction), renewal }
            }
        })
    }

    fn inquire(&mut self, inquiry: &mut Inquiry, now: Now) -> Option<Result<Usage, OrderError>> {
        let Account { key, plan } = inquiry.account;
        self.use_plan(plan);
        let done = if inquiry.order == Order::Reset { self.reset(key, now) } else { Ok(()) };
        Some(done.map(|()| self.usage_of(key, now)))
    }

    fn maintain(&mut self, now: Now) -> Maintained {
        self.return_blocks(now, false);
        Maintained { is_busy: self.leases.has_blocks(), ..Maintained::default() }
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.leases.has_blocks() {
            self.return_blocks(now, true);
        }
        self.leases.clear();
        0
    }
}
