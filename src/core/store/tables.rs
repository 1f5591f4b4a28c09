//! What this worker counts in: the tables of its rules, the daily of its quotas, and its bans.

use std::cell::RefCell;
use std::rc::Rc;

use super::Meter;
use super::bans::local::Sets;
use super::daily::{DailyFilter, Terms};
use super::kept::Kept;
use super::table::Table;

/// All that one worker counts in.
#[derive(Debug, Default)]
pub struct Tables {
    tables: Kept<Table>,
    daily: Kept<DailyFilter>,
    bans: Kept<Sets>,
}

impl Tables {
    /// The table of a rule: the one that an earlier configuration counts in, or a new one.
    pub(super) fn open(&mut self, namespace: &Rc<str>, meter: &Meter) -> Rc<RefCell<Table>> {
        if let Some(table) = self.tables.find(namespace, meter.identity) {
            table.borrow_mut().adopt(meter.algorithm.clone(), meter.keys);
            return table;
        }
        let table = Table::new(meter.algorithm.clone(), meter.keys);
        self.tables.keep(namespace, meter.identity, table)
    }

    /// The filter of a rule, likewise.
    pub(super) fn open_daily(
        &mut self,
        namespace: &Rc<str>,
        meter: &Meter,
        terms: Terms,
    ) -> Rc<RefCell<DailyFilter>> {
        if let Some(filter) = self.daily.find(namespace, meter.identity) {
            filter.borrow_mut().adopt(terms);
            return filter;
        }
        self.daily.keep(namespace, meter.identity, DailyFilter::new(terms))
    }

    /// The bans of a rule, likewise.
    pub(super) fn open_bans(
        &mut self,
        namespace: &Rc<str>,
        identity: u64,
        keys: usize,
    ) -> Rc<RefCell<Sets>> {
        match self.bans.find(namespace, identity) {
            Some(sets) => sets,
            None => self.bans.keep(namespace, identity, Sets::new(keys)),
        }
    }
}
