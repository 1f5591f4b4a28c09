//! The number of separate states of a rule. Callers beyond its limit share states.

use std::collections::BTreeMap;

use diana_algorithm::calendar::Windows;
use diana_policy::time::SECOND;

use super::rule::Rule;
use super::{FAR, LONG, Model, State};
use crate::laws::case::Case;

const BUCKETS: u64 = 1024;

/// The owner of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    Caller(u64),
    Bucket(u64),
}

/// Counts the callers of a rule by the instant at which their states expire.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    /// The latest expiry of a shared state.
    shared: u64,
    counts: BTreeMap<u64, u64>,
}

impl Counter {
    fn live(&self, now: u64) -> u64 {
        self.counts.range(now + 1..).map(|(_, count)| count).sum()
    }

    /// The expiry of a state moves from `was` to `new`.
    fn moves(&mut self, was: Option<u64>, new: Option<u64>, now: u64) {
        if let Some(count) = was.filter(|was| *was > now).and_then(|was| self.counts.get_mut(&was))
        {
            *count = count.saturating_sub(1);
        }
        if let Some(new) = new {
            *self.counts.entry(new).or_default() += 1;
        }
    }
}

/// The location of a caller's state, the length of the slices that end its life, and the instant of
/// its expiry.
pub struct Location {
    pub who: Who,
    pub state: Option<State>,
    slice: u64,
    was: Option<u64>,
}

impl Location {
    pub fn overflows(&self) -> bool {
        matches!(self.who, Who::Bucket(_))
    }

    fn expiry(&self, ends: u64) -> u64 {
        (((ends + SECOND).min(FAR) / self.slice + 1) * self.slice).min(FAR - 1)
    }
}

impl Rule {
    /// Length of the slices. States expire at the end of a slice.
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
    /// The location of a caller's state. `ask` has the maximum number of callers and the unit cost.
    pub fn location(
        &mut self,
        rules: &[Rule],
        rule: usize,
        caller: u64,
        ask: (u64, u64),
        now: u64,
    ) -> Location {
        let (keys, unit_cost) = ask;
        let slice = rules[rule].slice(unit_cost);
        let (who, bucket) = (Who::Caller(caller), Who::Bucket(caller % BUCKETS));
        let state = self.states.get(&(rule, who)).cloned();
        let mut location = Location { who, state, slice, was: None };
        if let Some(state) = &location.state {
            location.was = Some(state.expires);
            return location;
        }
        // Reads a copy. The counter is written only if the expiry of a state changes.
        let counter = self.counters.get(&rule).cloned().unwrap_or_default();
        let full = counter.live(now) >= keys;
        if full || now < counter.shared {
            location.state = self.states.get(&(rule, bucket)).cloned();
        }
        if full {
            location.who = bucket;
        }
        location
    }

    /// Writes or deletes a state.
    pub fn write(
        &mut self,
        rules: &[Rule],
        rule: usize,
        location: &Location,
        state: Option<State>,
        now: u64,
    ) {
        let ends = state.as_ref().map(|state| state.ends(&rules[rule]));
        let new = ends.map(|ends| location.expiry(ends));
        if new != location.was {
            let counter = self.counters.entry(rule).or_default();
            match (location.who, ends) {
                (Who::Caller(_), _) => counter.moves(location.was, new, now),
                (_, Some(ends)) => {
                    counter.shared = counter.shared.max((ends + SECOND).min(FAR / 2))
                }
                _ => {}
            }
        }
        match state {
            Some(state) => {
                let state = State { expires: new.unwrap_or_default(), ..state };
                self.states.insert((rule, location.who), state);
            }
            None => drop(self.states.remove(&(rule, location.who))),
        }
    }
}
