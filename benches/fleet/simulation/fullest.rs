//! The maximum usage of a limit, computed by an oracle that remembers every admission.

use std::collections::BTreeMap;

use diana_policy::time::{Micros, SECOND};

/// An admitted request.
#[derive(Debug, Clone, Copy)]
pub struct Admission {
    pub caller: u32,
    /// The instant of its charge.
    pub at: Micros,
    /// The gateway and its share of the limit in degraded mode. Zero otherwise.
    pub gateway: usize,
    pub part: u64,
}

/// The used and the allowed permits of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fullest {
    pub used: u64,
    pub allowed: u64,
}

impl Fullest {
    /// Permits beyond the limit.
    pub fn over(self) -> u64 {
        self.used.saturating_sub(self.allowed)
    }
}

/// Two extremes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extremes {
    /// The highest ratio of used to allowed permits.
    pub fullest: Fullest,
    /// The highest number of used permits.
    pub most: Fullest,
}

impl Extremes {
    fn add(&mut self, one: Fullest) {
        let Extremes { fullest, most } = self;
        if one.used * fullest.allowed >= fullest.used * one.allowed {
            *fullest = one;
        }
        if one.used >= most.used {
            *most = one;
        }
    }
}

/// The maximum usage over all callers: permits in a window, or in any second. For a token bucket,
/// permits out of the bucket. If gateways were in degraded mode, permits in any second, which may
/// be twice the limit.
pub fn extremes(algo: &str, rpu: u64, admissions: &mut [Admission]) -> Extremes {
    admissions.sort_unstable_by_key(|one| (one.caller, one.at));
    let mut extremes = Extremes::default();
    for of_one in admissions.chunk_by(|one, next| one.caller == next.caller) {
        let alone = of_one.iter().any(|one| one.part > 0);
        match algo {
            "W" => of_one
                .chunk_by(|one, next| one.at / SECOND == next.at / SECOND)
                .for_each(|window| extremes.add(Within::all(window).fullest(rpu, 1))),
            "SW" => sliding(of_one, rpu, 1, &mut extremes),
            // Turns are rounded up to a tick.
            "LB" => sliding(of_one, rpu + 1, 1, &mut extremes),
            "TB" if alone => sliding(of_one, rpu, 2, &mut extremes),
            "TB" => extremes.add(bucket(of_one, rpu)),
            other => panic!("state here what `{other}` allows"),
        }
    }
    extremes
}

/// Every second, at any beginning. `times` the limit is allowed in it.
fn sliding(admissions: &[Admission], rpu: u64, times: u64, extremes: &mut Extremes) {
    let (mut within, mut first) = (Within::default(), 0);
    for one in admissions {
        while one.at >= admissions[first].at + SECOND {
            within.leave(&admissions[first]);
            first += 1;
        }
        within.enter(one);
        extremes.add(within.fullest(rpu, times));
    }
}

/// Permits out of a bucket of size `rpu` with a refill of `rpu` per second.
fn bucket(admissions: &[Admission], rpu: u64) -> Fullest {
    let (mut debt, mut last, mut most) = (0, 0, 0);
    for one in admissions {
        debt = u64::saturating_sub(debt, (one.at - last) * rpu) + SECOND;
        (last, most) = (one.at, most.max(debt));
    }
    Fullest { used: most.div_ceil(SECOND), allowed: rpu }
}

/// The admissions in a second.
#[derive(Default)]
struct Within {
    used: u64,
    /// For each gateway in degraded mode: its admissions, and its largest share.
    alone: BTreeMap<usize, (u64, u64)>,
}

impl Within {
    fn all(admissions: &[Admission]) -> Within {
        let mut within = Within::default();
        admissions.iter().for_each(|one| within.enter(one));
        within
    }

    fn enter(&mut self, one: &Admission) {
        self.used += 1;
        if one.part > 0 {
            let (count, part) = self.alone.entry(one.gateway).or_default();
            (*count, *part) = (*count + 1, one.part.max(*part));
        }
    }

    fn leave(&mut self, one: &Admission) {
        self.used -= 1;
        if one.part > 0
            && let Some((count, _)) = self.alone.get_mut(&one.gateway)
        {
            *count -= 1;
            if *count == 0 {
                self.alone.remove(&one.gateway);
            }
        }
    }

    /// The limit, and the shares of all gateways in degraded mode.
    fn fullest(&self, rpu: u64, times: u64) -> Fullest {
        let parts: u64 = self.alone.values().map(|(_, part)| part).sum();
        Fullest { used: self.used, allowed: times * (rpu + parts) }
    }
}
