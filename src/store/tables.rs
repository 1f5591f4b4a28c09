//! What this worker remembers of callers. It outlives a change of the configuration as long as a rule
//! with the same identity follows: while requests under the old one are under way both share it.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::Meter;
use super::bans::local::Sets;
use super::table::Table;

/// See the module.
#[derive(Debug, Default)]
pub struct Tables {
    usage: Shelf<Table>,
    bans: Shelf<Sets>,
}

/// What is in use, by namespace and identity.
#[derive(Debug)]
struct Shelf<T>(Vec<(Rc<str>, u64, Weak<RefCell<T>>)>);

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf(Vec::new())
    }
}

impl<T> Shelf<T> {
    fn find(&mut self, namespace: &Rc<str>, identity: u64) -> Option<Rc<RefCell<T>>> {
        self.0.retain(|(.., item)| item.strong_count() > 0);
        let mut same = self.0.iter().filter(|known| known.1 == identity && known.0 == *namespace);
        same.next()?.2.upgrade()
    }

    fn add(&mut self, namespace: &Rc<str>, identity: u64, item: T) -> Rc<RefCell<T>> {
        let item = Rc::new(RefCell::new(item));
        self.0.push((namespace.clone(), identity, Rc::downgrade(&item)));
        item
    }
}

impl Tables {
    /// The table of a rule: the one that an earlier configuration counts in, or a new one.
    pub(super) fn open(&mut self, namespace: &Rc<str>, meter: &Meter) -> Rc<RefCell<Table>> {
        let (identity, algorithm) = (meter.identity, meter.algorithm.clone());
        if let Some(table) = self.usage.find(namespace, identity) {
            table.borrow_mut().adopt(algorithm, meter.keys);
            return table;
        }
        self.usage.add(namespace, identity, Table::new(algorithm, meter.keys))
    }

    /// The bans of a rule, likewise.
    pub(super) fn open_bans(
        &mut self,
        namespace: &Rc<str>,
        identity: u64,
        keys: usize,
    ) -> Rc<RefCell<Sets>> {
        let known = self.bans.find(namespace, identity);
        known.unwrap_or_else(|| self.bans.add(namespace, identity, Sets::new(keys)))
    }
}
