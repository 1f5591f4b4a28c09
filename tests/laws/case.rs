//! Random valid configurations of an algorithm.

use std::rc::Rc;

use diana::algorithm::{Algorithm, Entry};
use diana::quota::Quota;
use diana::time::Unit;
use fastrand::Rng;

pub struct Case {
    pub quota: Quota,
    pub algorithm: Rc<dyn Algorithm>,
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
}

fn random_quota(entry: &Entry, rng: &mut Rng) -> Quota {
    let (_, unit) = Unit::ALL[rng.usize(0..4)];
    let mut quota = Quota::new(unit, permits(rng));
    if rng.u8(0..20) == 0 {
        quota.rpu = 0;
    }
    quota.cost = if rng.bool() { 1 } else { permits(rng) };
    quota.zone = rng.i64(-56..=56) * 900;
    for key in entry.keys {
        let value = Some(permits(rng).clamp(key.min, key.max));
        match key.name {
            _ if rng.bool() => {}
            "burst" => quota.burst = value,
            "slices" => quota.slices = value,
            "max_queue" => quota.max_queue = value,
            other => panic!("say here which field of the quota `{other}` is"),
        }
    }
    quota
}

/// Small numbers, odd ones and extremes.
fn permits(rng: &mut Rng) -> u64 {
    match rng.u8(0..8) {
        0 => 1,
        1..=4 => rng.u64(1..=20),
        5 => rng.u64(1..=1000),
        6 => rng.u64(1..=1_000_000_000),
        _ => 999_999_937,
    }
}
