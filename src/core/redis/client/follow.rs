//! What the client learns of Redis, which all workers of the gateway go by.

use std::fmt::Write;

use super::Client;
use crate::key::Seed;
use crate::redis::handle::Handle;
use crate::redis::health::Health;
use crate::redis::part::{Part, Parts};
use crate::redis::pending::Settled;
use crate::redis::protocol::Failure;
use crate::time::{Micros, SECOND};

/// Most parts that one line of the log names beside the first.
const NAMED: usize = 15;

impl Client {
    /// Notes what became of calls about parts, by now: how many gateways there are, or why it came to nothing.
    /// They were sent at an instant, as probes or not.
    pub(super) fn note(
        &mut self,
        calls: &[(Part, Result<u64, Failure>)],
        (sent, probing): (Micros, bool),
        now: Micros,
        handle: &mut Handle,
    ) {
        if calls.is_empty() {
            return;
        }
        let seed = self.seed;
        let (mut opened, mut closed) = (Vec::new(), Vec::new());
        let health = Health::update(&*self.data, &self.key, now, |health| {
            opened.clear();
            closed.clear();
            let mut changed = false;
            for (part, outcome) in calls {
                let was_open = health.is_open(*part);
                changed |= match outcome {
                    Ok(gateways) => {
                        let is_first = *part == Part::FIRST;
                        let learnt = is_first && health.count(*gateways) | health.agree(seed);
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
        self.follow(health, handle);
        let failures = || calls.iter().filter_map(|(_, outcome)| outcome.as_ref().err());
        failures().for_each(|failure| self.stats.fail(failure.name()));
        let parts = self.endpoint.parts;
        if !closed.is_empty() && (handle.away() == 0 || may_tell(&mut self.told_closed, parts, now))
        {
            self.tell_closed(&closed, handle);
        }
        let why = |part: &Part| calls.iter().find(|(other, _)| other == part)?.1.as_ref().err();
        if let Some(failure) = opened.first().and_then(why)
            && may_tell(&mut self.told_opened, parts, now)
        {
            self.tell_opened(&opened, failure, handle);
        }
    }

    fn tell_opened(&mut self, parts: &[Part], failure: &Failure, handle: &Handle) {
        if let Some(names) = self.names(parts) {
            let all = usize::from(self.endpoint.parts.number());
            let whom = if handle.away() == all { "itself" } else { "itself there" };
            self.stats.news.push(format!(
                "rules for the fleet: {names} cannot be relied upon: {failure}; this gateway goes by {whom} until it \
                 is back"
            ));
        }
    }

    fn tell_closed(&mut self, parts: &[Part], handle: &Handle) {
        if let Some(names) = self.names(parts) {
            let rest = match handle.away() {
                0 => "the fleet counts together".into(),
                away => format!("parts that are still away: {away}"),
            };
            self.stats.news.push(format!("rules for the fleet: {names} is back; {rest}"));
        }
    }

    /// How parts are called in the log; nothing if there are none.
    fn names(&self, parts: &[Part]) -> Option<String> {
        let (all, cluster) = (self.endpoint.parts.number(), &self.endpoint.cluster);
        let which = match parts {
            [] => return None,
            _ if all == 1 => String::new(),
            [one] => format!("part {} of {all} of ", one.number()),
            [first, rest @ ..] => {
                let mut names = format!("parts {}", first.number());
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

    /// The fleet's secret is this one. What goes by another is of no use any more.
    pub(super) fn reseed(&mut self, seed: Seed, handle: &mut Handle) {
        if self.seed != seed {
            self.seed = seed;
            self.give_up_all(Settled::Again, handle);
        }
    }

    /// Tells what is known of Redis.
    pub fn tell(&self, handle: &mut Handle) {
        handle.gateways = self.health.gateways.max(1);
        handle.away = self.open().map(|(part, _)| part).collect();
        if handle.is_away(Part::FIRST) && !self.is_agreed() {
            handle.away = handle.parts.all().collect();
        }
    }

    /// Whether it is known what callers are hashed with, as far as that matters. A gateway whose secret is not that
    /// of the others would count on its own in all parts but the first.
    pub(super) fn is_agreed(&self) -> bool {
        self.endpoint.parts == Parts::ONE || self.health.seed().is_some()
    }

    /// Goes by what all workers know.
    pub(super) fn follow(&mut self, health: Health, handle: &mut Handle) {
        self.health = health;
        // Only the first part would say so, and only where it is asked.
        if let Some(seed) = self.health.seed() {
            self.reseed(seed, handle);
        }
        self.tell(handle);
    }
}

/// Whether a line may be logged: each of many parts would have its own, and then another one.
fn may_tell(last: &mut Option<Micros>, parts: Parts, now: Micros) -> bool {
    let may = parts == Parts::ONE || last.is_none_or(|last| now.saturating_sub(last) >= SECOND);
    if may {
        *last = Some(now);
    }
    may
}
