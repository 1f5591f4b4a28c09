//! Random valid configurations of an algorithm.

use std::sync::Arc;

use diana_algorithm::{Algorithm, Entry, Form};
use diana_policy::time::{SECOND, Unit};
use diana_policy::{MAX_DRAINED, MAX_PERMITS, Quota, Zone};
use fastrand::Rng;

use crate::zones::{SUMMER, some_starts, zone};

pub struct Case {
    pub quota: Quota,
    pub algorithm: Arc<dyn Algorithm>,
}

impl Case {
    pub fn random(entry: &Entry, rng: &mut Rng) -> Case {
        loop {
            let quota = random_quota(entry, rng);
            if let Ok(algorithm) = (entry.build)(&quota) {
                return Case { quota, algorithm };
            }
        }
    }

    /// A case of another algorithm at about the same rate, if one is found.
    pub fn beside(&self, entry: &Entry, rng: &mut Rng) -> Option<Case> {
        (0..20).find_map(|_| {
            let mut quota = random_quota(entry, rng);
            quota.unit = self.quota.unit;
            quota.rpu = (self.quota.rpu * rng.u64(1..5) / rng.u64(1..5)).clamp(1, MAX_PERMITS);
            quota.is_wide = quota.rpu > MAX_DRAINED;
            quota.cost = quota.cost.min(quota.rpu);
            let algorithm = (entry.build)(&quota).ok()?;
            Some(Case { quota, algorithm })
        })
    }
}

fn random_quota(entry: &Entry, rng: &mut Rng) -> Quota {
    let unit = match rng.u8(0..16) {
        0 | 1 if entry.by_calendar => Unit::Month,
        2 if entry.by_calendar => Unit::Year,
        _ => unit(rng),
    };
    let mut quota = Quota::new(unit, permits(rng));
    if rng.u8(0..20) == 0 {
        quota.rpu = 0;
    }
    quota.cost = if rng.bool() { 1 } else { permits(rng) };
    quota.zone = match rng.u8(0..3) {
        0 => zone(SUMMER[rng.usize(0..SUMMER.len())]),
        _ => Zone::ahead((i32::from(rng.u8(0..=112)) - 56) * 900),
    };
    if rng.bool() {
        quota.starts = some_starts(rng);
    }
    for key in entry.keys {
        if rng.bool() {
            let value = match key.form {
                Form::Number => permits(rng),
                Form::Duration => ticks(rng),
            };
            *(key.field)(&mut quota) = Some(value.clamp(key.min, key.max));
        }
    }
    quota
}

/// A named unit, or another length.
fn unit(rng: &mut Rng) -> Unit {
    let ticks = match rng.u8(0..10) {
        0 => 7 * SECOND,
        1 => 90 * 60 * SECOND,
        2 => Unit::LONGEST,
        3 => rng.u64(Unit::SHORTEST..=Unit::LONGEST) / 1000 * 1000,
        _ => match Unit::ALL[rng.usize(0..Unit::ALL.len())].1 {
            unit if unit.varies() => Unit::LONGEST,
            unit => unit.micros(),
        },
    };
    Unit::of(ticks)
}

/// Whole milliseconds, from one to an hour.
fn ticks(rng: &mut Rng) -> u64 {
    let longest = 3_600_000 >> rng.u8(0..22);
    1000 * rng.u64(1..=longest)
}

/// Small, odd and extreme numbers.
fn permits(rng: &mut Rng) -> u64 {
    match rng.u8(0..10) {
        0 => 1,
        1..=4 => rng.u64(1..=20),
        5 => rng.u64(1..=1000),
        6 => rng.u64(1..=MAX_DRAINED),
        7 => rng.u64(1..=MAX_PERMITS),
        8 => MAX_PERMITS,
        _ => 999_999_937,
    }
}
