//! Warming up: after idleness one request passes at once, and the slots behind it begin nearly three
//! times `unit / rpu` apart and draw nearer until, after `warm_up`, they are `unit / rpu` apart.
//!
//! This is Guava's `SmoothWarmingUp` with cold factor 3. It stores permits while nobody comes, one
//! per `unit / rpu` and `warm_up · rpu / unit` at most, and the more are stored the longer it takes to
//! take one out. Everything is kept in permits times ticks, as in `debt.rs`: what is stored grows by
//! `rpu` in an idle tick, a permit takes `unit` from it, and `cold`, the most there can be, is
//! `warm_up · rpu`. The upper half of it is where permits take longer.

use std::rc::Rc;

use super::debt::{self, Debt};
use super::{Algorithm, Conflict, Form, Setting};
use crate::decision::Decision;
use crate::policy::Quota;
use crate::time::{Micros, Now, SECOND};

/// `warm_up`, in ticks. With an hour at the largest `rpu` the store fits into 64 bits.
pub(super) const KEY: Setting = Setting {
    name: "warm_up",
    field: |quota| &mut quota.warm_up,
    form: Form::Duration,
    min: 1_000,
    max: 3_600 * SECOND,
    global: false,
    by_plan: false,
};

#[derive(Debug)]
struct WarmUp {
    rpu: u64,
    lasting: u64,
    unit: Micros,
    /// What is stored after idleness.
    cold: u64,
    /// How far ahead a slot may lie, in permits times ticks. Without it nothing is held, and requests
    /// count when they are decided.
    reach: Option<u128>,
}

/// The debt lasts until the next free slot.
#[derive(Debug, Clone, Copy)]
struct State {
    debt: Debt,
    /// What is missing from `cold` in the store, so that all zero is the state of nobody.
    missing: u64,
}

/// Builds it from a quota with `warm_up`; `reach` is how far ahead a slot may lie, if requests are
/// held at all.
pub(super) fn build(quota: &Quota, warm_up: Micros, reach: Option<u128>) -> Rc<dyn Algorithm> {
    let cold = warm_up.saturating_mul(quota.rpu).max(1);
    let (rpu, lasting) = (quota.rpu, quota.lasting());
    Rc::new(WarmUp { rpu, lasting, unit: quota.period(), cold, reach })
}

/// What `warm_up` cannot stand beside.
pub(super) fn conflicts(quota: &Quota) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    if quota.warm_up.is_some() && quota.rpu == 0 {
        conflicts.push(Conflict::beside_nothing("warm_up"));
    }
    if quota.warm_up.is_some() && quota.burst.is_some() {
        let message = "means nothing beside `warm_up`: after idleness one request passes at once";
        conflicts.push(Conflict { key: "burst", with: &["warm_up"], message: message.into() });
    }
    conflicts
}

impl State {
    fn load(state: &[u64]) -> State {
        match state {
            [debt @ .., missing] => State { debt: Debt::load(debt), missing: *missing },
            [] => State { debt: Debt::default(), missing: 0 },
        }
    }

    fn save(self, state: &mut [u64]) {
        if let [debt @ .., missing] = state {
            self.debt.save(debt);
            *missing = self.missing;
        }
    }
}

impl WarmUp {
    /// What is stored at `then`. Idleness counts from the next free slot on.
    fn stored(&self, state: State, then: Micros) -> u64 {
        let idle = u64::try_from(state.debt.idle(then, self.rpu)).unwrap_or(u64::MAX);
        self.cold.saturating_sub(state.missing.saturating_sub(idle))
    }

    /// What `permits` take.
    fn taken(&self, permits: u64) -> u128 {
        u128::from(permits) * u128::from(self.unit)
    }

    /// What is charged beyond the permits themselves while the store sinks from `from` to `to`, rounded
    /// up: `2 · (x² − y²) / cold`, where `x` and `y` lie above one half of `cold` by as much. It is the
    /// area under Guava's line, which climbs from one interval at that half to three at `cold`.
    fn extra(&self, from: u64, to: u64) -> u128 {
        let cold = u128::from(self.cold);
        let squared = |stored: u64| (2 * u128::from(stored)).saturating_sub(cold).pow(2);
        squared(from).saturating_sub(squared(to)).div_ceil(2 * cold)
    }
}

impl Algorithm for WarmUp {
    fn words(&self) -> usize {
        debt::WORDS + 1
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
        self.reserve(old, now, 0, cost, new)
    }

    fn reserve(
        &self,
        old: &[u64],
        now: Now,
        delay: Micros,
        cost: u64,
        new: &mut [u64],
    ) -> Decision {
        let delay = if self.reach.is_some() { delay } else { 0 };
        let leaves = now.mono.saturating_add(delay);
        let state = State::load(old);
        let ahead = state.debt.drained(now.mono, self.rpu).until(leaves, self.rpu);
        match ahead.wait(self.reach.unwrap_or(0), now.mono, self.rpu) {
            0 => {
                let from = self.stored(state, leaves);
                let to = from.saturating_sub(u64::try_from(self.taken(cost)).unwrap_or(u64::MAX));
                let debt = ahead.with(self.taken(cost) + self.extra(from, to));
                State { debt, missing: self.cold - to }.save(new);
                Decision::Admit { wait: ahead.wait(0, now.mono, self.rpu) }
            }
            wait => Decision::retry(wait),
        }
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        State::load(charged).debt.end(self.rpu)
    }

    fn refund(&self, old: &[u64], receipt: u64, permits: u64, new: &mut [u64]) {
        let State { debt, missing } = State::load(old);
        let permits = if debt.end(self.rpu) == receipt { permits } else { 0 };
        let to = self.cold.saturating_sub(missing);
        let taken = u64::try_from(self.taken(permits)).unwrap_or(u64::MAX);
        let from = to.saturating_add(taken).min(self.cold);
        // From an empty store less may have been taken: then no more comes back than is certain.
        let extra = if to > 0 { self.extra(from, to) } else { 0 };
        let debt = debt.without(self.taken(permits) + extra);
        State { debt, missing: self.cold - from }.save(new);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        None
    }

    fn most_at_once(&self) -> u64 {
        u64::MAX
    }

    fn remaining(&self, state: &[u64], now: Now) -> u64 {
        u64::from(State::load(state).debt.drained(now.mono, self.rpu).amount() == 0)
    }

    fn expires(&self, state: &[u64], _now: Now) -> Micros {
        let State { debt, missing } = State::load(state);
        debt.with(u128::from(missing)).cleared(self.lasting)
    }

    fn policy(&self) -> (u64, Micros) {
        (self.rpu, self.unit)
    }
}
