//! Usage counted for the whole gateway: callers in a fixed number of slots of shared data, updated
//! by compare-and-swap, so that never one permit too many is given whatever the number of workers.
//!
//! A hot caller's permits are taken in blocks and spent without asking. A block is charged when it
//! is taken, so it can only make the gateway admit less; who is refused only because others hold what
//! is missing is told so, and waits for it.

mod back;
mod charge;
mod lift;
mod prepare;
mod read;
mod terms;

use std::rc::Rc;

use super::lease::Lease;
use super::leases::Leases;
use super::plans::ByPlan;
use super::reservation::By;
use super::slots::names::Names;
use super::slots::slot;
use super::slots::traffic::Traffic;
use super::slots::transactions::Transactions;
use super::usage::{Unliftable, Usage};
use super::{CounterSpec, Reservation, Store};
use crate::algorithm::renewal;
use crate::decision::Decision;
use crate::key::Key;
use crate::policy::Memory;
use crate::port::SharedData;
use crate::settlement::Settlement;
use crate::time::{Micros, Now};
pub(crate) use prepare::gather;
use terms::Terms;

/// The memory of a rule: leases in each worker, slots in the host.
pub(super) fn memory(words: usize, callers: Option<usize>, lines: usize) -> Memory {
    let shared = Names::most(callers).map(|(slots, callers)| slots * slot::bytes(words, callers));
    Memory { worker: Leases::bytes(callers.unwrap_or(1), lines), shared: shared.iter().sum() }
}

/// A rule that all workers count together.
pub struct Shared {
    terms: Terms,
    plans: ByPlan<Terms>,
    traffic: Rc<Traffic>,
    leases: Leases,
    transactions: Transactions,
    /// Whether what callers used may be lifted.
    lifts: bool,
}

impl Shared {
    /// A rule of a namespace.
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
            terms: Terms::of(&spec),
            lifts: false,
        }
    }

    /// The same, where what callers used may be lifted.
    pub(super) fn lifting(self, lifts: bool) -> Shared {
        Shared { lifts, ..self }
    }

    /// Charges what somebody else let through, unless that would never be let through here.
    pub(crate) fn note(&mut self, key: Key, permits: u64, now: Now) {
        let mut transaction = self.begin(key, now);
        while transaction.may_try() {
            self.read(&mut transaction);
            if !self.step(&mut transaction, permits).is_admitted()
                || self.transactions.write(&mut transaction, 0)
            {
                return;
            }
        }
    }
}

impl Store for Shared {
    fn judge_by(&mut self, plan: u32) {
        if self.plans.take(plan, &mut self.terms, |spec| Some(Terms::of(spec))) {
            self.transactions.judge_by(&self.terms.spec.algorithm);
            self.leases.plan = plan;
        }
    }

    fn check(&mut self, key: Key, cost: u64, now: Now) -> Reservation {
        self.known(key, cost, now).unwrap_or_else(|| self.ask(key, cost, now))
    }

    fn look_again(&mut self, key: Key) {
        self.leases.find(key).into_iter().for_each(Lease::look_again);
    }

    fn crowd(&mut self, key: Key, now: Now) {
        self.leases.find(key).into_iter().for_each(|lease| lease.crowd(now));
    }

    fn can_hold(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        let cost = reservation.cost;
        match &mut reservation.by {
            By::Gateway(transaction) => {
                self.prepare(transaction, cost, delay).err().unwrap_or(Decision::NOW)
            }
            _ => Decision::NOW,
        }
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        let Reservation { key, cost, now, decision, is_charged, .. } = *reservation;
        if is_charged || !decision.is_admitted() {
            return decision;
        }
        if matches!(reservation.by, By::Lease) {
            if let Some(lease) = self.leases.find(key).filter(|lease| lease.has(cost, now)) {
                lease.spend(cost, now);
                reservation.is_charged = true;
                return Decision::NOW;
            }
            // Somebody else has spent it meanwhile.
            let mut transaction = self.begin(key, now);
            self.read(&mut transaction);
            reservation.by = By::Gateway(transaction);
        }
        self.charge_gateway(reservation, delay)
    }

    fn undo(&mut self, reservation: &mut Reservation) {
        if !std::mem::take(&mut reservation.is_charged) {
            return;
        }
        let Reservation { key, cost, .. } = *reservation;
        match &mut reservation.by {
            By::Lease => {
                self.leases.find(key).into_iter().for_each(|lease| lease.unspend(cost));
            }
            By::Gateway(transaction) => self.undo_charge(cost, transaction),
            _ => {}
        }
    }

    fn remaining(&mut self, reservation: &Reservation) -> u64 {
        let Reservation { key, now, .. } = *reservation;
        match &reservation.by {
            By::Lease => {
                let mut transaction = self.begin(key, now);
                self.read(&mut transaction);
                self.transactions.left(&transaction)
            }
            By::Gateway(transaction) if reservation.is_charged => {
                self.transactions.left_after(transaction, self.leases.find(key))
            }
            By::Gateway(transaction) => self.transactions.left(transaction),
            _ => reservation.refusal.left,
        }
    }

    fn renewal(&mut self, reservation: &Reservation) -> Option<Option<Micros>> {
        let By::Gateway(transaction) = &reservation.by else { return None };
        let is_charged = reservation.is_charged;
        let state = if is_charged { &transaction.after } else { &transaction.state };
        Some(renewal(&*self.terms.spec.algorithm, state, transaction.now))
    }

    fn receipt(&mut self, reservation: &Reservation) -> u64 {
        match &reservation.by {
            By::Gateway(transaction) => self.terms.spec.algorithm.receipt(&transaction.after),
            By::Lease => {
                self.leases.find(reservation.key).map_or(0, |lease| lease.block().0.receipt)
            }
            _ => 0,
        }
    }

    fn leave(&mut self, key: Key, receipt: u64, cost: u64, now: Now) {
        let mut transaction = self.begin(key, now);
        // A place comes back by its number, whenever it was taken.
        _ = self.take_back((receipt, cost), 0, &mut transaction);
    }

    fn settle(&mut self, key: Key, settlement: &Settlement, now: Now) -> bool {
        if settlement.is_even() && !self.terms.spec.keeps_used {
            return true;
        }
        let mut transaction = self.begin(key, now);
        self.settle_at(settlement, &mut transaction)
    }

    fn look_at(&mut self, key: Key, now: Now) -> Option<Usage> {
        Some(self.usage_of(key, now))
    }

    fn lift(&mut self, key: Key, now: Now) -> Result<(), Unliftable> {
        self.lift_used(key, now)
    }

    fn hint_demand(&mut self, key: Key, permits: u64) {
        self.leases.claim(key).into_iter().for_each(|lease| lease.demand.hint(permits));
    }

    fn tidy(&mut self, now: Now) -> bool {
        self.hand_in_blocks(now, false)
    }

    fn change_in_keys(&mut self) -> i64 {
        0
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.hand_in_blocks(now, true) {}
        self.leases.clear();
        0
    }
}
