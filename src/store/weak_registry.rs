//! Data of rules in this worker. It outlives a change of the configuration if the next one has a
//! rule with the same fingerprint. While requests under the old one are in flight, both share it.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Values by the fingerprint of their rule.
#[derive(Debug)]
pub(super) struct WeakRegistry<T>(Vec<Registered<T>>);

#[derive(Debug)]
struct Registered<T> {
    namespace: Rc<str>,
    fingerprint: u64,
    value: Weak<RefCell<T>>,
}

impl<T> Default for WeakRegistry<T> {
    fn default() -> WeakRegistry<T> {
        WeakRegistry(Vec::new())
    }
}

impl<T> WeakRegistry<T> {
    /// The data of a rule, if an earlier configuration had it.
    pub(super) fn find(&mut self, namespace: &str, fingerprint: u64) -> Option<Rc<RefCell<T>>> {
        self.0.retain(|known| known.value.strong_count() > 0);
        let same = |known: &&Registered<T>| {
            known.fingerprint == fingerprint && *known.namespace == *namespace
        };
        self.0.iter().find(same).and_then(|known| known.value.upgrade())
    }

    /// Adds the data of a rule.
    pub(super) fn keep(&mut self, namespace: &Rc<str>, fingerprint: u64, new: T) -> Rc<RefCell<T>> {
        let new = Rc::new(RefCell::new(new));
        let value = Rc::downgrade(&new);
        self.0.push(Registered { namespace: namespace.clone(), fingerprint, value });
        new
    }
}
