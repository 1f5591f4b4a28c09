//! Bans of this worker. They outlive a change of the configuration as tables do.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Bans, set};
use crate::key::Key;
use crate::policy::Ban;
use crate::time::Micros;

/// The sets of one rule.
#[derive(Debug)]
pub(in crate::store) struct Sets {
    sets: Vec<Vec<u64>>,
    number: u64,
    /// The end of the ban that ends last.
    latest: Micros,
}

impl Sets {
    /// Room for `callers`.
    pub(in crate::store) fn new(callers: usize) -> Sets {
        Sets { sets: Vec::new(), number: set::number(callers), latest: 0 }
    }

    fn place(&self, key: Key) -> usize {
        (key.second_hash % self.number) as usize
    }
}

/// The bans of one rule in this worker.
pub(in crate::store) struct Local {
    ban: Ban,
    sets: Rc<RefCell<Sets>>,
    begun: u64,
}

impl Local {
    pub(in crate::store) fn new(ban: Ban, sets: Rc<RefCell<Sets>>) -> Local {
        Local { ban, sets, begun: 0 }
    }
}

impl Bans for Local {
    fn left(&mut self, key: Key, now: Micros) -> Micros {
        let sets = self.sets.borrow();
        if now >= sets.latest {
            return 0;
        }
        let set = sets.sets.get(sets.place(key));
        self.ban.left(set.map_or(0, |set| set::until(set, key.hash)), now)
    }

    fn refused(&mut self, key: Key, now: Micros) {
        let mut sets = self.sets.borrow_mut();
        let (place, number) = (sets.place(key), sets.number);
        if sets.sets.is_empty() {
            sets.sets.resize_with(number as usize, Vec::new);
        }
        let Some(set) = sets.sets.get_mut(place) else { return };
        if set.is_empty() {
            *set = vec![0; set::SIZE];
        }
        let counted = set::change(set, &self.ban, key.hash, now, set::Change::Count(1));
        sets.latest = sets.latest.max(counted.until);
        self.begun += u64::from(counted.begins);
    }

    fn tidy(&mut self, _now: Micros) {}

    fn begun(&mut self) -> u64 {
        std::mem::take(&mut self.begun)
    }
}
