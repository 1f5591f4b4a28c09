//! Usage counted for the whole gateway: callers in a fixed number of slots of shared data, updated
//! by compare-and-swap, so that the workers together never exceed a limit.
//!
//! A busy caller's permits are leased in blocks and spent without reading shared data. A block is
//! charged when it is leased, so leases can only make the gateway admit less. A request that lacks
//! permits while other workers hold leases is refused at once, with `retry-after: 1`.

mod back;
mod charge;
mod lift;
mod prepare;
mod read;

use std::rc::Rc;

use super::leases::Leases;
use super::plans::ByPlan;
use super::reservation::By;
use super::slots::names::Names;
use super::slots::slot;
use super::slots::traffic::Traffic;
use super::slots::transactions::Transactions;
use super::usage::{Unliftable, Usage};
use super::{CounterSpec, Reservation, Store};
use crate::permit::Unsettled;
use diana_policy::Memory;
use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, Now};

/// The memory of a rule: leases in each worker, slots in the host.
pub(super) fn memory(words: usize, callers: Option<usize>, lines: usize) -> Memory {
    let shared = Names::most(callers).map(|(slots, callers)| slots * slot::bytes(words, callers));
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

    /// Records permits granted by Redis. Ignored if they exceed this gateway's share.
    pub fn note(&mut self, key: Key, permits: u64, now: Now) {
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
        if self.plans.take(plan, &mut self.spec, |spec| Some(spec.clone())) {
            self.transactions.judge_by(&self.spec.algorithm);
            self.leases.plan = plan;
        }
    }

    fn check(&mut self, key: Key, cost: u64, now: Now) -> Reservation {
        self.known(key, cost, now).unwrap_or_else(|| self.ask(key, cost, now))
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
            if let Some(receipt) = self.leases.spend(key, cost, now) {
                reservation.receipt = receipt;
                reservation.is_charged = true;
                return Decision::NOW;
            }
            // Another request has spent the lease since the check.
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
            By::Lease => self.leases.unspend(key, cost),
            By::Gateway(transaction) => self.undo_charge(cost, transaction),
            _ => {}
        }
    }

    fn remaining(&mut self, reservation: &Reservation) -> Option<u64> {
        let Reservation { key, now, .. } = *reservation;
        Some(match &reservation.by {
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
        })
    }

    fn renewal(&mut self, reservation: &Reservation) -> Option<Option<Micros>> {
        let By::Gateway(transaction) = &reservation.by else { return None };
        let is_charged = reservation.is_charged;
        let state = if is_charged { &transaction.after } else { &transaction.state };
        Some(self.spec.algorithm.balance(state, transaction.now).renewal)
    }

    fn settle(&mut self, charge: &Unsettled, now: Now) -> bool {
        let (key, settlement) = (charge.key, charge.settlement());
        if settlement.is_even() && !self.spec.keeps_used {
            return true;
        }
        let mut transaction = self.begin(key, now);
        self.settle_at(&settlement, &mut transaction)
    }

    fn look_at(&mut self, key: Key, now: Now) -> Option<Usage> {
        Some(self.usage_of(key, now))
    }

    fn lift(&mut self, key: Key, now: Now) -> Result<(), Unliftable> {
        self.lift_used(key, now)
    }

    fn tidy(&mut self, now: Now) -> bool {
        self.hand_in_blocks(now, false);
        self.leases.is_any_out()
    }

    fn change_in_keys(&mut self) -> i64 {
        0
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.leases.is_any_out() {
            self.hand_in_blocks(now, true);
        }
        self.leases.clear();
        0
    }
}
