//! Usage counted for the whole fleet, in Redis, which answers later.
//!
//! A request that cannot be decided here waits for the answer of Redis, which the engine hands in. A busy caller's
//! permits are leased in blocks and spent at once, and more are asked for before they are used up; what Redis refused
//! is remembered for a moment. While Redis cannot be relied upon the gateway goes by its part of the limit.

mod answer;
mod lift;
mod operations;
mod recall;
mod settle;
mod share;
mod terms;

use super::handle::Handle;
use super::part::Parts;
use crate::decision::Decision;
use crate::key::Key;
use crate::policy::redis::OnFailure;
use crate::store::leases::Leases;
use crate::store::plans::ByPlan;
use crate::store::reservation::By;
use crate::store::stores::Stores;
use crate::store::{CounterSpec, Reservation};
use crate::time::{Micros, Now, SECOND};
use share::Share;
use terms::Terms;

/// How long a caller is told to wait where requests are refused because Redis is away.
const AWAY: Micros = SECOND;

/// A rule that all gateways count together.
pub struct RedisStore {
    /// The number of the rule among those of its engine.
    number: usize,
    terms: Terms,
    plans: ByPlan<Terms>,
    leases: Leases,
    share: Share,
    /// Into how many parts of Redis its callers fall.
    parts: Parts,
    /// How many callers may have a value of their own in one part of Redis.
    keys: u64,
    /// Whether permits are places in flight.
    is_held: bool,
}

/// A rule is to be counted in Redis, which cannot count by its algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCodec;

impl RedisStore {
    /// A rule with this number, whose callers fall evenly into so many parts of Redis.
    ///
    /// # Errors
    /// If Redis cannot count by its algorithm.
    pub fn new(
        spec: CounterSpec,
        number: usize,
        parts: Parts,
        stores: &mut Stores<'_>,
    ) -> Result<RedisStore, NoCodec> {
        Ok(RedisStore {
            number,
            terms: Terms::of(&spec, parts).ok_or(NoCodec)?,
            plans: ByPlan::new(&spec),
            leases: Leases::of(&spec),
            parts,
            keys: parts.share(spec.keys as u64),
            is_held: spec.algorithm.is_held(),
            share: Share::new(spec, stores),
        })
    }

    /// As [`Store::judge_by`](crate::store::Store::judge_by).
    pub fn judge_by(&mut self, plan: u32) {
        let parts = self.parts;
        if self.plans.take(plan, &mut self.terms, |spec| Terms::of(spec, parts)) {
            self.leases.plan = plan;
            self.share.judge_by(plan);
        }
    }

