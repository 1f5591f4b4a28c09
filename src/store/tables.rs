//! What this worker remembers of callers. It outlives a change of the configuration as long as a rule
//! with the same identity follows: while requests under the old one are under way both share it.

use std::any::Any;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::Meter;
use super::bans::local::Sets;
use super::table::Table;

/// See the module.
#[derive(Debug, Default)]
pub struct Tables(Vec<Known>);

#[derive(Debug)]
struct Known {
    namespace: Rc<str>,
    identity: u64,
    table: Weak<dyn Any>,
}

impl Tables {
    /// The table of a rule: the one that an earlier configuration counts in, or a new one.
    pub(super) fn open(&mut self, namespace: &Rc<str>, meter: &Meter) -> Rc<RefCell<Table>> {
        let known = self.find(namespace, meter.identity);
        if let Some(table) = known.and_then(|known| known.downcast::<RefCell<Table>>().ok()) {
            table.borrow_mut().adopt(meter.algorithm.clone(), meter.keys);
            return table;
        }
        let table = Rc::new(RefCell::new(Table::new(meter.algorithm.clone(), meter.keys)));
        self.add(namespace, meter.identity, table.clone());
        table
    }

    /// The bans of a rule, likewise.
    pub(super) fn open_bans(
        &mut self,
        namespace: &Rc<str>,
        identity: u64,
        keys: usize,
    ) -> Rc<RefCell<Sets>> {
        let known = self.find(namespace, identity);
        if let Some(sets) = known.and_then(|known| known.downcast::<RefCell<Sets>>().ok()) {
            return sets;
        }
        let sets = Rc::new(RefCell::new(Sets::new(keys)));
        self.add(namespace, identity, sets.clone());
        sets
    }

    #[inline(never)]
    fn find(&mut self, namespace: &Rc<str>, identity: u64) -> Option<Rc<dyn Any>> {
        self.0.retain(|known| known.table.strong_count() > 0);
        let same = |known: &&Known| known.identity == identity && known.namespace == *namespace;
        self.0.iter().find(same)?.table.upgrade()
    }

    #[inline(never)]
    fn add(&mut self, namespace: &Rc<str>, identity: u64, table: Rc<dyn Any>) {
        let (namespace, table) = (namespace.clone(), Rc::downgrade(&table));
        self.0.push(Known { namespace, identity, table });
    }
}
