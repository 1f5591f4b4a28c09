//! Usage counted in this worker. The table outlives a change of the configuration: the next rule
//! shares it while requests of both are in flight. Each of them sets its own limits before it uses
//! the table, since the host may return to the earlier configuration without notice.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

use super::plans::ByPlan;
use super::reservation::Memo;
use super::state::State;
use super::table::{RowLocation, Table};
use super::usage::{Inquiry, Maintained, OrderError, Remaining, Usage};
use super::{Account, CheckOutcome, CounterSpec, Reservation, Store};
use crate::permit::OpenCharge;
use diana_algorithm::Algorithm;
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

/// A rule's table.
pub struct Local {
    algorithm: Arc<dyn Algorithm>,
    plans: ByPlan<Arc<dyn Algorithm>>,
    /// The rule's algorithm and its number of callers, independent of the plan.
    terms: (Arc<dyn Algorithm>, usize),
    table: Rc<RefCell<Table>>,
    draft: Draft,
}

/// The latest check, valid while the version of the table is the number in its reservation.
struct Draft {
    location: RowLocation,
    /// The state after the charge; once it is charged, the state before.
    other: Box<[u64]>,
}

impl Local {
    /// A store that counts in `table`.
    pub fn new(spec: &CounterSpec, table: Rc<RefCell<Table>>) -> Local {
        let algorithm = spec.algorithm.clone();
        let terms = (algorithm.clone(), spec.keys);
        let other = vec![0; algorithm.properties().words].into();
        let draft = Draft { location: RowLocation::New, other };
        Local { algorithm, terms, plans: ByPlan::new(spec), table, draft }
    }

    /// Switches to the quota of this plan.
    #[inline]
    fn use_plan(&mut self, plan: u32) {
        self.plans.select(plan, &mut self.algorithm, |spec| Some(spec.algorithm.clone()));
    }

    /// Returns true if the draft is about this reservation, and the table has not changed since.
    fn is_current(&self, reservation: &Reservation) -> bool {
        reservation.memo == Memo::Draft(self.table.borrow().version())
    }

    /// Changes a caller's state, unless both the old and the new state are empty.
    fn change(&self, key: Key, now: Now, change: impl FnOnce(&[u64], Now, &mut [u64])) {
        let mut table = own(&self.table, &self.terms);
        let location = table.find(key, now);
        let state = table.state(key, location);
        let mut after = State::unused(state.len());
        change(state, table.no_earlier(now), &mut after);
        if *after != *state {
            table.swap(key, location, &mut after);
        }
    }
}

impl Store for Local {
    fn check(&mut self, reservation: &mut Reservation) {
        let Reservation { account, cost, now, .. } = *reservation;
        self.use_plan(account.plan);
        let mut table = own(&self.table, &self.terms);
        let location = table.find(account.key, now);
        let state = table.state(account.key, location);
        let (algorithm, draft) = (&*self.algorithm, &mut self.draft);
        let decision = algorithm.step(state, table.no_earlier(now), 0, cost, &mut draft.other);
        draft.location = location;
        reservation.memo = Memo::Draft(table.begin_draft());
        reservation.is_overflow = location == RowLocation::Overflow;
        reservation.outcome = CheckOutcome::of(decision, algorithm.properties().longest_delay);
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) {
        if reservation.is_charged() {
            return;
        }
        self.use_plan(reservation.account.plan);
        if !self.is_current(reservation) {
            // Another request was charged, or a caller was dropped, since the check.
            self.check(reservation);
        }
        let Reservation { account, cost, now, outcome, receipt, memo, .. } = reservation;
        let CheckOutcome::Admitted { wait, longest_delay } = *outcome else { return };
        if wait > delay {
            return;
        }
        let (mut table, algorithm) = (self.table.borrow_mut(), &*self.algorithm);
        let Draft { location, other } = &mut self.draft;
        if wait != delay {
            let state = table.state(account.key, *location);
            let decision = algorithm.step(state, table.no_earlier(*now), delay, *cost, other);
            if !decision.is_admitted() {
                *outcome = CheckOutcome::of(decision, longest_delay);
                return;
            }
        }
        *receipt = Some(algorithm.receipt(other));
        *location = table.swap(account.key, *location, other);
        *memo = Memo::Draft(table.version());
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        let Some(receipt) = reservation.receipt.take() else { return };
        let Reservation { account: Account { key, plan }, cost, now, .. } = *reservation;
        self.use_plan(plan);
        if self.is_current(reservation) {
            self.table.borrow_mut().swap(key, self.draft.location, &mut self.draft.other);
        } else {
            let algorithm = &self.algorithm;
            let refund = Settlement::refund(receipt, cost);
            self.change(key, now, |state, at, after| algorithm.settle(state, at, &refund, after));
        }
    }

    fn settle(&mut self, charge: &OpenCharge, now: Now) -> bool {
        self.use_plan(charge.plan);
        let (key, settlement) = (charge.key, charge.settlement());
        let algorithm = &self.algorithm;
        self.change(key, now, |state, at, after| algorithm.settle(state, at, &settlement, after));
        true
    }

    fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining> {
        let Reservation { account, now, .. } = *reservation;
        self.use_plan(account.plan);
        let mut table = self.table.borrow_mut();
        let location = table.find(account.key, now);
        let state = table.state(account.key, location);
        Some(self.algorithm.balance(state, table.no_earlier(now)).into())
    }

    fn inquire(&mut self, _inquiry: &mut Inquiry, _now: Now) -> Option<Result<Usage, OrderError>> {
        Some(Err(OrderError::Local))
    }

    fn maintain(&mut self, _now: Now) -> Maintained {
        Maintained { keys: self.table.borrow_mut().change(), ..Maintained::default() }
    }

    fn close(&mut self, _now: Now) -> i64 {
        // A table that the next configuration uses keeps its callers.
        if Rc::strong_count(&self.table) > 1 { 0 } else { self.table.borrow_mut().withdraw() }
    }
}

/// The table, set to these parameters.
#[inline(always)]
fn own<'t>(
    table: &'t RefCell<Table>,
    (algorithm, capacity): &(Arc<dyn Algorithm>, usize),
) -> RefMut<'t, Table> {
    let mut table = table.borrow_mut();
    table.configure(algorithm, *capacity);
    table
}
