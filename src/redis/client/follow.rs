//! The state of Redis that all workers of the gateway share, and its log lines.

use std::fmt::Write;

use super::Client;
use crate::breaker::Breaker;
use crate::health::{Health, KnownFleet};
use crate::outbox::Outbox;
use crate::protocol::Failure;
use crate::shard::{Shard, Shards};
use diana_policy::key::Seed;
use diana_policy::time::{Micros, SECOND, spell};
use diana_policy::words;
use diana_store::replies::QuestionResult;

/// The maximum number of shards in a log line, besides the first.
const NAMED: usize = 15;

/// How many replies in a row are slow before that is logged: one may be of a busy worker.
const FAR_REPLIES: u32 = 10;

/// A reply: the gateways at Redis, unless it only has the fleet's secret, and whether it decided
/// questions.
pub(super) struct Answered {
    pub(super) fleet: Option<KnownFleet>,
    pub(super) decided: bool,
}

impl Client {
    /// Records the results of calls to shards, which were sent at `sent`.
    pub(super) fn record_results(
        &mut self,
        calls: &[(Shard, Result<Answered, Failure>)],
        (sent, probing): (Micros, bool),
        now: Micros,
        outbox: &mut Outbox,
    ) {
        if calls.is_empty() {
            return;
        }
        let (seed, least) = (self.seed, self.endpoint.gateways);
        let (mut opened, mut closed, mut was_apart) = (Vec::new(), Vec::new(), false);
        let health = Health::update(&*self.data, &self.key, now, |health| {
            opened.clear();
            closed.clear();
            was_apart = health.is_apart;
            let mut changed = false;
            for (shard, outcome) in calls {
                let was_open = health.is_open(*shard);
                let is_first = *shard == Shard::FIRST;
                changed |= match outcome {
                    Ok(Answered { fleet, decided }) => {
                        let reported = fleet.filter(|_| is_first);
                        let counted = reported.is_some_and(|it| health.count(it, least, now));
                        let learnt = counted | (is_first && health.agree(seed));
                        health.change(*shard, |it| it.answered(now, probing, *decided)) | learnt
                    }
                    Err(failure) => {
                        let (missed, is_refused) = (is_first && health.miss(), !failure.is_lost());
                        let failed = |it: &mut Breaker| it.failed(now, sent, probing, is_refused);
                        health.change(*shard, failed) | missed
                    }
                };
                match (was_open, health.is_open(*shard)) {
                    (false, true) => opened.push(*shard),
                    (true, false) => closed.push(*shard),
                    _ => {}
                }
            }
            changed
        });
        if was_apart != health.is_apart {
            self.log_shard_numbers(health.is_apart);
        }
        self.follow(health, outbox);
        self.counts.changes += (opened.len() + closed.len()) as u64;
        let failures = || calls.iter().filter_map(|(_, outcome)| outcome.as_ref().err());
        failures().for_each(|failure| self.counts.fail(failure.name()));
        let of = |shard: Shard| calls.iter().find(|(other, _)| *other == shard)?.1.as_ref().err();
        let opened = opened.into_iter().filter_map(|shard| Some((shard, of(shard)?))).collect();
        self.log_changes(opened, &closed, now, outbox);
    }

    /// Logs newly unavailable shards with the reason, and shards that are available again.
    fn log_changes(
        &mut self,
        mut opened: Vec<(Shard, &Failure)>,
        closed: &[Shard],
        now: Micros,
        outbox: &Outbox,
    ) {
        if !closed.is_empty() && (outbox.unavailable_shards() == 0 || self.may_log("back", now)) {
            self.log_available(closed, outbox);
        }
        while let Some((_, failure)) = opened.first().copied() {
            let alike = opened.extract_if(.., |(_, other)| other.name() == failure.name());
            let shards: Vec<Shard> = alike.map(|(shard, _)| shard).collect();
            if self.may_log(failure.name(), now) {
                self.log_unavailable(&shards, failure, outbox);
            }
        }
    }

    /// Returns true if a line about shards may be logged: with several shards, at most one of a
    /// kind per second.
    fn may_log(&mut self, what: &'static str, now: Micros) -> bool {
        if self.endpoint.shards == Shards::ONE {
            return true;
        }
        match self.log_times.iter_mut().find(|(log_times, _)| *log_times == what) {
            Some((_, last)) if now.saturating_sub(*last) < SECOND => return false,
            Some((_, last)) => *last = now,
            None => self.log_times.push((what, now)),
        }
        true
    }

    /// Logs that gateways have different numbers of shards, or the same number again.
    fn log_shard_numbers(&mut self, is_apart: bool) {
        let shards = self.endpoint.shards.number();
        self.log_lines.push(match is_apart {
            true => format!(
                "global rules: gateways have different values of `redis.parts`, this one {shards}; until all have the same, \
                 callers may get up to one limit for each value"
            ),
            false => format!("global rules: all gateways have `redis.parts` = {shards} now"),
        });
    }

