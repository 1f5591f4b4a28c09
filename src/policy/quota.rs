//! How much a rule allows: the numbers of a rule that its algorithm is built from.

use super::Zone;
use crate::time::{Micros, Unit};

/// Largest `rpu`, `burst` and `cost`.
pub const MAX_PERMITS: u64 = 1_000_000_000;

/// What a rule's algorithm is built from. Values are in the ranges of the configuration;
/// `None` means that the key was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The unit that `rpu` counts in.
    pub unit: Unit,
    /// Permits per unit, 0 ..= [`MAX_PERMITS`]; 0 refuses everything.
    pub rpu: u64,
    /// The lowest `rpu` above zero of all plans by which a caller may come to be judged; by default `rpu`.
    pub slowest: Option<u64>,
    /// The highest `rpu` of all plans; by default `rpu`.
    pub fastest: Option<u64>,
    /// Ticks for which what is used under one plan may count under another one; zero if there is only one, or it counts
    /// as long under all of them.
    pub longest: Micros,
    /// Permits that one request takes, or takes at most, 1 ..= [`MAX_PERMITS`].
    pub cost: u64,
    /// Size of a token bucket in permits, 1 ..= [`MAX_PERMITS`]; by default `rpu`.
    pub burst: Option<u64>,
    /// Slices of a sliding window, 1 ..= 60; by default 10.
    pub slices: Option<u64>,
    /// Ticks in which a bucket gets warm, 1 ms ..= 1 h; `None` if it always is.
    pub warm_up: Option<Micros>,
    /// Ticks that an early request is held at most, 0 ..= 20 s; by default 1 s in a leaky bucket,
    /// 0 in a token bucket, which then refuses it.
    pub max_delay: Option<Micros>,
    /// How many intervals ahead the turn of a held request may lie; by default `rpu`.
    pub max_queue: Option<u64>,
    /// The local time of windows that are aligned to the wall clock.
    pub zone: Zone,
}

impl Quota {
    /// A quota with every optional key left out, in UTC, at one permit a request.
    #[must_use]
    pub fn new(unit: Unit, rpu: u64) -> Quota {
        Quota {
            unit,
            rpu,
            slowest: None,
            fastest: None,
            longest: 0,
            cost: 1,
            burst: None,
            slices: None,
            warm_up: None,
            max_delay: None,
            max_queue: None,
            zone: Zone::UTC,
        }
    }

    /// The unit in ticks; of a month the longest.
    #[must_use]
    pub fn period(&self) -> Micros {
        self.unit.micros()
    }

    /// The rate by which state is kept: it is forgotten when it means nothing under any plan.
    #[must_use]
    pub fn lasting(&self) -> u64 {
        self.slowest.unwrap_or(self.rpu)
    }

    /// The highest rate at which what was charged under any plan may have drained.
    #[must_use]
    pub fn fastest(&self) -> u64 {
        self.fastest.unwrap_or(self.rpu).max(self.rpu)
    }

    /// The part of one of so many, at one permit a request: what costs more than a part is refused,
    /// but is no mistake in the rule.
    #[must_use]
    pub fn part(&self, count: u64) -> Quota {
        let part = |permits: u64| permits.div_ceil(count.max(1));
        Quota {
            rpu: part(self.rpu),
            slowest: self.slowest.map(part),
            fastest: self.fastest.map(part),
            burst: self.burst.map(part),
            max_queue: self.max_queue.map(part),
            cost: 1,
            ..*self
        }
    }
}
