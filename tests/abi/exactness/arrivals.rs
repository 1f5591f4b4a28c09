//! When requests come: at random, and wherever a careless algorithm would slip.

use fastrand::Rng;

use super::bound::Admission;
use super::rule::Rule;

/// Microseconds until the next request of one of `callers`: none at all, around what the rule
/// allows, or up to and around the edges that slots, slices and units have. Edges far apart are
/// rare, so that the run stays above the limit.
pub fn pause(rule: &Rule, callers: usize, now: Admission, random: &mut Rng) -> u64 {
    let callers = callers as u64;
    let slot = rule.unit / rule.per_unit().max(1);
    let slice = rule.unit / rule.slices.unwrap_or(10);
    for edge in [slot, slice, rule.unit] {
        let requests = edge / slot.max(1) * callers;
        if random.u64(..10 + 2 * requests.min(rule.rpu)) == 0 {
            return around(edge.max(1), now, random);
        }
    }
    if random.bool() { 0 } else { random.u64(0..=slot / callers) }
}

/// Microseconds to just before, on or just after the next multiple of `edge` on either clock.
fn around(edge: u64, now: Admission, random: &mut Rng) -> u64 {
    let clock = if random.bool() { now.monotonic } else { now.wall };
    (edge - clock % edge + random.u64(0..=2)).saturating_sub(1)
}
