//! How many permits a caller takes.

use super::{LEAST, Pace, REQUESTS, Wanted};
use diana_policy::time::{Micros, Now, SECOND};

/// The demand of a caller: requests in the current span and in the previous one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Demand {
    /// The start of the current span.
    pub(super) since: Micros,
    /// The length of the previous one; zero if there was none.
    pub(super) before: Micros,
    pub(super) current: u32,
    pub(super) previous: u32,
}

impl Demand {
    /// The shortest span.
    const SPAN: Micros = SECOND / 10;

    /// Requests after which a span may end: their rate is known then.
    const KNOWN: u32 = 20;

    /// Requests of a worker in one to two spans from which on its gateway counts them, too: it may have
    /// more workers.
    pub(super) const FREQUENT: u32 = 2;

    /// The most requests in a span.
    pub(super) const FULL: u32 = u32::MAX / 4;

    /// The shortest time over which demand is measured.
    const SHORTEST: Micros = SECOND / 80;

    /// The maximum expected demand, in permits.
    const MOST: u64 = 1 << 16;

    /// Counts requests, of which the last one comes now. A span lasts until the requests of a busy caller
    /// have come, as far as it may.
    pub(super) fn count(&mut self, requests: u32, now: Now, pace: Pace) {
        let age = now.mono.saturating_sub(self.since);
        if age >= 2 * pace.span {
            *self = Demand { since: now.mono, ..Demand::default() };
        }
        self.current = self.current.saturating_add(requests.saturating_sub(1)).min(Demand::FULL);
        if age < 2 * pace.span
            && (age >= pace.span || age >= Demand::SPAN && self.current >= Demand::KNOWN)
        {
            (self.since, self.before) = (now.mono, age);
            (self.previous, self.current) = (self.current, 0);
        }
        self.current += 1;
    }

    /// Requests in the current span and in the previous one.
    pub(super) fn requests(&self) -> u64 {
        u64::from(self.previous) + u64::from(self.current)
    }

    pub(super) fn is_busy(&self, now: Now, pace: Pace) -> bool {
        self.requests() >= pace.requests && self.time_of(LEAST, now) <= pace.busy
    }

    /// Ticks in which `requests` come.
    pub(super) fn time_of(&self, requests: u64, now: Now) -> Micros {
        requests.saturating_mul(self.elapsed(now)) / self.requests().max(1)
    }

    pub(super) fn elapsed(&self, now: Now) -> Micros {
        let lasted = now.mono.saturating_sub(self.since);
        self.before.saturating_add(lasted).max(Demand::SHORTEST)
    }

    /// Permits that are taken within this time, if each request takes `cost`.
    pub(super) fn within(&self, ticks: Micros, cost: u64, now: Now) -> u64 {
        let requests = self.requests().saturating_mul(ticks) / self.elapsed(now);
        requests.saturating_mul(cost).min(Demand::MOST.max(cost))
    }

    /// The next block, if each request takes `cost`.
    pub(super) fn expected(&self, cost: u64, now: Now, pace: Pace) -> Wanted {
        let (least, most) = pace.ahead;
        let ahead = self.time_of(REQUESTS, now).clamp(least, most);
        // The requests of a faster caller ask in time.
        let spare = if ahead == most { pace.spare.saturating_mul(cost) } else { 0 };
        let permits = match self.is_busy(now, pace) && cost.saturating_mul(LEAST) <= pace.most {
            true => self.within(ahead, cost, now).saturating_add(spare).clamp(cost, pace.most),
            false => 0,
        };
        Wanted { permits, ahead }
    }
}
