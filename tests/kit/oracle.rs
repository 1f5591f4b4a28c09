//! The expected behaviour of every algorithm, for the tests: a row for each algorithm of the registry.

pub mod history;

use diana_algorithm::calendar::Windows;
use diana_policy::Quota;
use diana_policy::time::{Now, SECOND};

/// The expected behaviour of an algorithm, computed from all admissions of a caller.
pub struct Oracle {
    short: &'static str,
    counts: Counts,
    /// Maximum delay of a request in ticks, for quotas without `max_delay`. A rule without delay counts requests at the
    /// decision.
    max_delay: u64,
}

/// For how long an admission counts.
enum Counts {
    /// Until the end of its calendar window.
    InWindow,
    /// Until its slice has left the window.
    InSlices,
    /// Until it has drained at the rate of the quota. The function returns the permits of a burst. Without any there is room
    /// for a single request of any cost.
    UntilDrained(fn(&Quota) -> u64),
}

const ORACLES: [Oracle; 4] = [
    Oracle {
        short: "TB",
        counts: Counts::UntilDrained(|quota| quota.burst.unwrap_or(quota.rpu)),
        max_delay: 0,
    },
    Oracle { short: "W", counts: Counts::InWindow, max_delay: 0 },
    Oracle { short: "SW", counts: Counts::InSlices, max_delay: 0 },
    Oracle { short: "LB", counts: Counts::UntilDrained(|_| 0), max_delay: SECOND },
];

/// The oracle of the algorithm with this short name.
pub fn oracle(short: &str) -> &'static Oracle {
    let found = ORACLES.iter().find(|oracle| oracle.short == short);
    found.unwrap_or_else(|| panic!("add a row for `{short}`"))
}

/// An admission: the instant of the decision, the instant at which it leaves on the monotonic
/// clock, and its permits.
#[derive(Clone)]
pub struct Admission {
    pub at: Now,
    pub leaves: u64,
    pub cost: u64,
}

/// The required decision about a request.
#[derive(Debug, PartialEq)]
pub enum Promise {
    Admitted {
        wait: u64,
    },
    Refused,
    /// The oracle accepts both.
    Either,
}

impl Oracle {
    /// Returns true if usage drains, instead of ending all at once.
    pub fn drains(&self) -> bool {
        matches!(self.counts, Counts::UntilDrained(_))
    }

    /// Maximum permits admitted at once, without held requests.
    pub fn burst(&self, quota: &Quota) -> u64 {
        match self.counts {
            _ if quota.warm_up.is_some() => 0,
            Counts::UntilDrained(burst) => burst(quota),
            Counts::InWindow | Counts::InSlices => quota.rpu,
        }
    }

    /// Maximum delay of a rule in ticks.
    pub fn max_delay(&self, quota: &Quota) -> u64 {
        quota.max_delay.unwrap_or(self.max_delay)
    }

    /// Returns true if usage at one instant counts at a later one.
    pub fn counts(&self, quota: &Quota, then: Now, now: Now) -> bool {
        let (unit, slices) = (quota.period(), quota.slices.unwrap_or(10));
        let slice = |at: Now| at.mono / unit * slices + at.mono % unit * slices / unit;
        match self.counts {
            Counts::InWindow => window(quota, then) == window(quota, now),
            Counts::InSlices => slice(then) + slices >= slice(now),
            Counts::UntilDrained(_) => panic!("`{}` counts a part of it", self.short),
        }
    }

    /// Returns true if the bound applies to the usage from one instant to a later one.
    pub fn is_one_interval(&self, quota: &Quota, first: Now, last: Now) -> bool {
        match self.counts {
            Counts::InWindow => window(quota, first) == window(quota, last),
            Counts::InSlices => last.mono - first.mono < quota.period(),
            Counts::UntilDrained(_) => true,
        }
    }

