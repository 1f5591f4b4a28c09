//! Daily quotas of many accounts, counted in this worker in fixed memory.
//!
//! They are charged when all other rules have been, and nothing is given back: a counter that somebody
//! else shares does not tell whose permits it holds.
//!
//! The smallest of an account's few counters is its usage or more, never less, and all of them lie in one cache line.
//! Every line contains its day, so `filter.rs` switches to the next day by one number, in the same memory. In Redis the
//! same counters lie in pieces of 64 lines, each with its own day.

mod filter;

use std::cell::RefCell;
use std::rc::Rc;

use super::plans::ByPlan;
use super::reservation::By;
use super::{CounterSpec, Reservation, Store};
use crate::permit::Unsettled;
use diana_algorithm::calendar::Windows;
use diana_policy::bloom::Shape;
use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};
pub use filter::DailyFilter;

/// What a quota is counted in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The filter that the accounts and the error ask for.
    pub(super) shape: Shape,
    /// Permits that a request takes, at least one.
    pub(super) cost: u64,
    /// The days.
    pub(super) days: Windows,
}

/// A rule's filter.
pub struct Daily {
    rpu: u64,
    plans: ByPlan<u64>,
    /// Of how many, each of which gives out the same, this is one.
    count: u64,
    filter: Rc<RefCell<DailyFilter>>,
}

impl Daily {
    /// A rule that counts in `filter`.
    pub fn new(spec: &CounterSpec, filter: Rc<RefCell<DailyFilter>>) -> Daily {
        Daily { rpu: spec.quota.rpu, plans: ByPlan::new(spec), count: 1, filter }
    }

    /// Gives out no more than the part of one of so many.
    pub fn share(&mut self, count: u64) {
        self.count = count.max(1);
    }

    /// Permits that are given out here.
    fn part(&self) -> u64 {
        if self.count == 1 { self.rpu } else { self.rpu.div_ceil(self.count) }
    }

    /// Charges what somebody else let through.
    pub fn note(&mut self, key: Key, permits: u64, now: Now) {
        let mut filter = self.filter.borrow_mut();
        filter.begin(now);
        filter.charge(key, permits);
    }
}

impl Store for Daily {
    fn judge_by(&mut self, plan: u32) {
        self.plans.take(plan, &mut self.rpu, |spec| Some(spec.quota.rpu));
    }

    fn check(&mut self, key: Key, cost: u64, now: Now) -> Reservation {
        let mut filter = self.filter.borrow_mut();
        filter.begin(now);
        let most = filter.most(self.part());
        let decision = match filter.used(key).saturating_add(cost) <= most {
            true => Decision::NOW,
            false if cost > self.part() => Decision::NEVER,
            false => Decision::retry(filter.left(now)),
        };
        let is_overflow = filter.is_crowded();
        let by = By::Account(filter.charges());
        Reservation { is_overflow, ..Reservation::new(key, cost, now, decision, by) }
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        let charges = self.filter.borrow().charges();
        // Others were charged since the request was checked, with some of whom it shares counters.
        if !matches!(reservation.by, By::Account(before) if before == charges) {
            *reservation = self.check(reservation.key, reservation.cost, reservation.now);
        }
        let Reservation { key, cost, decision, .. } = *reservation;
        if !decision.is_admitted() {
            return decision;
        }
        self.filter.borrow_mut().charge(key, cost);
        reservation.is_charged = true;
        Decision::Admit { wait: delay }
    }

    fn can_hold(&mut self, _reservation: &mut Reservation, _delay: Micros) -> Decision {
        Decision::NOW
    }

    fn undo(&mut self, _reservation: &mut Reservation) {}

    fn remaining(&mut self, reservation: &Reservation) -> Option<u64> {
        let filter = self.filter.borrow();
        Some(filter.most(self.part()).saturating_sub(filter.used(reservation.key)))
    }

    fn settle(&mut self, _charge: &Unsettled, _now: Now) -> bool {
        true
    }

    fn tidy(&mut self, now: Now) -> bool {
        // So that the accounts of yesterday are no longer told of when nobody comes.
        self.filter.borrow_mut().begin(now);
        false
    }

    fn change_in_keys(&mut self) -> i64 {
        self.filter.borrow_mut().change()
    }

    fn close(&mut self, _now: Now) -> i64 {
        // A filter that another configuration goes on with keeps its accounts.
        if Rc::strong_count(&self.filter) > 1 { 0 } else { self.filter.borrow_mut().withdraw() }
    }
}
