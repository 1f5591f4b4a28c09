//! The history of a world, for the oracles.

use std::ops::Range;

use diana_policy::time::{Micros, Now, SECOND};

use super::node::{StreamOutcome, Visit};
use super::rule::{Rule, Scope};

/// A caller, where it is counted: in one worker, one gateway, or the whole fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    place: usize,
    caller: u32,
}

/// A request, from its arrival until its stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub visit: Visit,
    /// Its worker's place among all workers, and how many gateways and workers had been started before these.
    pub worker: usize,
    pub gateway_life: usize,
    pub worker_life: usize,
    /// The clocks of its gateway when that of the world shows zero.
    pub clocks: Now,
    pub arrived: Micros,
    /// When it was admitted or refused; `None` if the client left or the worker died before.
    pub decided: Option<(Micros, StreamOutcome)>,
    pub ended: Option<Micros>,
    /// Used permits by the response; `None` without a response.
    pub used: Option<u64>,
    /// The response and the filter state; empty if the worker died or its rules ended.
    pub report: String,
    /// Whether its worker died while it was open.
    pub is_lost: bool,
}

impl Entry {
    pub fn admitted(&self) -> Option<Micros> {
        self.decided.filter(|(_, outcome)| *outcome == StreamOutcome::Admitted).map(|(at, _)| at)
    }

    pub fn refused(&self) -> Option<Micros> {
        self.decided.filter(|(_, outcome)| *outcome == StreamOutcome::Refused).map(|(at, _)| at)
    }

    /// The account that a rule charges it to.
    pub fn counted_as(&self, rule: &Rule) -> Account {
        let place = match rule.scope {
            Scope::Local => self.worker_life,
            Scope::Gateway => self.gateway_life,
            Scope::Global => 0,
        };
        Account { place, caller: if rule.of_all { 0 } else { self.visit.caller } }
    }
}

/// How a gateway reached Redis.
#[derive(Debug, Default)]
pub struct Reach {
    /// When it may have counted alone: from a call that failed until one has succeeded that left after that.
    pub alone: Vec<Range<Micros>>,
    /// When calls failed that Redis had taken, and that it had not.
    pub taken: Vec<Micros>,
    pub untaken: Vec<Micros>,
    failed: Option<Micros>,
}

/// How long it takes until all workers of a gateway know that it counts together again: each looks when it is due.
const PROPAGATION: Micros = SECOND;

impl Reach {
    /// A call that left at `sent` has failed.
    pub fn fail(&mut self, sent: Micros, now: Micros) {
        self.failed = self.failed.max(Some(now));
        match self.alone.last_mut() {
            Some(last) if last.end.saturating_add(PROPAGATION) >= sent => last.end = Micros::MAX,
            _ => self.alone.push(sent..Micros::MAX),
        }
    }

    /// A call that left at `sent` was answered.
    pub fn succeed(&mut self, sent: Micros, now: Micros) {
        if self.failed.is_some_and(|failed| sent >= failed)
            && let Some(last) = self.alone.last_mut()
        {
            last.end = now;
            self.failed = None;
        }
    }

    /// Returns true if a worker of the gateway may have counted alone in a span; from `recovery` on none may.
    pub fn may_be_degraded(&self, span: &Range<Micros>, recovery: Micros) -> bool {
        self.alone.iter().any(|alone| {
            let known = alone.end.saturating_add(PROPAGATION).min(recovery.max(alone.end));
            alone.start <= span.end && span.start <= known
        })
    }

    /// The first instant from `at` on since when the gateway has counted with the others for `ticks`.
    pub fn connected_for(&self, ticks: Micros, at: Micros) -> Micros {
        let mut since = at;
        for alone in &self.alone {
            let known = alone.end.saturating_add(PROPAGATION);
            if alone.start <= since.saturating_add(ticks) && since <= known {
                since = known;
            }
        }
        since.saturating_add(ticks)
    }
}
