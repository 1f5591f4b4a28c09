//! All charges of a caller, and what they require of the next request, while its quota changes, charges are settled and the
//! wall clock steps back.

use diana_algorithm::calendar::Windows;
use diana_policy::Quota;
use diana_policy::time::{Micros, Now};

use super::{Admission, Counts, Oracle, Promise};

/// A window of the calendar from its first request on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    /// Its end on the wall clock, and the latest one on the monotonic clock.
    ends: Micros,
    latest: Micros,
}

/// A charge that counts.
#[derive(Debug, Clone, Copy)]
struct Charge {
    at: Now,
    /// Ticks until its request leaves.
    wait: Micros,
    cost: u64,
    /// The part of it that is known to be used.
    settled: u64,
    /// The rate under which earlier charges drained until this one.
    rpu: u64,
    window: Window,
    /// Whether it was cancelled. Whether earlier charges have drained until then is no promise, if the rate changes.
    is_void: bool,
}

/// The charges of a caller.
#[derive(Debug, Clone, Default)]
pub struct History {
    charges: Vec<Charge>,
    /// The number of charges that had drained at a change of the rate. They may count again under a slower one.
    drained: usize,
}

impl History {
    /// Adds a charge under a quota, of a request that leaves after `wait`. Returns its number.
    pub fn charge(&mut self, quota: &Quota, now: Now, wait: Micros, cost: u64) -> usize {
        let (window, _) = self.window(quota, now);
        let (rpu, settled, is_void) = (quota.rpu, 0, false);
        self.charges.push(Charge { at: now, wait, cost, settled, rpu, window, is_void });
        self.charges.len() - 1
    }

    /// The request of a charge has ended, and this counts from now on.
    pub fn settle(&mut self, number: usize, used: u64) {
        (self.charges[number].cost, self.charges[number].settled) = (used, used);
    }

    /// The usage of requests that have ended, without reservations.
    pub fn settled(&self) -> History {
        let settled = |charge: &Charge| Charge { cost: charge.settled, ..*charge };
        History { charges: self.charges.iter().map(settled).collect(), ..*self }
    }

    /// An operator resets the usage: only reservations of requests that have not ended count.
    pub fn reset(&mut self) {
        for charge in &mut self.charges {
            (charge.cost, charge.settled) = (charge.cost - charge.settled, 0);
        }
    }

    /// A charge is cancelled.
    pub fn cancel(&mut self, number: usize) {
        (self.charges[number].cost, self.charges[number].is_void) = (0, true);
    }

    /// Returns true if all later charges were cancelled.
    pub fn is_latest(&self, number: usize) -> bool {
        self.charges[number + 1..].iter().all(|charge| charge.is_void)
    }

    /// The quota changes at `now`.
    pub fn change(&mut self, oracle: &Oracle, quota: &Quota, now: Now) {
        if oracle.drains() && self.owed(quota, now, 0, true) == 0 {
            self.drained = self.charges.len();
        }
    }

    /// The required decision about the next request.
    pub fn promise(&self, oracle: &Oracle, quota: &Quota, now: Now, cost: u64) -> Promise {
        if quota.warm_up.is_some() {
            return Promise::Either;
        }
        if !oracle.drains() {
            let fits = self.used(oracle, quota, now) + cost <= quota.rpu;
            return if fits { Promise::Admitted { wait: 0 } } else { Promise::Refused };
        }
        let burst = oracle.burst(quota);
        if burst > 0 && cost > burst {
            return Promise::Refused;
        }
        let unit = u128::from(quota.period());
        let decide = |owed: u128| {
            let over = (owed + u128::from(cost) * unit).saturating_sub(u128::from(burst) * unit);
            oracle.held(quota, if burst > 0 { over } else { owed })
        };
        let promise = decide(self.owed(quota, now, 0, true));
        let others = [(0, false), (self.drained, true), (self.drained, false)];
        let same = |(from, with)| decide(self.owed(quota, now, from, with)) == promise;
        if others.into_iter().all(same) { promise } else { Promise::Either }
    }

    /// Ticks from `now` until the turn of the next request under `warm_up`, as Guava's `SmoothWarmingUp` has it with a cold factor
    /// of three. `None` without `warm_up`, and if a charge came back: it is unknown how much of it was stored.
    pub fn warm_turn(&self, quota: &Quota, now: Now) -> Option<f64> {
        let interval = quota.period() as f64 / quota.rpu as f64;
        let most = quota.warm_up? as f64 / interval;
        let above = |stored: f64| (stored - most / 2.0).max(0.0);
        let (mut free, mut stored) = (self.charges.first().map_or(0, |it| it.at.mono) as f64, most);
        for Charge { at, cost, is_void, .. } in &self.charges {
            let (at, cost) = (free.max(at.mono as f64), *cost as f64);
            let from = most.min(stored + (at - free) / interval);
            stored = from - cost.min(from);
            // Above one half, the interval of a permit rises from one to three.
            let slower = above(from).powi(2) - above(stored).powi(2);
            free = at + interval * (cost + 2.0 * slower / most);
            if *is_void {
                return None;
            }
        }
        Some((free - now.mono as f64).max(0.0))
    }