    /// The required decision about the next request after `past`.
    pub fn promise(&self, quota: &Quota, past: &[Admission], now: Now, cost: u64) -> Promise {
        let (rpu, unit) = (u128::from(quota.rpu), u128::from(quota.period()));
        let cost = u128::from(cost);
        let held = |ahead: u128| self.held(quota, ahead);
        if quota.warm_up.is_some() {
            return Promise::Either;
        }
        match self.counts {
            Counts::InWindow => {
                let same = past.iter().filter(|old| self.counts(quota, old.at, now));
                let fits = same.map(|old| u128::from(old.cost)).sum::<u128>() + cost <= rpu;
                if fits { Promise::Admitted { wait: 0 } } else { Promise::Refused }
            }
            Counts::InSlices => {
                let recent = past.iter().filter(|old| self.is_one_interval(quota, old.at, now));
                let sum = recent.map(|old| u128::from(old.cost)).sum::<u128>() + cost;
                // Slices may refuse more than the bound requires.
                if sum > rpu { Promise::Refused } else { Promise::Either }
            }
            Counts::UntilDrained(burst) if burst(quota) > 0 => {
                let burst = u128::from(burst(quota));
                if cost > burst {
                    return Promise::Refused;
                }
                // Maximum over all earlier arrivals: the permits since that arrival, minus those
                // in the bucket at that time.
                let (mut ahead, mut sum) = (0, cost);
                for old in past.iter().rev() {
                    sum += u128::from(old.cost);
                    let gone = burst * unit + rpu * u128::from(now.mono - old.at.mono);
                    ahead = ahead.max((sum * unit).saturating_sub(gone));
                }
                held(ahead)
            }
            Counts::UntilDrained(_) => {
                // The debt of all requests that have not drained.
                let mut owed: u128 = 0;
                let mut last = 0;
                for old in past {
                    owed = owed.saturating_sub(u128::from(old.at.mono - last) * rpu);
                    last = old.at.mono;
                    owed += u128::from(old.cost) * unit;
                }
                held(owed.saturating_sub(u128::from(now.mono - last) * rpu))
            }
        }
    }

    /// The decision for a request with its turn `ahead` of now, in permits times ticks.
    fn held(&self, quota: &Quota, ahead: u128) -> Promise {
        let rpu = u128::from(quota.rpu);
        match u64::try_from(ahead.div_ceil(rpu.max(1))) {
            Ok(wait) if rpu > 0 && ahead <= self.reach(quota) => Promise::Admitted { wait },
            _ => Promise::Refused,
        }
    }

    /// The longest time in ticks for which a request is held.
    pub fn longest_wait(&self, quota: &Quota) -> u64 {
        (self.reach(quota) / u128::from(quota.rpu.max(1))) as u64
    }

    /// The maximum distance of a held request's turn, in permits times ticks.
    fn reach(&self, quota: &Quota) -> u128 {
        let queue = u128::from(quota.max_queue.unwrap_or(quota.rpu)) * u128::from(quota.period());
        queue.min(u128::from(self.max_delay(quota)) * u128::from(quota.rpu))
    }

    /// Returns true if these departures, in order, use all that the bound allows: in an interval in which a bucket refills, to a
    /// tick; in an interval of a sliding window; or on both sides of the end of a window.
    pub fn reaches_bound(&self, quota: &Quota, past: &[Admission]) -> bool {
        let (burst, rpu) = (u128::from(self.burst(quota)), u128::from(quota.rpu));
        let unit = u128::from(quota.period());
        past.iter().enumerate().any(|(number, first)| {
            let mut sum = 0;
            past[number..].iter().any(|last| {
                let before = sum;
                sum += u128::from(last.cost);
                let span = last.leaves - first.leaves;
                match self.counts {
                    Counts::InWindow => span <= 1 && sum == 2 * rpu,
                    Counts::InSlices => u128::from(span) < unit && sum == rpu,
                    Counts::UntilDrained(_) => {
                        let counted = if burst > 0 { sum } else { before };
                        span > 0 && counted * unit + rpu > burst * unit + rpu * u128::from(span)
                    }
                }
            })
        })
    }

    /// Checks the departures of a rule with a rate against its bound in all intervals. Turns are
    /// rounded up to a tick, so an interval may appear one tick too short.
    pub fn check_departures(&self, quota: &Quota, mut past: Vec<Admission>) {
        if !self.drains() {
            return;
        }
        let burst = u128::from(self.burst(quota));
        let (rpu, unit) = (u128::from(quota.rpu), u128::from(quota.period()));
        past.sort_by_key(|old| old.leaves);
        for (number, first) in past.iter().enumerate() {
            let mut sum = 0;
            for last in &past[number..] {
                // A slot is as long as the cost of its request, and the last one may exceed the
                // interval.
                let fits = if burst == 0 { 0 } else { u128::from(last.cost) };
                let span = u128::from(last.leaves - first.leaves) + 1;
                assert!(
                    (sum + fits) * unit < burst * unit + rpu * span,
                    "{} let too much leave from {} to {}",
                    self.short,
                    first.leaves,
                    last.leaves
                );
                sum += u128::from(last.cost);
            }
        }
    }
}

/// The end of the calendar window of an instant.
fn window(quota: &Quota, at: Now) -> u64 {
    Windows::of(quota).at(at.wall).ends
}
