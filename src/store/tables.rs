//! The tables of this worker. They outlive a change of the configuration as long as a rule with
//! the same identity follows: while requests under the old one are under way both share a table.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::Meter;
use super::table::Table;

/// See the module.
#[derive(Debug, Default)]
pub struct Tables(Vec<Known>);

#[derive(Debug)]
struct Known {
    namespace: Rc<str>,
    identity: u64,
    table: Weak<RefCell<Table>>,
}

impl Tables {
    /// The table of a rule: the one that an earlier configuration counts in, or a new one.
    pub(super) fn open(&mut self, namespace: &Rc<str>, meter: &Meter) -> Rc<RefCell<Table>> {
        self.0.retain(|known| known.table.strong_count() > 0);
        let same =
            |known: &&Known| known.identity == meter.identity && known.namespace == *namespace;
        if let Some(table) = self.0.iter().find(same).and_then(|known| known.table.upgrade()) {
            table.borrow_mut().adopt(meter.algorithm.clone(), meter.keys);
            return table;
        }
        let table = Rc::new(RefCell::new(Table::new(meter.algorithm.clone(), meter.keys)));
        self.0.push(Known {
            namespace: namespace.clone(),
            identity: meter.identity,
            table: Rc::downgrade(&table),
        });
        table
    }
}
