//! What this worker counts in: the tables of its rules, the sections of its quotas, and its bans.

use std::cell::RefCell;
use std::rc::Rc;

use super::Meter;
use super::bans::local::Sets;
use super::daily::{Section, Terms};
use super::kept::Kept;
use super::table::Table;

/// All that one worker counts in.
#[derive(Debug, Default)]
pub struct Tables {
    tables: Kept<Table>,
    sections: Kept<Section>,
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

    /// The section of a rule, likewise.
    pub(super) fn open_section(
        &mut self,
        namespace: &Rc<str>,
        meter: &Meter,
        terms: Terms,
    ) -> Rc<RefCell<Section>> {
        if let Some(section) = self.sections.find(namespace, meter.identity) {
            section.borrow_mut().adopt(terms);
            return section;
        }
        self.sections.keep(namespace, meter.identity, Section::new(terms))
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
