//! How full a limit was at its fullest, by an oracle that remembers every admission.

use std::collections::{BTreeMap, VecDeque};

use diana::time::{Micros, SECOND};

/// A request that was let through.
#[derive(Debug, Clone, Copy)]
pub struct Admission {
    pub caller: u32,
    /// When it was charged.
    pub at: Micros,
    /// Where, and by which part of the limit if the gateway went by itself; otherwise zero.
    pub gateway: usize,
    pub part: u64,
}

/// Permits used of a limit, and those that it allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fullest {
    pub used: u64,
    pub allowed: u64,
}

impl Fullest {
    /// Permits beyond what is allowed.
    pub fn over(self) -> u64 {
        self.used.saturating_sub(self.allowed)
    }

    /// The one that uses more of what it allows.
    fn fuller(self, other: Fullest) -> Fullest {
        let fuller = self.used * other.allowed >= other.used * self.allowed;
        if fuller && self.allowed > 0 { self } else { other }
    }
}

/// The fullest that the limit of any caller was: permits in a window, or in a second wherever it begins. Token
/// bucket: permits that were out of the bucket; if gateways went by themselves, permits in a second, which
/// may be twice the limit.
pub fn fullest(algo: &str, rpu: u64, admissions: &mut [Admission]) -> Fullest {
    admissions.sort_unstable_by_key(|one| (one.caller, one.at));
    let mut fullest = Fullest::default();
    for of_one in admissions.chunk_by(|one, next| one.caller == next.caller) {
        let alone = of_one.iter().any(|one| one.part > 0);
        let one = match algo {
            "W" => of_one
                .chunk_by(|one, next| one.at / SECOND == next.at / SECOND)
                .map(|window| Within::all(window).fullest(rpu, 1))
                .fold(Fullest::default(), Fullest::fuller),
            "TB" if alone => sliding(of_one, rpu, 2),
            "TB" => bucket(of_one, rpu),
            "SW" => sliding(of_one, rpu, 1),
            // Turns are rounded up to a tick.
            "LB" => sliding(of_one, rpu + 1, 1),
            other => panic!("state here what `{other}` allows"),
        };
        fullest = fullest.fuller(one);
    }
    fullest
}

/// The fullest second, wherever it begins, in which `times` the limit is allowed.
fn sliding(admissions: &[Admission], rpu: u64, times: u64) -> Fullest {
    let (mut within, mut recent, mut fullest) =
        (Within::default(), VecDeque::<Admission>::new(), Fullest::default());
    for one in admissions {
        while let Some(old) = recent.front().copied()
            && one.at >= old.at + SECOND
        {
            within.leave(&old);
            recent.pop_front();
        }
        within.enter(one);
        recent.push_back(*one);
        fullest = fullest.fuller(within.fullest(rpu, times));
    }
    fullest
}

/// Permits out of a bucket that holds `rpu` and gets as many in a second.
fn bucket(admissions: &[Admission], rpu: u64) -> Fullest {
    let (mut debt, mut last, mut most) = (0, 0, 0);
    for one in admissions {
        debt = u64::saturating_sub(debt, (one.at - last) * rpu) + SECOND;
        (last, most) = (one.at, most.max(debt));
    }
    Fullest { used: most.div_ceil(SECOND), allowed: rpu }
}

/// What was let through in a second.
#[derive(Default)]
struct Within {
    used: u64,
    /// By each gateway that went by itself: how many, and its largest part.
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

    /// The limit, and a part of it for each gateway that went by itself.
    fn fullest(&self, rpu: u64, times: u64) -> Fullest {
        let parts: u64 = self.alone.values().map(|(_, part)| part).sum();
        Fullest { used: self.used, allowed: times * (rpu + parts) }
    }
}