    /// Whether a request may have to wait for its turn.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.terms.holds
    }

    /// Decides without Redis.
    fn check_alone(&mut self, key: Key, cost: u64, now: Now, handle: &mut Handle) -> Reservation {
        handle.in_use = true;
        match self.terms.spec.on_failure.unwrap_or(handle.on_failure) {
            OnFailure::Gateway => {
                let reservation = self.share.part(handle.gateways, now).check(key, cost, now);
                Reservation { is_alone: true, ..reservation }
            }
            OnFailure::Allow => Reservation::new(key, cost, now, Decision::NOW, By::Nobody),
            OnFailure::Deny => Reservation::new(key, cost, now, Decision::retry(AWAY), By::Nobody),
        }
    }

    /// As [`Store::check`](crate::store::Store::check).
    pub fn check(&mut self, key: Key, cost: u64, now: Now, handle: &mut Handle) -> Reservation {
        if cost > self.terms.most {
            return Reservation::new(key, cost, now, Decision::NEVER, By::Known);
        }
        let is_alone = handle.is_alone(key);
        if let Some(known) = self.recall((key, cost), now, is_alone, handle) {
            return known;
        }
        if is_alone {
            return self.check_alone(key, cost, now, handle);
        }
        Reservation::new(key, cost, now, Decision::NOW, By::Redis)
    }

    /// As [`Store::charge`](crate::store::Store::charge).
    pub fn charge(
        &mut self,
        reservation: &mut Reservation,
        delay: Micros,
        handle: &mut Handle,
    ) -> Decision {
        if reservation.is_alone {
            let decision = self.share.last().charge(reservation, delay);
            reservation.is_alone = true;
            return decision;
        }
        let Reservation { key, cost, now, decision, .. } = *reservation;
        match reservation.by {
            By::Lease => {
                if !self.leases.spend(key, cost, now) {
                    // Another request has spent it since the check.
                    return Decision::retry(1);
                }
                reservation.is_charged = true;
                self.renew_early(key, now, handle);
                Decision::Admit { wait: delay }
            }
            By::Nobody if decision.is_admitted() => {
                reservation.is_charged = true;
                Decision::Admit { wait: delay }
            }
            // It is charged by its answer.
            By::Redis => Decision::retry(1),
            _ => decision,
        }
    }

    /// As [`Store::can_hold`](crate::store::Store::can_hold).
    pub fn can_hold(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        match reservation.is_alone {
            true => self.share.last().can_hold(reservation, delay),
            false => Decision::NOW,
        }
    }

    /// As [`Store::undo`](crate::store::Store::undo).
    pub fn undo(&mut self, reservation: &mut Reservation) {
        if reservation.is_alone {
            return self.share.last().undo(reservation);
        }
        if std::mem::take(&mut reservation.is_charged) && matches!(reservation.by, By::Lease) {
            self.leases.unspend(reservation.key, reservation.cost);
        }
    }

    /// As [`Store::remaining`](crate::store::Store::remaining); none where Redis was not asked.
    pub fn remaining(&mut self, reservation: &Reservation) -> Option<u64> {
        match reservation.by {
            _ if reservation.is_alone => Some(self.share.last().remaining(reservation)),
            By::Lease => self.left(reservation.key),
            By::Nobody | By::Redis => None,
            // A request that never fits is refused without asking Redis. A limit of zero has no permits left.
            _ if reservation.decision == Decision::NEVER => (self.terms.most == 0).then_some(0),
            _ => Some(reservation.refusal.left),
        }
    }

    /// As [`Store::renewal`](crate::store::Store::renewal).
    pub fn renewal(&mut self, reservation: &Reservation) -> Option<Option<Micros>> {
        if reservation.is_alone { self.share.last().renewal(reservation) } else { None }
    }

    /// As [`Store::receipt`](crate::store::Store::receipt).
    pub fn receipt(&mut self, reservation: &Reservation) -> u64 {
        // What is charged by a lease is neither settled nor held.
        self.share.receipt(reservation)
    }

    /// As [`Store::leave`](crate::store::Store::leave).
    pub fn leave(&mut self, key: Key, receipt: u64, cost: u64, now: Now, handle: &mut Handle) {
        if handle.is_alone(key) {
            self.share.last().leave(key, receipt, cost, now);
        } else {
            self.give_back(key, (receipt, 0), cost, handle);
        }
    }

    /// As [`Store::tidy`](crate::store::Store::tidy).
    pub fn tidy(&mut self, now: Now, handle: &mut Handle) -> bool {
        self.hand_in_blocks(now, false, handle);
        let mut more = self.leases.is_any_out() | self.share.last().tidy(now);
        if self.is_held {
            more |= handle.ledgers.beat(&self.nothing(Key::ALL), now.mono);
        }
        more
    }

    /// As [`Store::change_in_keys`](crate::store::Store::change_in_keys).
    pub fn change_in_keys(&mut self) -> i64 {
        self.share.last().change_in_keys()
    }

    /// As [`Store::close`](crate::store::Store::close).
    pub fn close(&mut self, now: Now, handle: &mut Handle) -> i64 {
        while self.leases.is_any_out() {
            self.hand_in_blocks(now, true, handle);
        }
        self.leases.clear();
        self.share.last().close(now)
    }
}
