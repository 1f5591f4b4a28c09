//! Bans of a fleet, which Redis counts.
//!
//! Refusals go there as operations, for which nobody waits; a request that asks Redis about the rule asks
//! about the ban with it. What comes back is kept in the gateway's sets, where all its workers find
//! it. While Redis cannot be relied upon the gateway counts for itself. Refusals are lost only with a
//! trip that came to nothing.

use super::handle::{Handle, Operation};
use super::part::Parts;
use super::protocol::{BanReply, Numbers, Refusals};
use crate::key::Key;
use crate::policy::Ban;
use crate::store::bans::Bans;
use crate::store::bans::shared::{Known, Shared};
use crate::store::stores::Stores;
use crate::time::Micros;

/// The bans of one rule in the fleet.
pub struct RedisBans {
    /// What this gateway knows, and counts while it is alone.
    gateway: Shared,
    /// The number of the rule among those of its engine.
    number: usize,
    fingerprint: u64,
    numbers: Numbers,
    keys: u64,
    /// Whether an operator may lift bans through another gateway.
    lifts: bool,
}

impl RedisBans {
    /// The bans of the rule with this number and fingerprint, made for so many callers, who fall evenly into so many
    /// parts of Redis.
    #[must_use]
    pub fn new(
        ban: Ban,
        rule: u64,
        keys: usize,
        (number, parts): (usize, Parts),
        stores: &Stores<'_>,
    ) -> RedisBans {
        let gateway = stores.open_shared_bans(ban, rule, keys);
        let (gateway, lifts) = (gateway.counted_elsewhere(stores.lifts), stores.lifts);
        let (fingerprint, numbers) = (ban.fingerprint(rule), Numbers::of_ban(&ban));
        let keys = parts.share(keys as u64);
        RedisBans { gateway, number, fingerprint, numbers, keys, lifts }
    }

    /// As [`Bans::left`]; asks about a caller who keeps coming, since a request under a lease does not.
    pub fn left(&mut self, key: Key, now: Micros, handle: &mut Handle) -> Micros {
        let looks = self.gateway.is_worth_a_look(key, now);
        self.pass_on(now, handle);
        if looks && !handle.is_alone(key) {
            self.send(key, 0, handle);
            if self.lifts {
                // Known for a second only; Redis is asked with the request.
                return 0;
            }
        }
        self.gateway.left(key, now)
    }

    /// As [`Bans::refused`].
    pub fn refused(&mut self, key: Key, now: Micros, handle: &mut Handle) {
        self.gateway.refused(key, now);
        self.pass_on(now, handle);
    }

    /// As [`Bans::tidy`].
    pub fn tidy(&mut self, now: Micros, handle: &mut Handle) {
        self.gateway.tidy(now);
        self.pass_on(now, handle);
    }

    /// As [`Bans::begun`].
    pub fn begun(&mut self) -> u64 {
        self.gateway.begun()
    }

    /// What Redis is asked about a caller, together with the rule.
    #[must_use]
    pub fn question(&self, key: Key) -> Refusals {
        self.refusals(key, 0)
    }

    /// What Redis is asked to have a caller banned for so many ticks, or not any more if there are none.
    #[must_use]
    pub fn sets(&self, key: Key, length: Micros) -> Refusals {
        Refusals { sets: Some(length), ..self.refusals(key, 0) }
    }

    /// Takes what Redis says of a caller, whatever this gateway knows.
    pub fn hear_set(&mut self, key: Key, left: Micros, now: Micros) {
        self.gateway.set(key, left, now);
    }

    /// Takes what Redis says. Ticks for which the caller is still banned.
    pub fn take(&mut self, key: Key, reply: &BanReply, now: Micros, handle: &mut Handle) -> Micros {
        let BanReply { left, begins, recent, .. } = *reply;
        let left = self.gateway.hear(key, Known { left, begins, recent }, now);
        self.pass_on(now, handle);
        left
    }

    /// Has refusals counted: in Redis, or here where that cannot be relied upon.
    fn pass_on(&mut self, now: Micros, handle: &mut Handle) {
        for (key, refusals) in self.gateway.take_refusals() {
            match handle.is_alone(key) {
                true => self.gateway.count(key, refusals, now),
                false => self.send(key, refusals, handle),
            }
        }
    }

    fn send(&self, key: Key, refusals: u64, handle: &mut Handle) {
        handle.add(Operation::Ban(self.number, self.refusals(key, refusals)));
    }

    fn refusals(&self, caller: Key, refusals: u64) -> Refusals {
        let RedisBans { fingerprint, numbers, keys, .. } = *self;
        Refusals { fingerprint, caller, numbers, refusals, keys, sets: None }
    }
}
