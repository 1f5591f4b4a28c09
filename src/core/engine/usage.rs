//! Where a rule is counted, and its bans: here, or in Redis, which is asked for the engine.

use crate::decision::Decision;
use crate::key::Key;
use crate::permit::Unsettled;
use crate::redis::bans::RedisBans;
use crate::redis::handle::Handle;
use crate::redis::store::RedisStore;
use crate::store::bans::Bans;
use crate::store::{Reservation, Store};
use crate::time::{Micros, Now};

/// The callers of one rule, by whichever of its plans.
pub(super) struct Callers {
    usage: Usage,
    has_plans: bool,
}

impl Callers {
    pub(super) fn new(usage: Usage, has_plans: bool) -> Callers {
        Callers { usage, has_plans }
    }

    /// The callers as they are judged by a plan.
    #[inline(always)]
    pub(super) fn under(&mut self, plan: u32) -> &mut Usage {
        if self.has_plans {
            self.usage.judge_by(plan);
        }
        &mut self.usage
    }

    /// The callers, where it does not matter by what they are judged.
    #[inline]
    pub(super) fn any(&mut self) -> &mut Usage {
        &mut self.usage
    }
}

/// The callers of one rule; its functions are those of [`Store`].
pub(super) enum Usage {
    /// Counted by this gateway.
    Here(Box<dyn Store>),
    /// Counted by all gateways.
    Redis(Box<RedisStore>),
}

impl Usage {
    #[inline(never)]
    fn judge_by(&mut self, plan: u32) {
        match self {
            Usage::Here(store) => store.judge_by(plan),
            Usage::Redis(store) => store.judge_by(plan),
        }
    }

    /// What is counted in Redis, if it is.
    pub(super) fn redis(&mut self) -> Option<&mut RedisStore> {
        match self {
            Usage::Here(_) => None,
            Usage::Redis(store) => Some(store),
        }
    }

    #[inline]
    pub(super) fn check(
        &mut self,
        key: Key,
        cost: u64,
        now: Now,
        handle: &mut Handle,
    ) -> Reservation {
        match self {
            Usage::Here(store) => store.check(key, cost, now),
            Usage::Redis(store) => store.check(key, cost, now, handle),
        }
    }

    pub(super) fn charge(
        &mut self,
        reservation: &mut Reservation,
        delay: Micros,
        handle: &mut Handle,
    ) -> Decision {
        match self {
            Usage::Here(store) => store.charge(reservation, delay),
            Usage::Redis(store) => store.charge(reservation, delay, handle),
        }
    }

    pub(super) fn can_hold(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        match self {
            Usage::Here(store) => store.can_hold(reservation, delay),
            Usage::Redis(store) => store.can_hold(reservation, delay),
        }
    }

    pub(super) fn undo(&mut self, reservation: &mut Reservation) {
        match self {
            Usage::Here(store) => store.undo(reservation),
            Usage::Redis(store) => store.undo(reservation),
        }
    }

    pub(super) fn remaining(&mut self, reservation: &Reservation) -> Option<u64> {
        match self {
            Usage::Here(store) => Some(store.remaining(reservation)),
            Usage::Redis(store) => store.remaining(reservation),
        }
    }

    pub(super) fn renewal(&mut self, reservation: &Reservation) -> Option<Option<Micros>> {
        match self {
            Usage::Here(store) => store.renewal(reservation),
            Usage::Redis(store) => store.renewal(reservation),
        }
    }

    pub(super) fn receipt(&mut self, reservation: &Reservation) -> u64 {
        match self {
            Usage::Here(store) => store.receipt(reservation),
            Usage::Redis(store) => store.receipt(reservation),
        }
    }

    pub(super) fn leave(
        &mut self,
        key: Key,
        receipt: u64,
        cost: u64,
        now: Now,
        handle: &mut Handle,
    ) {
        match self {
            Usage::Here(store) => store.leave(key, receipt, cost, now),
            Usage::Redis(store) => store.leave(key, receipt, cost, now, handle),
        }
    }

    pub(super) fn settle(&mut self, charge: &Unsettled, now: Now, handle: &mut Handle) -> bool {
        match self {
            Usage::Here(store) => store.settle(charge.key, &charge.settlement(), now),
            Usage::Redis(store) => store.settle(charge, now, handle),
        }
    }

    pub(super) fn tidy(&mut self, now: Now, handle: &mut Handle) -> bool {
        match self {
            Usage::Here(store) => store.tidy(now),
            Usage::Redis(store) => store.tidy(now, handle),
        }
    }

    pub(super) fn change_in_keys(&mut self) -> i64 {
        match self {
            Usage::Here(store) => store.change_in_keys(),
            Usage::Redis(store) => store.change_in_keys(),
        }
    }

    pub(super) fn close(&mut self, now: Now, handle: &mut Handle) -> i64 {
        match self {
            Usage::Here(store) => store.close(now),
            Usage::Redis(store) => store.close(now, handle),
        }
    }
}

/// The bans of one rule; its functions are those of [`Bans`].
pub(super) enum Banned {
    /// Counted by this gateway.
    Here(Box<dyn Bans>),
    /// Counted by all gateways.
    Redis(Box<RedisBans>),
}

impl Banned {
    /// What is counted in Redis, if it is.
    pub(super) fn redis(&mut self) -> Option<&mut RedisBans> {
        match self {
            Banned::Here(_) => None,
            Banned::Redis(bans) => Some(bans),
        }
    }

    #[inline(never)]
    pub(super) fn left(&mut self, key: Key, now: Micros, handle: &mut Handle) -> Micros {
        match self {
            Banned::Here(bans) => bans.left(key, now),
            Banned::Redis(bans) => bans.left(key, now, handle),
        }
    }

    pub(super) fn refused(&mut self, key: Key, now: Micros, handle: &mut Handle) {
        match self {
            Banned::Here(bans) => bans.refused(key, now),
            Banned::Redis(bans) => bans.refused(key, now, handle),
        }
    }

    pub(super) fn tidy(&mut self, now: Micros, handle: &mut Handle) {
        match self {
            Banned::Here(bans) => bans.tidy(now),
            Banned::Redis(bans) => bans.tidy(now, handle),
        }
    }

    pub(super) fn begun(&mut self) -> u64 {
        match self {
            Banned::Here(bans) => bans.begun(),
            Banned::Redis(bans) => bans.begun(),
        }
    }
}
