//! Usage counted in this worker. The table outlives a change of the configuration: the next rule
//! shares it while requests of both are in flight. Each of them sets its own limits before it uses
//! the table, since the host may return to the earlier configuration without notice.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use super::plans::ByPlan;
use super::reservation::By;
use super::row::Row;
use super::state::State;
use super::table::{RowLocation, Table};
use super::usage::{Cannot, Inquiry, Maintained, Remaining, Usage};
use super::{CounterSpec, Reservation, Store};
use crate::permit::OpenCharge;
use diana_algorithm::Algorithm;
use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

/// A rule's table.
pub struct Local {
    algorithm: Rc<dyn Algorithm>,
    plans: ByPlan<Rc<dyn Algorithm>>,
    /// The rule's algorithm and its number of callers, independent of the plan.
    terms: (Rc<dyn Algorithm>, usize),
    /// Words of a caller's state.
    words: usize,
    table: Rc<RefCell<Table>>,
}

impl Local {
    /// A store that counts in `table`.
    pub fn new(spec: &CounterSpec, table: Rc<RefCell<Table>>) -> Local {
        let algorithm = spec.algorithm.clone();
        let words = algorithm.properties().words;
        let terms = (algorithm.clone(), spec.keys);
        Local { words, algorithm, terms, plans: ByPlan::new(spec), table }
    }

    /// Switches to the quota of this plan.
    #[inline]
    fn use_plan(&mut self, plan: u32) {
        self.plans.take(plan, &mut self.algorithm, |spec| Some(spec.algorithm.clone()));
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
        let key = account.key;
        let mut table = own(&self.table, &self.terms);
        let mut after = State::unused(self.words);
        let location = table.find(key, now);
        let state = table.state(key, location);
        let decision = self.algorithm.step(state, table.no_earlier(now), 0, cost, &mut after);
        let (version, at) = (table.version(), table.no_earlier(now));
        reservation.decide(decision, By::Row(Row { location, version, at, other: after }));
        reservation.is_overflow = location == RowLocation::Overflow;
        reservation.longest_delay = self.algorithm.properties().longest_delay;
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        self.use_plan(reservation.account.plan);
        let mut table = self.table.borrow_mut();
        if !matches!(&reservation.by, By::Row(row) if row.version == table.version()) {
            // Another request was charged, or a caller was dropped, since the check.
            drop(table);
            self.check(reservation);
            table = self.table.borrow_mut();
        }
        let Reservation { account, cost, decision, is_charged, by: By::Row(row), .. } = reservation
        else {
            return reservation.decision;
        };
        if *is_charged || !matches!(decision, Decision::Admit { wait } if *wait <= delay) {
            return *decision;
        }
        if decision.wait() != delay {
            let state = table.state(account.key, row.location);
            let decision = self.algorithm.step(state, row.at, delay, *cost, &mut row.other);
            if !decision.is_admitted() {
                return decision;
            }
        }
        reservation.receipt = self.algorithm.receipt(&row.other);
        write(&mut table, reservation);
        Decision::Admit { wait: delay }
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        if !reservation.is_charged {
            return;
        }
        self.use_plan(reservation.account.plan);
        let Reservation { account, cost, now, receipt, is_charged, by: By::Row(row), .. } =
            reservation
        else {
            return;
        };
        let key = account.key;
        *is_charged = false;
        let mut table = self.table.borrow_mut();
        if row.version == table.version() {
            table.swap(key, row.location, &mut row.other);
            row.version = table.version();
        } else {
            drop(table);
            let algorithm = &self.algorithm;
            let refund = Settlement::refund(*receipt, *cost);
            self.change(key, *now, |state, at, after| algorithm.settle(state, at, &refund, after));
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
        self.use_plan(reservation.account.plan);
        let Reservation { account, now, by: By::Row(row), .. } = reservation else { return None };
        let mut table = self.table.borrow_mut();
        let location = table.find(account.key, *now);
        Some(self.algorithm.balance(table.state(account.key, location), row.at).into())
    }

    fn inquire(&mut self, _inquiry: &mut Inquiry, _now: Now) -> Option<Result<Usage, Cannot>> {
        Some(Err(Cannot::Local))
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
    (algorithm, capacity): &(Rc<dyn Algorithm>, usize),
) -> RefMut<'t, Table> {
    let mut table = table.borrow_mut();
    table.configure(algorithm, *capacity);
    table
}

/// Writes the state computed for an admitted request.
#[inline]
fn write(table: &mut Table, reservation: &mut Reservation) {
    let By::Row(row) = &mut reservation.by else { return };
    row.location = table.swap(reservation.account.key, row.location, &mut row.other);
    row.version = table.version();
    reservation.is_charged = true;
}
