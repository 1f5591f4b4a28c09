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
use super::reservation::By;
use super::slots::names::Names;
use super::slots::slot::SlotFormat;
use super::slots::traffic::Traffic;
use super::slots::transactions::Transactions;
use super::usage::{Cannot, Inquiry, Maintained, Order, Remaining, Usage};
use super::{Account, CounterSpec, Reservation, Store};
use crate::permit::OpenCharge;
use diana_algorithm::latest_renewal;
use diana_policy::Memory;
use diana_policy::decision::Decision;
use diana_policy::port::SharedData;
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
    transactions: Transactions,
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
            transactions: Transactions::new(&spec, namespace, data, traffic.clone()),
            traffic,
            plans: ByPlan::new(&spec),
            spec,
        }
    }

    /// Switches to the quota of this plan.
    #[inline]
    fn use_plan(&mut self, plan: u32) {
        if self.plans.take(plan, &mut self.spec, |spec| Some(spec.clone())) {
            self.transactions.use_algorithm(&self.spec.algorithm);
            self.leases.plan = plan;
        }
    }

    /// Records permits granted by Redis, as far as permits of this store's quota remain.
    pub fn record_grant(&mut self, account: Account, permits: u64, now: Now) {
        self.use_plan(account.plan);
        let mut transaction = self.begin(account.key, now);
        while transaction.may_try() {
            self.read(&mut transaction);
            let fitting = permits.min(self.transactions.left(&transaction));
            if fitting == 0
                || !self.step(&mut transaction, fitting).is_admitted()
                || self.transactions.write(&mut transaction, 0)
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

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        let Reservation { account, cost, now, decision, is_charged, .. } = *reservation;
        if is_charged || !decision.is_admitted() {
            return decision;
        }
        if matches!(reservation.by, By::Lease) {
            if let Some(receipt) = self.leases.spend(account.key, cost, now) {
                reservation.receipt = receipt;
                reservation.is_charged = true;
                return Decision::NOW;
            }
            // Another request has spent the lease since the check.
            self.use_plan(account.plan);
            let mut transaction = self.begin(account.key, now);
            self.read(&mut transaction);
            reservation.by = By::Gateway(transaction);
        }
        self.use_plan(account.plan);
        self.charge_gateway(reservation, delay)
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        if !std::mem::take(&mut reservation.is_charged) {
            return;
        }
        let Reservation { account, cost, .. } = *reservation;
        self.use_plan(account.plan);
        match &mut reservation.by {
            By::Lease => self.leases.unspend(account.key, cost),
            By::Gateway(transaction) => self.undo_charge(cost, transaction),
            _ => {}
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
        Some(match &reservation.by {
            By::Lease => {
                let renewal = latest_renewal(&**algorithm, cost, now);
                let mut transaction = self.begin(account.key, now);
                self.read(&mut transaction);
                Remaining { permits: self.transactions.left(&transaction), renewal }
            }
            By::Gateway(transaction) if reservation.is_charged => {
                let renewal = algorithm.balance(&transaction.after, transaction.now).renewal;
                let lease = self.leases.find(account.key);
                Remaining {
                    permits: self.transactions.remaining_after(transaction, lease),
                    renewal,
                }
            }
            By::Gateway(transaction) => {
                algorithm.balance(&transaction.state, transaction.now).into()
            }
            _ => Remaining { permits: reservation.left.unwrap_or(0), renewal: None },
        })
    }

    fn inquire(&mut self, inquiry: &mut Inquiry, now: Now) -> Option<Result<Usage, Cannot>> {
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
