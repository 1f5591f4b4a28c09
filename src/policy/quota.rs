//! Quotas: the parameters of a rule's algorithm.

use super::{Starts, Zone};
use crate::time::{Micros, Unit};

/// Maximum of `rpu` and `cost`: integers of the `RateLimit` fields have 15 digits.
pub const MAX_PERMITS: u64 = 999_999_999_999_999;

/// The same where permits drain, or share counters: in buckets and daily quotas. Also the maximum
/// of `burst` and `max_queue`.
pub const MAX_DRAINED: u64 = 1_000_000_000;

/// Usage stops here. Redis counts in floats, which are exact to 2⁵³: below that a gateway of an earlier version, which adds without
/// an end, has room for millions of its debts.
pub const MAX_USED: u64 = (1 << 52) - 1;

/// The parameters of a rule's algorithm, in the ranges of the configuration. `None` means that the
/// key is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The unit of `rpu`.
    pub unit: Unit,
    /// Permits per unit, 0 ..= [`MAX_PERMITS`]; 0 refuses everything.
    pub rpu: u64,
    /// The lowest `rpu` above zero of all plans of a caller. By default `rpu`.
    pub slowest: Option<u64>,
    /// The highest `rpu` of all plans. By default `rpu`.
    pub fastest: Option<u64>,
    /// Ticks for which usage under one plan may count under another one. Zero if there is only one
    /// plan, or usage counts equally long under all of them.
    pub longest: Micros,
    /// The cost of a request, or the maximum if it varies, 1 ..= [`MAX_PERMITS`].
    pub cost: u64,
    /// Whether a request of the rule, or a plan, may have more than [`MAX_DRAINED`] permits. A
    /// sliding window then counts each slice in 64 bits instead of 32.
    pub is_wide: bool,
    /// Size of a token bucket in permits, 1 ..= [`MAX_DRAINED`]. By default `rpu`.
    pub burst: Option<u64>,
    /// Slices of a sliding window, 1 ..= 60. By default 10.
    pub slices: Option<u64>,
    /// Duration of the warm-up in ticks, 1 ms ..= 1 h. `None` disables it.
    pub warm_up: Option<Micros>,
    /// Maximum time in ticks that an early request is held, 0 ..= 20 s. By default 1 s in a leaky
    /// bucket. The default of a token bucket is 0: it refuses the request.
    pub max_delay: Option<Micros>,
    /// Maximum number of intervals until the turn of a held request. By default `rpu`.
    pub max_queue: Option<u64>,
    /// The time zone of windows that are aligned to the wall clock.
    pub zone: Zone,
    /// Where these windows begin.
    pub starts: Starts,
}

impl Quota {
    /// A quota in UTC without optional keys, with a cost of one.
    #[must_use]
    pub fn new(unit: Unit, rpu: u64) -> Quota {
        Quota {
            unit,
            rpu,
            slowest: None,
            fastest: None,
            longest: 0,
            cost: 1,
            is_wide: rpu > MAX_DRAINED,
            burst: None,
            slices: None,
            warm_up: None,
            max_delay: None,
            max_queue: None,
            zone: Zone::UTC,
            starts: Starts::PLAIN,
        }
    }

    /// The unit in ticks. For a month or a year, the longest one.
    #[must_use]
    pub fn period(&self) -> Micros {
        self.unit.micros()
    }

    /// The rate that determines the expiry of a state: it expires when it has no effect under any
    /// plan.
    #[must_use]
    pub fn lasting(&self) -> u64 {
        self.slowest.unwrap_or(self.rpu)
    }

    /// The highest rate at which charges may have drained under any plan.
    #[must_use]
    pub fn fastest(&self) -> u64 {
        self.fastest.unwrap_or(self.rpu).max(self.rpu)
    }

    /// One of `count` shares, at a cost of one. A cost above the share is refused, and is not a
    /// configuration error.
    #[must_use]
    pub fn share(&self, count: u64) -> Quota {
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
