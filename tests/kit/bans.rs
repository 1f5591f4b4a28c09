//! Bans of a rule.

use diana_policy::Ban;
use diana_policy::key::Key;
use diana_policy::time::SECOND;
use diana_store::bans::Bans;

/// A ban for ten refusals within a minute.
pub const BAN: Ban = Ban {
    after: 10,
    within: 60 * SECOND,
    period: 100 * SECOND,
    max: 400 * SECOND,
    halve_after: 400 * SECOND,
    is_shadow: false,
};

/// Calls of a limiter to the bans of a rule.
pub trait Calls {
    /// Counts a refusal.
    fn refused(&mut self, key: Key, now: u64);
    /// Counts the gathered refusals.
    fn maintain_at(&mut self, now: u64);
}

impl Calls for Bans {
    fn refused(&mut self, key: Key, now: u64) {
        self.count(key, 1, now);
    }

    fn maintain_at(&mut self, now: u64) {
        let begun = self.maintain(now);
        // Tests read the count.
        self.begun = begun;
    }
}