    /// Permits of which a request is admitted at once. `None` if that is no promise.
    pub fn left(&self, oracle: &Oracle, quota: &Quota, now: Now) -> Option<u64> {
        if quota.warm_up.is_some() {
            return None;
        }
        if !oracle.drains() {
            return Some(quota.rpu.saturating_sub(self.used(oracle, quota, now)));
        }
        let unit = u128::from(quota.period());
        let of = |owed: u128| match oracle.burst(quota) {
            0 => u64::from(owed == 0 && quota.rpu > 0),
            burst => ((u128::from(burst) * unit).saturating_sub(owed) / unit) as u64,
        };
        let left = of(self.owed(quota, now, 0, true));
        let others = [(0, false), (self.drained, true), (self.drained, false)];
        let same = |(from, with)| of(self.owed(quota, now, from, with)) == left;
        others.into_iter().all(same).then_some(left)
    }

    /// Ticks from `now` until the decision about a request of one of these costs may change: the first such edge and the last.
    pub fn edges(&self, oracle: &Oracle, quota: &Quota, now: Now, costs: &[u64]) -> [Micros; 2] {
        let unit = quota.period();
        if let (Some(turn), Some(warm_up)) = (self.warm_turn(quota, now), quota.warm_up) {
            let (turn, full) = (turn.ceil() as Micros, turn.ceil() as Micros + warm_up);
            return [if turn > 0 { turn } else { full }, full];
        }
        let mut edges: Vec<Micros> = match oracle.counts {
            Counts::InWindow => {
                let (window, _) = self.window(quota, now);
                vec![window.ends - now.wall, window.latest - now.mono]
            }
            Counts::InSlices => {
                let slices = quota.slices.unwrap_or(10);
                let start =
                    |slice: u64| slice / slices * unit + (slice % slices * unit).div_ceil(slices);
                let slice = |at: Micros| at / unit * slices + at % unit * slices / unit;
                let ends =
                    self.charges.iter().map(|charge| start(slice(charge.at.mono) + slices + 1));
                ends.chain([start(slice(now.mono) + 1)])
                    .map(|end| end.saturating_sub(now.mono))
                    .collect()
            }
            Counts::UntilDrained(_) => {
                let (unit, rpu) = (u128::from(unit), u128::from(quota.rpu.max(1)));
                let (owed, burst) =
                    (self.owed(quota, now, 0, true), u128::from(oracle.burst(quota)));
                let queue = oracle.reach(quota);
                let room = |cost: &u64| {
                    let cost = if burst > 0 { u128::from(*cost) * unit } else { 0 };
                    let over = (owed + cost).saturating_sub(burst * unit);
                    [over.div_ceil(rpu) as u64, over.saturating_sub(queue).div_ceil(rpu) as u64]
                };
                costs.iter().flat_map(room).collect()
            }
        };
        edges.retain(|edge| *edge > 0);
        let first = edges.iter().min().copied().unwrap_or(unit);
        [first, edges.into_iter().max().unwrap_or(unit)]
    }

    /// Permits that count in the window.
    fn used(&self, oracle: &Oracle, quota: &Quota, now: Now) -> u64 {
        if let Counts::InWindow = oracle.counts {
            return self.window(quota, now).1;
        }
        let recent = self.charges.iter().filter(|charge| oracle.counts(quota, charge.at, now));
        recent.map(|charge| charge.cost).sum()
    }

    /// The window at `now`, and the usage in it. A window stays until it ends on one of the clocks, as long as it has usage.
    fn window(&self, quota: &Quota, now: Now) -> (Window, u64) {
        if let Some(Charge { window, .. }) = self.charges.last() {
            let same = self.charges.iter().filter(|charge| charge.window == *window);
            let used = same.map(|charge| charge.cost).sum();
            if used > 0 && now.wall < window.ends && now.mono < window.latest {
                return (*window, used);
            }
        }
        let planned = Windows::of(quota).at(now.wall);
        (Window { ends: planned.ends, latest: now.mono + planned.length }, 0)
    }

    /// What is left of the charges from number `from` on, in permits times ticks.
    fn owed(&self, quota: &Quota, now: Now, from: usize, with_void: bool) -> u128 {
        let gone = |since: Now, until: Now, rpu: u64| {
            u128::from(until.mono - since.mono) * u128::from(rpu)
        };
        let (mut owed, mut last) = (0u128, now);
        let counts = |charge: &&Charge| with_void || !charge.is_void;
        for charge in self.charges[from..].iter().filter(counts) {
            owed =
                owed.saturating_sub(if owed > 0 { gone(last, charge.at, charge.rpu) } else { 0 });
            owed += u128::from(charge.cost) * u128::from(quota.period());
            last = charge.at;
        }
        owed.saturating_sub(gone(last, now, quota.rpu))
    }

    /// The charges as admissions.
    pub fn admissions(&self) -> Vec<Admission> {
        let admission = |charge: &Charge| {
            let Charge { at, wait, cost, .. } = *charge;
            Admission { at, leaves: at.mono + wait, cost }
        };
        self.charges.iter().map(admission).collect()
    }
}
