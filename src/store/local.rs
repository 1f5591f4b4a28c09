//! Usage counted in a table: in that of this worker, or in one for all workers of a process
//! (`process.rs`). The table outlives a change of the configuration: the next rule
//! shares it while requests of both are in flight. Each of them sets its own limits before it uses
//! the table, since the host may return to the earlier configuration without notice.

use std::cell::{RefCell, RefMut};
use std::ops::DerefMut;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard};

use super::plans::ByPlan;
use super::process::ProcessTable;
use super::replies::Replies;
use super::reservation::Memo;
use super::slots::Traffic;
use super::state::State;
use super::table::{RowLocation, Table};
use super::usage::{Maintained, Order, OrderError, Remaining, Usage};
use super::{Account, CheckOutcome, CounterSpec, Reservation, Store};
use crate::permit::OpenCharge;
use diana_algorithm::{Algorithm, Balance};
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

/// Where a rule's table is.
pub trait TablePlace {
    /// Whether the table has the usage of the whole gateway.
    const IS_WHOLE: bool;

    /// Access to the table with a caller.
    type Access<'t>: DerefMut<Target = Table>
    where
        Self: 't;

    /// The table, or its part with this caller.
    fn table(&self, key: Key) -> Self::Access<'_>;

    /// The change of the number of callers in this worker's memory since the last call.
    fn change(&self) -> i64 {
        0
    }

    /// The same, when a store no longer uses the table.
    fn withdraw(&self) -> i64 {
        0
    }
}

impl TablePlace for Rc<RefCell<Table>> {
    const IS_WHOLE: bool = false;

    type Access<'t> = RefMut<'t, Table>;

    #[inline(always)]
    fn table(&self, _: Key) -> RefMut<'_, Table> {
        self.borrow_mut()
    }

    fn change(&self) -> i64 {
        self.borrow_mut().change()
    }

    fn withdraw(&self) -> i64 {
        // A table that the next configuration uses keeps its callers.
        if Rc::strong_count(self) > 1 { 0 } else { self.borrow_mut().withdraw() }
    }
}

/// A table for all workers, as one of them uses it.
pub struct ProcessPlace {
    table: Arc<ProcessTable>,
    traffic: Rc<Traffic>,
}

impl TablePlace for ProcessPlace {
    const IS_WHOLE: bool = true;

    type Access<'t> = MutexGuard<'t, Table>;

    #[inline]
    fn table(&self, key: Key) -> MutexGuard<'_, Table> {
        self.table.part(key, &self.traffic.emptied)
    }
}

/// A rule's table.
pub struct Local<P> {
    algorithm: Arc<dyn Algorithm>,
    plans: ByPlan<Arc<dyn Algorithm>>,
    /// The rule's algorithm and its number of callers, independent of the plan.
    terms: (Arc<dyn Algorithm>, usize),
    table: P,
    draft: Draft,
}

/// The latest check, valid while the version of the table is the number in its reservation.
struct Draft {
    /// The caller, since a table of a process has parts with versions of their own.
    key: Key,
    location: RowLocation,
    /// The state after the charge; once it is charged, the state before.
    other: Box<[u64]>,
}

impl Local<Rc<RefCell<Table>>> {
    /// A store that counts in the table of this worker.
    pub fn new(spec: &CounterSpec, table: Rc<RefCell<Table>>) -> Self {
        Local::counting_in(table, spec, (spec.algorithm.clone(), spec.keys))
    }
}

impl Local<ProcessPlace> {
    /// A store that counts in a table for all workers.
    pub fn of_process(spec: &CounterSpec, table: Arc<ProcessTable>, traffic: Rc<Traffic>) -> Self {
        let terms = (table.shared(&spec.algorithm), table.callers_of_part(spec.keys));
        Local::counting_in(ProcessPlace { table, traffic }, spec, terms)
    }
}

impl<P: TablePlace> Local<P> {
    fn counting_in(table: P, spec: &CounterSpec, terms: (Arc<dyn Algorithm>, usize)) -> Self {
        let algorithm = spec.algorithm.clone();
        let other = vec![0; algorithm.properties().words].into();
        let draft = Draft { key: Key::default(), location: RowLocation::New, other };
        Local { algorithm, terms, plans: ByPlan::new(spec), table, draft }
    }

    /// Switches to the quota of this plan.
    #[inline]
    fn use_plan(&mut self, plan: u64) {
        self.plans.select(plan, &mut self.algorithm, |spec| Some(spec.algorithm.clone()));
    }

    /// Changes a caller's state, unless both the old and the new state are empty.
    fn change(&self, key: Key, now: Now, change: impl FnOnce(&[u64], Now, &mut [u64])) {
        let mut table = own(&self.table, &self.terms, key);
        let location = table.find(key, now);
        let state = table.state(key, location);
        let mut after = State::unused(state.len());
        change(state, table.no_earlier(now), &mut after);
        if *after != *state {
            table.swap(key, location, &mut after);
        }
    }
}

