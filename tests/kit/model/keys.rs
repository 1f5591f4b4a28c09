//! The number of separate states of a rule. Callers beyond its limit share states.

use diana_algorithm::calendar::Windows;
use diana_policy::time::SECOND;

use super::rule::Rule;
use super::{FAR, LONG, Model, State};
use crate::laws::case::Case;

const BUCKETS: u64 = 1024;
const RING: u64 = 9;

/// The owner of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    Caller(u64),
    Bucket(u64),
}

/// Counts the callers of a rule by the slice in which their states expire.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    slice: u64,
    newest: u64,
    /// The latest expiry of a shared state.
    shared: u64,
    counts: [u64; RING as usize],
}

impl Counter {
    fn turn(&mut self, slice: u64, now: u64) {
        let newest = now / slice;
        if self.slice != slice {
            *self = Counter { slice, newest, shared: self.shared, ..Counter::default() };
        }
        for old in (self.newest..newest).take(RING as usize) {
            self.counts[(old % RING) as usize] = 0;
        }
        self.newest = newest;
    }

    /// The expiry of a state moves from the slice `was` to the slice `new`.
    fn moves(&mut self, was: Option<u64>, new: Option<u64>) {
        let last = self.newest + RING - 1;
        if let Some(was) = was.filter(|was| (self.newest..=last).contains(was)) {
            let count = &mut self.counts[(was % RING) as usize];
            *count = count.saturating_sub(1);
        }
        if let Some(new) = new {
            self.counts[(new.min(last) % RING) as usize] += 1;
        }
    }
}

/// The position of a caller's state, and the slice in which it expires.
pub struct Seat {
    pub who: Who,
    pub state: Option<State>,
    slice: u64,
    was: Option<u64>,
}

impl Seat {
    pub fn overflows(&self) -> bool {
        matches!(self.who, Who::Bucket(_))
    }

    fn slot(&self, ends: u64) -> u64 {
        (ends + SECOND).min(FAR) / self.slice
    }
}

impl Rule {
    /// Length of the slices in which expiries are counted.
    pub fn slice(&self, unit_cost: u64) -> u64 {
        (self.life(unit_cost) + SECOND).min(FAR).div_ceil(8)
    }

    /// Maximum lifetime of a state.
    fn life(&self, unit_cost: u64) -> u64 {
        let Case { quota, .. } = &self.case;
        let (unit, slices) = (quota.period(), quota.slices.unwrap_or(10));
        let ticks = |permits: u64| match quota.rpu {
            0 => FAR,
            rpu => {
                let ticks = (u128::from(permits) * u128::from(unit)).div_ceil(rpu.into());
                u64::try_from(ticks).unwrap_or(FAR).min(FAR)
            }
        };
        match self.entry.short {
            _ if quota.longest > 0 => quota.longest,
            "W" => Windows::of(quota).longest(),
            "SW" => unit + 2 * unit.div_ceil(slices),
            "TB" => {
                let delay = quota.max_delay.unwrap_or(0);
                ticks(quota.burst.unwrap_or(quota.rpu)).max(2 * LONG) + delay
            }
            _ => ticks(unit_cost).max(2 * LONG) + quota.max_delay.unwrap_or(SECOND),
        }
    }
}

impl Model {
    /// The position of a caller's state. `ask` has the maximum number of callers and the unit cost.
    pub fn seat(
        &mut self,
        rules: &[Rule],
        rule: usize,
        caller: u64,
        ask: (u64, u64),
        now: u64,
    ) -> Seat {
        let (keys, unit_cost) = ask;
        let slice = rules[rule].slice(unit_cost);
        let (who, bucket) = (Who::Caller(caller), Who::Bucket(caller % BUCKETS));
        let state = self.states.get(&(rule, who)).cloned();
        let mut seat = Seat { who, state, slice, was: None };
        if let Some(state) = &seat.state {
            seat.was = Some(seat.slot(state.ends(&rules[rule])));
            return seat;
        }
        // Reads a copy. The counter is written only if the expiry of a state changes.
        let mut counter = self.counters.get(&rule).cloned().unwrap_or_default();
        counter.turn(slice, now);
        let full = counter.counts.iter().sum::<u64>() >= keys;
        if full || now < counter.shared {
            seat.state = self.states.get(&(rule, bucket)).cloned();
        }
        if full {
            seat.who = bucket;
        }
        seat
    }

    /// Writes or deletes a state.
    pub fn write(
        &mut self,
        rules: &[Rule],
        rule: usize,
        seat: &Seat,
        state: Option<State>,
        now: u64,
    ) {
        let ends = state.as_ref().map(|state| state.ends(&rules[rule]));
        let new = ends.map(|ends| seat.slot(ends));
        if new != seat.was {
            let counter = self.counters.entry(rule).or_default();
            counter.turn(seat.slice, now);
            match (seat.who, ends) {
                (Who::Caller(_), _) => counter.moves(seat.was, new),
                (_, Some(ends)) => {
                    counter.shared = counter.shared.max((ends + SECOND).min(FAR / 2))
                }
                _ => {}
            }
        }
        match state {
            Some(state) => drop(self.states.insert((rule, seat.who), state)),
            None => drop(self.states.remove(&(rule, seat.who))),
        }
    }
}
