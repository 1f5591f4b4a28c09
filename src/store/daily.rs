//! Daily quotas of many accounts, counted in this worker in fixed memory.
//!
//! A daily quota is charged after all other rules and cannot be undone: its counters are shared by
//! accounts, so they do not record which permits belong to which account.
//!
//! The smallest of an account's few counters is its usage or more, never less. All of them lie in
//! one cache line. Every line contains its day, so `filter.rs` switches to the next day by changing
//! one number, in the same memory. In Redis, the same counters lie in pieces of 64 lines, each with
//! its own day.

mod filter;

use std::cell::RefCell;
use std::rc::Rc;

use super::plans::ByPlan;
use super::refusal::Refused;
use super::replies::Replies;
use super::reservation::{CheckOutcome, Memo};
use super::usage::{Maintained, Order, OrderError, Remaining, Usage};
use super::{Account, CounterSpec, Reservation, Store};
use crate::permit::OpenCharge;
use diana_algorithm::calendar::Windows;
use diana_policy::bloom::Shape;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};
pub use filter::DailyFilter;

/// Parameters of a filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct DailyTerms {
    /// The shape for the configured number of accounts and error.
    pub(super) shape: Shape,
    /// Permits per request, at least one.
    pub(super) cost: u64,
    /// The days.
    pub(super) days: Windows,
}

/// The store of a daily quota.
pub struct Daily {
    rpu: u64,
    plans: ByPlan<u64>,
    /// The number of gateways that share the quota equally, including this one.
    count: u64,
    filter: Rc<RefCell<DailyFilter>>,
}

impl Daily {
    /// A store that counts in `filter`.
    pub fn new(spec: &CounterSpec, filter: Rc<RefCell<DailyFilter>>) -> Daily {
        Daily { rpu: spec.quota.rpu, plans: ByPlan::new(spec), count: 1, filter }
    }

    /// Limits this gateway to its share, one of `count` equal shares.
    pub fn share(&mut self, count: u64) {
        self.count = count.max(1);
    }

    /// Switches to the quota of this plan.
    fn use_plan(&mut self, plan: u64) {
        self.plans.select(plan, &mut self.rpu, |spec| Some(spec.quota.rpu));
    }

    /// Permits of this gateway's share.
    fn own_share(&self) -> u64 {
        if self.count == 1 { self.rpu } else { self.rpu.div_ceil(self.count) }
    }

    /// Records permits that were granted elsewhere.
    pub fn record_grant(&mut self, key: Key, permits: u64, now: Now) {
        let mut filter = self.filter.borrow_mut();
        filter.begin(now);
        filter.charge(key, permits);
    }
}

impl Store for Daily {
    fn check(&mut self, reservation: &mut Reservation, _replies: &Replies) {
        let Reservation { account, cost, now, .. } = *reservation;
        self.use_plan(account.plan);
        let key = account.key;
        let mut filter = self.filter.borrow_mut();
        filter.begin(now);
        let most = filter.most(self.own_share());
        reservation.outcome = match filter.used(key).saturating_add(cost) <= most {
            true => CheckOutcome::NOW,
            false if cost > self.own_share() => CheckOutcome::NEVER,
            false => CheckOutcome::Refused(Refused::used(Retry::After(filter.left(now)))),
        };
        reservation.memo = Memo::Draft(filter.charges());
        reservation.is_overflow = filter.is_crowded();
    }

    fn charge(&mut self, reservation: &mut Reservation, _delay: Micros) {
        if reservation.is_charged() {
            return;
        }
        // Other accounts may have been charged since the check, and they share counters with this
        // one.
        if reservation.memo != Memo::Draft(self.filter.borrow().charges()) {
            self.check(reservation, Replies::none());
        }
        if reservation.is_admitted() {
            self.filter.borrow_mut().charge(reservation.account.key, reservation.cost);
            reservation.receipt = Some(0);
        }
    }

    fn cancel(&mut self, _reservation: &mut Reservation) {}

    fn settle(&mut self, _charge: &OpenCharge, _now: Now) -> bool {
        true
    }

    fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining> {
        self.use_plan(reservation.account.plan);
        let filter = self.filter.borrow();
        let used = filter.used(reservation.account.key);
        Some(Remaining {
            permits: filter.most(self.own_share()).saturating_sub(used),
            renewal: Some(filter.left(reservation.now)),
        })
    }

    fn inquire(
        &mut self,
        _account: Account,
        _order: Order,
        _replies: &Replies,
        _now: Now,
    ) -> Result<Usage, OrderError> {
        Err(OrderError::Local)
    }

    fn maintain(&mut self, now: Now) -> Maintained {
        let mut filter = self.filter.borrow_mut();
        // Drops yesterday's accounts from the gauge, even without requests.
        filter.begin(now);
        Maintained { keys: filter.change(), ..Maintained::default() }
    }

    fn close(&mut self, _now: Now) -> i64 {
        // A filter that the next configuration uses keeps its accounts.
        if Rc::strong_count(&self.filter) > 1 { 0 } else { self.filter.borrow_mut().withdraw() }
    }
}