    /// Logs the timeout that fits if calls take more than half of it, so that a lost one is not sent
    /// again: once for each timeout, by one worker.
    pub(super) fn report_far(&mut self, trip: Micros, slow: Micros) {
        let timeout = self.endpoint.timeout;
        let is_far = trip > timeout / 2;
        self.far_replies = if is_far { self.far_replies.saturating_add(1) } else { 0 };
        if self.far_replies != FAR_REPLIES {
            return;
        }
        let key = format!("{}/far", self.key);
        let ([logged], number) = words::read(&*self.data, &key);
        if logged == timeout || !words::write([timeout], &*self.data, &key, number) {
            return;
        }
        let whole = |time: Micros| spell(time.next_multiple_of(SECOND / 1000));
        let remedy = match slow.saturating_mul(2) {
            fits @ ..=SECOND => format!("set `timeout` to {} or more", whole(fits)),
            _ => "set `timeout` to 1s, the most, and let calls take less: `proxied` keeps connections open".into(),
        };
        self.log_lines.push(format!(
            "global rules: calls to Redis ({}) take {}, and `timeout` is {}, too short to send a lost one again; {remedy}",
            self.endpoint.destination,
            whole(slow),
            whole(timeout)
        ));
    }

    fn log_unavailable(&mut self, shards: &[Shard], failure: &Failure, outbox: &Outbox) {
        if let Some(names) = self.names(shards) {
            let all = usize::from(self.endpoint.shards.number());
            let whose =
                if outbox.unavailable_shards() == all { "" } else { " to the callers there" };
            let verb = verb(shards);
            self.log_lines.push(format!(
                "global rules: {names} {verb} unavailable: {failure}; `on_failure` of each rule applies{whose}"
            ));
        }
    }

    fn log_available(&mut self, shards: &[Shard], outbox: &Outbox) {
        if let Some(names) = self.names(shards) {
            let rest = match outbox.unavailable_shards() {
                0 => "all gateways count together".into(),
                unavailable => format!("still unavailable shards: {unavailable}"),
            };
            let verb = verb(shards);
            self.log_lines.push(format!("global rules: {names} {verb} available again; {rest}"));
        }
    }

    /// The names of shards in the log. `None` for no shards.
    fn names(&self, shards: &[Shard]) -> Option<String> {
        let (all, destination) = (self.endpoint.shards.number(), &self.endpoint.destination);
        let which = match shards {
            [] => return None,
            _ if all == 1 => String::new(),
            [one] => format!("shard {} of {all} of ", one.number()),
            [first, rest @ ..] => {
                let mut names = format!("shards {}", first.number());
                for shard in rest.iter().take(NAMED) {
                    // Writing to a string cannot fail.
                    _ = write!(names, ", {}", shard.number());
                }
                let more = if rest.len() > NAMED { ", …" } else { "" };
                format!("{names}{more} of {all} of ")
            }
        };
        Some(format!("{which}Redis ({destination})"))
    }

    /// Adopts the fleet's seed. Waiting asks with hashes of another seed are dropped.
    pub(super) fn reseed(&mut self, seed: Seed, outbox: &mut Outbox) {
        if self.seed != seed {
            self.seed = seed;
            self.drop_all(QuestionResult::Repeat, outbox);
        }
    }

    /// Copies the known state of Redis to the outbox.
    pub fn update_outbox(&self, outbox: &mut Outbox) {
        outbox.ledgers.begin(self.sender);
        let known = self.health.gateways.known;
        let known = if known == 0 { self.endpoint.gateways } else { known };
        outbox.gateways = known.max(self.least_gateways).max(1);
        outbox.timeout = self.endpoint.timeout;
        outbox.had_outage = self.health.had_outage();
        outbox.unavailable = self.open().map(|(shard, _)| shard).collect();
        if outbox.is_unavailable(Shard::FIRST) && !self.is_agreed() {
            outbox.unavailable = outbox.shards.all().collect();
        }
    }

    /// Returns true if the fleet's seed is known, or there is only one shard. Only the first shard
    /// checks the seed: in the others, a gateway with another seed would count separately.
    pub(super) fn is_agreed(&self) -> bool {
        self.endpoint.shards == Shards::ONE || self.health.seed().is_some()
    }

    /// Reads the record of all workers.
    pub fn refresh(&mut self, outbox: &mut Outbox) {
        self.follow(Health::read(&*self.data, &self.key), outbox);
    }

    /// Adopts the record of all workers.
    pub(super) fn follow(&mut self, health: Health, outbox: &mut Outbox) {
        self.health = health;
        // A reply contains the seed only if it comes from the first shard.
        if let Some(seed) = self.health.seed() {
            self.reseed(seed, outbox);
        }
        self.update_outbox(outbox);
    }
}

/// The verb of a sentence about shards.
fn verb(shards: &[Shard]) -> &'static str {
    if shards.len() > 1 { "are" } else { "is" }
}
