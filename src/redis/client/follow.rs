//! The state of Redis that all workers of the gateway share, and its log lines.

use std::fmt::Write;

use super::Client;
use crate::handle::Handle;
use crate::health::{Health, KnownFleet};
use crate::protocol::Failure;
use crate::settled::Settled;
use crate::shard::{Shard, Shards};
use diana_policy::key::Seed;
use diana_policy::time::{Micros, SECOND};

/// The maximum number of shards in a log line, besides the first.
const NAMED: usize = 15;

impl Client {
    /// Records the results of calls to shards, which were sent at `sent`: the gateways at Redis, or
    /// the failure.
    pub(super) fn note(
        &mut self,
        calls: &[(Shard, Result<KnownFleet, Failure>)],
        (sent, probing): (Micros, bool),
        now: Micros,
        handle: &mut Handle,
    ) {
        if calls.is_empty() {
            return;
        }
        let seed = self.seed;
        let (mut opened, mut closed, mut was_apart) = (Vec::new(), Vec::new(), false);
        let health = Health::update(&*self.data, &self.key, now, |health| {
            opened.clear();
            closed.clear();
            was_apart = health.fleet.is_apart;
            let mut changed = false;
            for (part, outcome) in calls {
                let was_open = health.is_open(*part);
                changed |= match outcome {
                    Ok(fleet) => {
                        let is_first = *part == Shard::FIRST;
                        let learnt = is_first && health.count(*fleet) | health.agree(seed);
                        health.change(*part, |breaker| breaker.answered(now, probing)) | learnt
                    }
                    Err(_) => health.change(*part, |it| it.failed(now, sent, probing)),
                };
                match (was_open, health.is_open(*part)) {
                    (false, true) => opened.push(*part),
                    (true, false) => closed.push(*part),
                    _ => {}
                }
            }
            changed
        });
        if was_apart != health.fleet.is_apart {
            self.tell_apart(health.fleet.is_apart);
        }
        self.follow(health, handle);
        let failures = || calls.iter().filter_map(|(_, outcome)| outcome.as_ref().err());
        failures().for_each(|failure| self.counts.fail(failure.name()));
        let of = |part: Shard| calls.iter().find(|(other, _)| *other == part)?.1.as_ref().err();
        let opened = opened.into_iter().filter_map(|part| Some((part, of(part)?))).collect();
        self.tell_changes(opened, &closed, now, handle);
    }

    /// Logs newly unavailable shards with the reason, and shards that are available again.
    fn tell_changes(
        &mut self,
        mut opened: Vec<(Shard, &Failure)>,
        closed: &[Shard],
        now: Micros,
        handle: &Handle,
    ) {
        if !closed.is_empty() && (handle.away() == 0 || self.may_tell("back", now)) {
            self.tell_closed(closed, handle);
        }
        while let Some((_, failure)) = opened.first().copied() {
            let alike = opened.extract_if(.., |(_, other)| other.name() == failure.name());
            let parts: Vec<Shard> = alike.map(|(part, _)| part).collect();
            if self.may_tell(failure.name(), now) {
                self.tell_opened(&parts, failure, handle);
            }
        }
    }

    /// Returns true if a line about shards may be logged: with several shards, at most one of a
    /// kind per second.
    fn may_tell(&mut self, what: &'static str, now: Micros) -> bool {
        if self.endpoint.parts == Shards::ONE {
            return true;
        }
        match self.told.iter_mut().find(|(told, _)| *told == what) {
            Some((_, last)) if now.saturating_sub(*last) < SECOND => return false,
            Some((_, last)) => *last = now,
            None => self.told.push((what, now)),
        }
        true
    }

    /// Logs that gateways have different numbers of shards, or the same number again.
    fn tell_apart(&mut self, is_apart: bool) {
        let parts = self.endpoint.parts.number();
        self.log_lines.push(match is_apart {
            true => format!(
                "global rules: gateways have different values of `redis.parts`, this one {parts}; until all have the same, \
                 callers may get up to one limit for each value"
            ),
            false => format!("global rules: all gateways have `redis.parts` = {parts} now"),
        });
    }

    fn tell_opened(&mut self, parts: &[Shard], failure: &Failure, handle: &Handle) {
        if let Some(names) = self.names(parts) {
            let all = usize::from(self.endpoint.parts.number());
            let whose = if handle.away() == all { "" } else { " to the callers there" };
            let verb = verb(parts);
            self.log_lines.push(format!(
                "global rules: {names} {verb} unavailable: {failure}; `on_failure` of each rule applies{whose}"
            ));
        }
    }

    fn tell_closed(&mut self, parts: &[Shard], handle: &Handle) {
        if let Some(names) = self.names(parts) {
            let rest = match handle.away() {
                0 => "all gateways count together".into(),
                away => format!("still unavailable shards: {away}"),
            };
            let verb = verb(parts);
            self.log_lines.push(format!("global rules: {names} {verb} available again; {rest}"));
        }
    }

    /// The names of shards in the log. `None` for no shards.
    fn names(&self, parts: &[Shard]) -> Option<String> {
        let (all, cluster) = (self.endpoint.parts.number(), &self.endpoint.cluster);
        let which = match parts {
            [] => return None,
            _ if all == 1 => String::new(),
            [one] => format!("shard {} of {all} of ", one.number()),
            [first, rest @ ..] => {
                let mut names = format!("shards {}", first.number());
                for part in rest.iter().take(NAMED) {
                    // Writing to a string cannot fail.
                    _ = write!(names, ", {}", part.number());
                }
                let more = if rest.len() > NAMED { ", …" } else { "" };
                format!("{names}{more} of {all} of ")
            }
        };
        Some(format!("{which}Redis (cluster `{cluster}`)"))
    }

    /// Adopts the fleet's seed. Waiting asks with hashes of another seed are dropped.
    pub(super) fn reseed(&mut self, seed: Seed, handle: &mut Handle) {
        if self.seed != seed {
            self.seed = seed;
            self.give_up_all(Settled::Again, handle);
        }
    }

    /// Copies the known state of Redis to the handle.
    pub fn tell(&self, handle: &mut Handle) {
        handle.ledgers.begin(self.sender);
        handle.gateways = self.health.fleet.gateways.max(1);
        handle.away = self.open().map(|(part, _)| part).collect();
        if handle.is_away(Shard::FIRST) && !self.is_agreed() {
            handle.away = handle.parts.all().collect();
        }
    }

    /// Returns true if the fleet's seed is known, or there is only one shard. Only the first shard
    /// checks the seed: in the others, a gateway with another seed would count separately.
    pub(super) fn is_agreed(&self) -> bool {
        self.endpoint.parts == Shards::ONE || self.health.seed().is_some()
    }

    /// Reads the record of all workers.
    pub fn refresh(&mut self, handle: &mut Handle) {
        self.follow(Health::read(&*self.data, &self.key), handle);
    }

    /// Adopts the record of all workers.
    pub(super) fn follow(&mut self, health: Health, handle: &mut Handle) {
        self.health = health;
        // A reply contains the seed only if it comes from the first shard.
        if let Some(seed) = self.health.seed() {
            self.reseed(seed, handle);
        }
        self.tell(handle);
    }
}

/// The verb of a sentence about shards.
fn verb(parts: &[Shard]) -> &'static str {
    if parts.len() > 1 { "are" } else { "is" }
}
