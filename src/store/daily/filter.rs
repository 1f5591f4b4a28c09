//! What the accounts of a rule have used on one day.
//!
//! At midnight the next day takes the place of the last one, in the same memory: every line of the
//! filter says which day it counts, so the switch is one number, and no line is read for two days.
//!
//! A day is known by its end on the wall clock. If that steps back, the day in force stays in
//! force; after more than a second it ends at the latest when a day of monotonic time has passed since
//! somebody was first charged on it.

use super::Terms;
use diana_policy::bloom::Filter;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now, SECOND};

/// The count of one rule in this worker.
#[derive(Debug)]
pub struct DailyFilter {
    filter: Filter,
    /// What the next day is counted in.
    next: Terms,
    /// Permits that one count stands for.
    unit_cost: u64,
    /// When the day ends by the wall clock.
    ends: Micros,
    /// When it has lasted a day here, by the monotonic clock.
    lasted: Micros,
    /// The latest time on the wall clock that was seen, and whether there was a larger step back from it.
    latest: Micros,
    stepped_back: bool,
    /// Accounts that were charged, and how often any of them was.
    accounts: u64,
    charges: u64,
    /// The same, when last asked for the change.
    reported: u64,
}

impl DailyFilter {
    pub(crate) fn new(terms: Terms) -> DailyFilter {
        DailyFilter {
            filter: Filter::new(terms.shape),
            unit_cost: terms.cost,
            next: terms,
            ends: 0,
            lasted: 0,
            latest: 0,
            stepped_back: false,
            accounts: 0,
            charges: 0,
            reported: 0,
        }
    }

    /// Goes on under a changed configuration. What was used stays; another filter takes the place of
    /// this one at midnight.
    pub(crate) fn adopt(&mut self, terms: Terms) {
        self.next = terms;
        if self.accounts == 0 {
            self.empty();
        }
    }

    /// Begins the day of `now`, if it is another one.
    pub(super) fn begin(&mut self, now: Now) {
        self.stepped_back |= now.wall.saturating_add(SECOND) < self.latest;
        self.latest = self.latest.max(now.wall);
        if self.accounts == 0 || self.left(now) == 0 {
            let day = self.next.days.at(now.wall);
            (self.ends, self.lasted) = (day.ends, now.mono.saturating_add(day.length));
            (self.latest, self.stepped_back) = (now.wall, false);
            if self.accounts > 0 {
                self.empty();
            }
        }
    }

    /// Ticks until the day ends.
    pub(super) fn left(&self, now: Now) -> Micros {
        let by_wall = self.ends.saturating_sub(now.wall);
        let by_mono = self.lasted.saturating_sub(now.mono);
        if self.stepped_back { by_wall.min(by_mono) } else { by_wall }
    }

    /// Permits that an account has used; never less than the truth.
    pub(super) fn used(&self, key: Key) -> u64 {
        self.filter.count(key).saturating_mul(self.unit_cost)
    }

    /// Permits that an account may use where the rule says `rpu`: no more than can be counted.
    pub(super) fn most(&self, rpu: u64) -> u64 {
        rpu.min(self.filter.shape().most().saturating_mul(self.unit_cost))
    }

    /// Charges an account.
    pub(super) fn charge(&mut self, key: Key, permits: u64) {
        let counts = permits.div_ceil(self.unit_cost);
        let before = self.filter.add(key, counts);
        self.accounts += u64::from(before == 0);
        self.charges = self.charges.wrapping_add(1);
    }

    /// A number that is another one after an account was charged.
    pub(super) fn charges(&self) -> u64 {
        self.charges
    }

    /// Whether there are more accounts than the filter is made for.
    pub(super) fn is_crowded(&self) -> bool {
        self.accounts > self.filter.shape().callers
    }

    /// How many accounts more were charged than when this was last asked.
    pub(super) fn change(&mut self) -> i64 {
        let change = self.accounts as i64 - self.reported as i64;
        self.reported = self.accounts;
        change
    }

    /// As [`DailyFilter::change`], when the filter is given up.
    pub(super) fn withdraw(&mut self) -> i64 {
        -(std::mem::take(&mut self.reported) as i64)
    }

    fn empty(&mut self) {
        self.accounts = 0;
        self.unit_cost = self.next.cost;
        if *self.filter.shape() == self.next.shape {
            self.filter.clear();
        } else {
            self.filter = Filter::new(self.next.shape);
        }
    }
}
