//! Random arrivals of one caller.

use diana_policy::time::Now;
use fastrand::Rng;

use super::case::Case;

/// Arrivals from a random instant.
pub fn random(case: &Case, rng: &mut Rng, count: usize) -> Vec<(Now, u64)> {
    // Often within a few units after the clock's origin, as on a machine that has just booted.
    let longest = 1 << rng.u8(1..46);
    let mono = rng.u64(0..longest);
    let wall = rng.u64(1_600_000_000_000_000..1_900_000_000_000_000);
    from(Now { mono, wall }, case, rng, count)
}

/// Arrivals from `now`: bursts, gaps of about an interval, and gaps of up to three units.
pub fn from(mut now: Now, case: &Case, rng: &mut Rng, count: usize) -> Vec<(Now, u64)> {
    let period = case.quota.period();
    let interval = period / case.quota.rpu.max(1);
    let arrival = |_| {
        let gap = match rng.u8(0..10) {
            0..=4 => 0,
            5..=6 => rng.u64(0..=2 * interval + 1),
            7..=8 => rng.u64(0..=period / 4),
            _ => rng.u64(0..=3 * period),
        };
        now = now.later(gap);
        // Usually the rule's cost, sometimes a cost that uses up the limit at once.
        let cost = match rng.u8(0..6) {
            0 => rng.u64(1..=case.quota.rpu.max(1)),
            1 => rng.u64(1..=case.quota.rpu.max(4) / 2),
            _ => case.quota.cost,
        };
        (now, cost)
    };
    (0..count).map(arrival).collect()
}
