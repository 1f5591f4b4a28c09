//! The bucket behind TB, LB and `warm_up`.
//!
//! A leaky bucket is a token bucket with room for a single request, however many permits that takes. In either of them
//! a request may wait for its turn, and `warm_up` makes charges larger after idleness.

use std::rc::Rc;

use super::debt::{self, Debt, product};
use super::warm_up::WarmUp;
use super::{Algorithm, copy, only};
use diana_policy::Quota;
use diana_policy::decision::Decision;
use diana_policy::time::{Micros, Now};

#[derive(Debug)]
struct Bucket {
    rpu: u64,
    lasting: u64,
    /// The highest rate at which a charge may have drained.
    fastest: u64,
    unit: Micros,
    /// Permits in a full bucket. None if a request takes all of it, whatever its cost.
    burst: Option<u64>,
    /// The largest debt after a charge at once: `burst` permits. 0 without `burst`.
    capacity: u128,
    /// How far ahead the turn of a request may lie, in permits times ticks. None if no request waits: then requests
    /// count when they are decided.
    reach: Option<u128>,
    warm_up: WarmUp,
    /// True if permits may be leased: no request waits, and no charge depends on the one before it.
    leases: bool,
}

/// Builds a bucket of `burst` permits, or of a single request, in which the turn of a request lies at most `reach` ahead.
pub(super) fn build(quota: &Quota, burst: Option<u64>, reach: Option<u128>) -> Rc<dyn Algorithm> {
    let unit = quota.period();
    Rc::new(Bucket {
        rpu: quota.rpu,
        lasting: quota.lasting(),
        fastest: quota.fastest(),
        unit,
        burst,
        capacity: product(burst.unwrap_or(0), unit),
        reach,
        warm_up: WarmUp::of(quota),
        leases: reach.is_none() && quota.warm_up.is_none(),
    })
}

/// The state of a caller. The debt lasts until the bucket is full again or, without `burst`, until the next free slot.
#[derive(Debug, Clone, Copy)]
struct State {
    debt: Debt,
    /// With `warm_up`: the permits that are missing in the store.
    missing: u64,
}

impl State {
    fn load(state: &[u64]) -> State {
        let (debt, missing) = state.split_at_checked(debt::WORDS).unwrap_or_default();
        State { debt: Debt::load(debt), missing: missing.first().copied().unwrap_or(0) }
    }

    fn save(self, state: &mut [u64]) {
        if let Some((debt, missing)) = state.split_at_mut_checked(debt::WORDS) {
            self.debt.save(debt);
            missing.fill(self.missing);
        }
    }
}

impl Bucket {
    fn debt(&self, state: &[u64], now: Micros) -> Debt {
        State::load(state).debt.drained(now, self.rpu)
    }
}

impl Algorithm for Bucket {
    fn words(&self) -> usize {
        debt::WORDS + self.warm_up.words()
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
        // Most requests of a token bucket find their permits, and need no look at the queue. Without `burst` none does:
        // the capacity is 0, and every request costs something.
        let debt = Debt::load(old).drained(now.mono, self.rpu).charged(cost, self.unit);
        if debt.amount() <= self.capacity {
            debt.save(new);
            return Decision::NOW;
        }
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
        if cost > self.most_at_once() {
            return Decision::NEVER;
        }
        let delay = if self.reach.is_some() { delay } else { 0 };
        let leaves = now.mono.saturating_add(delay);
        let amount = product(cost, self.unit);
        let capacity = if self.burst.is_some() { self.capacity } else { amount };
        let old = State::load(old);
        let debt = old.debt.drained(now.mono, self.rpu);
        let turn = debt.with(amount).without(capacity).until(leaves, self.rpu);
        match turn.wait(self.reach.unwrap_or(0), now.mono, self.rpu) {
            0 => {
                let idle = old.debt.idle(leaves, self.rpu);
                let (extra, missing) = self.warm_up.take(amount, old.missing, idle);
                let debt = debt.until(leaves, self.rpu).with(amount + extra);
                State { debt, missing }.save(new);
                Decision::Admit { wait: turn.wait(0, now.mono, self.rpu) }
            }
            wait => Decision::retry(wait),
        }
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        if self.leases { 0 } else { State::load(charged).debt.end(self.rpu) }
    }

    fn refund(&self, old: &[u64], receipt: u64, permits: u64, new: &mut [u64]) {
        // Where requests wait, the slots of those behind are given away: a slot before theirs passes unused.
        let back = if self.receipt(old) == receipt { permits } else { 0 };
        let State { debt, missing } = State::load(old);
        let amount = product(back, self.unit);
        let (extra, missing) = self.warm_up.put_back(amount, missing);
        State { debt: debt.without(amount + extra), missing }.save(new);
    }

    fn take_back(&self, old: &[u64], receipt: u64, permits: u64, since: Micros, new: &mut [u64]) {
        if !self.leases {
            return self.refund(old, receipt, permits, new);
        }
        Debt::load(old).returned(permits, self.unit, since, self.fastest).save(new);
    }

    fn debit(&self, old: &[u64], now: Now, permits: u64, new: &mut [u64]) {
        if !self.leases {
            return copy(old, new);
        }
        Debt::load(old).drained(now.mono, self.rpu).charged(permits, self.unit).save(new);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        self.leases.then_some(Micros::MAX)
    }

    fn hold_back(&self, old: &[u64], out: u64, at: Micros, new: &mut [u64]) {
        let debt = self.debt(old, at).at_least(product(out, self.unit));
        State { debt, ..State::load(old) }.save(new);
    }

    fn most_out(&self) -> u64 {
        self.most_at_once() / 2
    }

    fn charged(&self, state: &[u64], now: Now) -> u64 {
        match self.burst {
            Some(_) => self.debt(state, now.mono).in_permits(self.unit),
            None => u64::from(self.remaining(state, now) == 0),
        }
    }

    fn lift(&self, _old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool {
        only(self, now, out, new);
        self.leases
    }

    fn most_at_once(&self) -> u64 {
        self.burst.unwrap_or(u64::MAX)
    }

    fn remaining(&self, state: &[u64], now: Now) -> u64 {
        let owed = self.debt(state, now.mono).amount();
        match self.burst {
            Some(_) => debt::permits(self.capacity.saturating_sub(owed), self.unit),
            None => u64::from(owed == 0),
        }
    }

    fn expires(&self, state: &[u64], _now: Now) -> Micros {
        let State { debt, missing } = State::load(state);
        debt.with(u128::from(missing)).cleared(self.lasting)
    }

    fn policy(&self) -> (u64, Micros) {
        match self.burst {
            Some(burst) if self.rpu > 0 => (burst, debt::ticks(self.capacity, self.rpu)),
            _ => (self.rpu, self.unit),
        }
    }
}
