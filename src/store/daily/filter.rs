//! Usage of a rule's accounts on one day.
//!
//! At midnight, the next day reuses the memory: every line of the filter contains its day, so the
//! switch changes one number, and lines of other days are ignored.
//!
//! A day is identified by its end on the wall clock. If that clock steps back, the current day
//! continues. After a step of more than a second, it ends at the latest one day of monotonic time
//! after its first charge.

use super::DailyTerms;
use diana_policy::bloom::Filter;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now, SECOND};

/// The counters of one rule in this worker.
#[derive(Debug)]
pub struct DailyFilter {
    filter: Filter,
    /// The parameters of the next day.
    next: DailyTerms,
    /// Permits per count.
    unit_cost: u64,
    /// The end of the day on the wall clock.
    ends: Micros,
    /// The end of the day on the monotonic clock.
    lasted: Micros,
    /// The latest wall-clock time seen, and whether the clock has stepped back from it by more than
    /// a second.
    latest: Micros,
    has_stepped_back: bool,
    /// Accounts that were charged, and the number of charges.
    accounts: u64,
    charges: u64,
    /// `accounts` at the latest call of [`DailyFilter::change`].
    reported: u64,
}

impl DailyFilter {
    pub(crate) fn new(terms: DailyTerms) -> DailyFilter {
        DailyFilter {
            filter: Filter::new(terms.shape),
            unit_cost: terms.cost,
            next: terms,
            ends: 0,
            lasted: 0,
            latest: 0,
            has_stepped_back: false,
            accounts: 0,
            charges: 0,
            reported: 0,
        }
    }

    /// Continues under a changed configuration. Usage stays; the new parameters apply from
    /// midnight, or at once if no account was charged.
    pub(crate) fn adopt(&mut self, terms: DailyTerms) {
        self.next = terms;
        if self.accounts == 0 {
            self.empty();
        }
    }

    /// Starts the day of `now`, unless it is the current one.
    pub(super) fn begin(&mut self, now: Now) {
        self.has_stepped_back |= now.wall.saturating_add(SECOND) < self.latest;
        self.latest = self.latest.max(now.wall);
        if self.accounts == 0 || self.left(now) == 0 {
            let day = self.next.days.at(now.wall);
            (self.ends, self.lasted) = (day.ends, now.mono.saturating_add(day.length));
            (self.latest, self.has_stepped_back) = (now.wall, false);
            if self.accounts > 0 {
                self.empty();
            }
        }
    }

    /// Ticks until the day ends.
    pub(super) fn left(&self, now: Now) -> Micros {
        let by_wall = self.ends.saturating_sub(now.wall);
        let by_mono = self.lasted.saturating_sub(now.mono);
        if self.has_stepped_back { by_wall.min(by_mono) } else { by_wall }
    }

    /// Permits that an account has used, or more; never less.
    pub(super) fn used(&self, key: Key) -> u64 {
        self.filter.count(key).saturating_mul(self.unit_cost)
    }

    /// Permits that an account may use with this `rpu`, capped at the maximum of the counters.
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

    /// A number that changes with every charge.
    pub(super) fn charges(&self) -> u64 {
        self.charges
    }

    /// Returns true if more accounts were charged than the filter is sized for.
    pub(super) fn is_crowded(&self) -> bool {
        self.accounts > self.filter.shape().callers
    }

    /// The change of the number of accounts since the last call.
    pub(super) fn change(&mut self) -> i64 {
        let change = self.accounts as i64 - self.reported as i64;
        self.reported = self.accounts;
        change
    }

    /// As [`DailyFilter::change`], when the filter is dropped.
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
