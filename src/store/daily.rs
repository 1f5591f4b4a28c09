//! Daily quotas of many accounts, counted in this worker in fixed memory.
//!
//! They are charged when all other rules have been, and nothing is given back: a counter that somebody
//! else shares does not tell whose permits it holds.

mod section;

use std::cell::RefCell;
use std::rc::Rc;

use super::{Judged, Meter, Store};
use crate::bloom::Shape;
use crate::decision::Decision;
use crate::key::Key;
use crate::time::{Micros, Now};
pub use section::Section;

/// What a quota is counted in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The filter that the accounts and the error ask for.
    pub(super) shape: Shape,
    /// Permits that a request takes, at least one.
    pub(super) cost: u64,
    /// Ticks that local time is ahead of UTC.
    pub(super) zone: i64,
}

/// A rule's section, and the request in hand.
pub struct Daily {
    rpu: u64,
    /// The part of it that is given out here.
    part: u64,
    cost: u64,
    section: Rc<RefCell<Section>>,
    key: Key,
    now: Now,
}

impl Daily {
    /// A rule that counts in `section`.
    pub fn new(meter: &Meter, section: Rc<RefCell<Section>>) -> Daily {
        Daily {
            rpu: meter.quota.rpu,
            part: meter.quota.rpu,
            cost: meter.cost,
            section,
            key: Key::ALL,
            now: Now::default(),
        }
    }

    /// Gives out no more than the part of one of so many.
    pub fn share(&mut self, count: u64) {
        self.part = self.rpu.div_ceil(count.max(1));
    }

    /// Charges what somebody else let through.
    pub fn note(&mut self, key: Key, permits: u64, now: Now) {
        let mut section = self.section.borrow_mut();
        section.begin(now);
        section.charge(key, permits);
    }
}

impl Store for Daily {
    fn judge(&mut self, key: Key, now: Now) -> Judged {
        (self.key, self.now) = (key, now);
        let mut section = self.section.borrow_mut();
        section.begin(now);
        let decision = if section.used(key).saturating_add(self.cost) <= section.most(self.part) {
            Decision::NOW
        } else {
            Decision::retry(section.left(now))
        };
        Judged { overflow: section.is_crowded(), ..Judged::of(decision) }
    }

    fn charge(&mut self, delay: Micros) -> Decision {
        self.section.borrow_mut().charge(self.key, self.cost);
        Decision::Admit { wait: delay }
    }

    fn can_hold(&mut self, _delay: Micros) -> Decision {
        Decision::NOW
    }

    fn undo(&mut self) {}

    fn remaining(&mut self) -> u64 {
        let section = self.section.borrow();
        section.most(self.part).saturating_sub(section.used(self.key))
    }

    fn place(&self) -> u64 {
        0
    }

    fn leave(&mut self, _key: Key, _place: u64, _now: Now) {}

    fn tidy(&mut self, now: Now) -> bool {
        // So that the accounts of yesterday are no longer told of when nobody comes.
        self.section.borrow_mut().begin(now);
        false
    }

    fn change_in_keys(&mut self) -> i64 {
        self.section.borrow_mut().change()
    }

    fn close(&mut self, _now: Now) -> i64 {
        // A section that another configuration goes on with keeps its accounts.
        if Rc::strong_count(&self.section) > 1 { 0 } else { self.section.borrow_mut().withdraw() }
    }
}
