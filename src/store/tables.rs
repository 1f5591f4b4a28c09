//! The tables of this worker, and the sections of its quotas.

use std::cell::RefCell;
use std::rc::Rc;

use super::Meter;
use super::daily::{Section, Terms};
use super::kept::Kept;
use super::table::Table;

/// See the module.
#[derive(Debug, Default)]
pub struct Tables {
    tables: Kept<Table>,
    sections: Kept<Section>,
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
}
