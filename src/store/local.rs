//! Usage counted in this worker. The table outlives a change of the configuration: the rule that
//! takes its place shares it while requests of both are under way.

use std::cell::RefCell;
use std::rc::Rc;

use super::table::{Place, Table};
use super::{Judged, Meter, Store};
use crate::decision::Decision;
use crate::key::Key;
use crate::time::{Micros, Now};

/// A rule's table, and the request in hand.
pub struct Local {
    meter: Meter,
    table: Rc<RefCell<Table>>,
    key: Key,
    place: Place,
    now: Now,
    wait: Micros,
    /// The state before the charge and after it.
    before: Box<[u64]>,
    after: Box<[u64]>,
    charged: bool,
}

impl Local {
    /// A rule that counts in `table`.
    pub fn new(meter: Meter, table: Rc<RefCell<Table>>) -> Local {
        let nobody = || vec![0; meter.algorithm.words()].into();
        Local {
            table,
            key: Key::ALL,
            place: Place::New,
            now: Now::default(),
            wait: 0,
            before: nobody(),
            after: nobody(),
            charged: false,
            meter,
        }
    }
}

impl Store for Local {
    fn judge(&mut self, key: Key, now: Now) -> Judged {
        let mut table = self.table.borrow_mut();
        self.key = key;
        self.place = table.find(key, now);
        self.now = table.judging(now);
        self.charged = false;
        copy(table.state(key, self.place), &mut self.before);
        let decision =
            self.meter.algorithm.step(&self.before, self.now, self.meter.cost, &mut self.after);
        if let Decision::Admit { wait } = decision {
            self.wait = wait;
        }
        Judged { overflow: self.place == Place::Overflow, ..Judged::of(decision) }
    }

    fn pass(&mut self, key: Key, now: Now) -> bool {
        let mut table = self.table.borrow_mut();
        let place = table.find(key, now);
        if !matches!(place, Place::Row(_)) {
            return false;
        }
        let Meter { algorithm, cost, .. } = &self.meter;
        let (state, now) = (table.state(key, place), table.judging(now));
        let passes = algorithm.step(state, now, *cost, &mut self.after) == Decision::NOW;
        if passes {
            table.write(key, place, &self.after);
        }
        passes
    }

    fn can_hold(&mut self, delay: Micros) -> Decision {
        let Meter { algorithm, cost, .. } = &self.meter;
        algorithm.reserve(&self.before, self.now, delay, *cost, &mut self.after)
    }

    fn charge(&mut self, delay: Micros) -> Decision {
        if delay > self.wait {
            let decision = self.can_hold(delay);
            if !decision.is_admitted() {
                return decision;
            }
        }
        self.table.borrow_mut().write(self.key, self.place, &self.after);
        self.charged = true;
        Decision::Admit { wait: delay }
    }

    fn undo(&mut self) {
        if self.charged {
            let mut table = self.table.borrow_mut();
            // A newcomer has a row by now; whoever shares a bucket stays there, should one be free.
            let place = match self.place {
                Place::New => table.find(self.key, self.now),
                place => place,
            };
            table.write(self.key, place, &self.before);
            self.charged = false;
        }
    }

    fn remaining(&mut self) -> u64 {
        let state = if self.charged { &self.after } else { &self.before };
        self.meter.algorithm.remaining(state, self.now)
    }

    fn place(&self) -> u64 {
        self.meter.algorithm.receipt(&self.after)
    }

    fn leave(&mut self, key: Key, place: u64, now: Now) {
        let mut table = self.table.borrow_mut();
        let row = table.find(key, now);
        self.meter.algorithm.refund(table.state(key, row), place, self.meter.cost, &mut self.after);
        table.write(key, row, &self.after);
    }

    fn tidy(&mut self, _now: Now) -> bool {
        false
    }

    fn change_in_keys(&mut self) -> i64 {
        self.table.borrow_mut().change()
    }

    fn close(&mut self, _now: Now) -> i64 {
        // A table that another configuration goes on with keeps its callers.
        if Rc::strong_count(&self.table) > 1 { 0 } else { self.table.borrow_mut().withdraw() }
    }
}

fn copy(from: &[u64], to: &mut [u64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}