impl Draft {
    /// Checks a request.
    #[inline(always)]
    fn check(
        &mut self,
        algorithm: &dyn Algorithm,
        table: &mut Table,
        reservation: &mut Reservation,
    ) {
        let Reservation { account, cost, now, .. } = *reservation;
        let location = table.find(account.key, now);
        let (state, at) = (table.state(account.key, location), table.no_earlier(now));
        let decision = algorithm.step(state, at, 0, cost, &mut self.other);
        (self.location, self.key) = (location, account.key);
        reservation.is_overflow = location == RowLocation::Overflow;
        reservation.outcome = CheckOutcome::of(decision, algorithm.properties().longest_delay);
        if let CheckOutcome::Refused(refused) = &mut reservation.outcome {
            // For the report, which would have to find the state again.
            refused.remaining = Some(algorithm.balance(state, at).remaining);
        }
        reservation.memo = Memo::Draft(table.begin_draft());
    }

    /// Returns true if it is about this reservation, and the table has not changed since.
    fn is_current<P: TablePlace>(&self, table: &Table, reservation: &Reservation) -> bool {
        let is_own = !P::IS_WHOLE || self.key == reservation.account.key;
        reservation.memo == Memo::Draft(table.version()) && is_own
    }
}

impl<P: TablePlace> Store for Local<P> {
    fn check(&mut self, reservation: &mut Reservation, _replies: &Replies) {
        self.use_plan(reservation.account.plan);
        let mut table = own(&self.table, &self.terms, reservation.account.key);
        self.draft.check(&*self.algorithm, &mut table, reservation);
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) {
        if reservation.is_charged() {
            return;
        }
        self.use_plan(reservation.account.plan);
        let (algorithm, draft) = (&*self.algorithm, &mut self.draft);
        let mut table = self.table.table(reservation.account.key);
        if !draft.is_current::<P>(&table, reservation) {
            // Another request was charged, or a caller was dropped, since the check.
            table.configure(&self.terms.0, self.terms.1);
            draft.check(algorithm, &mut table, reservation);
        }
        let Reservation { account, cost, now, outcome, receipt, memo, .. } = reservation;
        let CheckOutcome::Admitted { wait, longest_delay } = *outcome else { return };
        if wait > delay {
            return;
        }
        let Draft { location, other, .. } = draft;
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
        {
            let (draft, mut table) = (&mut self.draft, self.table.table(key));
            if draft.is_current::<P>(&table, reservation) {
                table.swap(key, draft.location, &mut draft.other);
                return;
            }
        }
        let algorithm = &self.algorithm;
        let refund = Settlement::refund(receipt, cost);
        self.change(key, now, |state, at, after| algorithm.settle(state, at, &refund, after));
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
        let mut table = self.table.table(account.key);
        let location = table.find(account.key, now);
        let state = table.state(account.key, location);
        Some(self.algorithm.balance(state, table.no_earlier(now)).into())
    }

    fn inquire(
        &mut self,
        account: Account,
        order: Order,
        _replies: &Replies,
        now: Now,
    ) -> Result<Usage, OrderError> {
        if !P::IS_WHOLE {
            return Err(OrderError::Local);
        }
        let Account { key, plan } = account;
        self.use_plan(plan);
        let (algorithm, mut table) = (&*self.algorithm, own(&self.table, &self.terms, key));
        let location = table.find(key, now);
        let at = table.no_earlier(now);
        let mut state = State::unused(algorithm.properties().words);
        if order == Order::Reset {
            if location == RowLocation::Overflow {
                return Err(OrderError::Shared);
            }
            if !algorithm.reset(table.state(key, location), at, 0, &mut state) {
                return Err(OrderError::InUse);
            }
            // A caller without a row has nothing to reset.
            if location != RowLocation::New {
                table.swap(key, location, &mut state);
            }
        }
        let state = table.state(key, location);
        let Balance { remaining, charged, reserved, .. } = algorithm.balance(state, at);
        Ok(Usage {
            used: charged.saturating_sub(reserved),
            reserved,
            remaining,
            ends: algorithm.expires(state, at).saturating_sub(at.mono),
            is_shared: location == RowLocation::Overflow,
            ..Usage::default()
        })
    }

    fn maintain(&mut self, _now: Now) -> Maintained {
        Maintained { keys: self.table.change(), ..Maintained::default() }
    }

    fn close(&mut self, _now: Now) -> i64 {
        self.table.withdraw()
    }
}

/// The table, or its part with a caller, set to these parameters.
#[inline(always)]
fn own<'t, P: TablePlace>(
    table: &'t P,
    (algorithm, capacity): &(Arc<dyn Algorithm>, usize),
    key: Key,
) -> P::Access<'t> {
    let mut table = table.table(key);
    table.configure(algorithm, *capacity);
    table
}
