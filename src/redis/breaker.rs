//! The circuit breaker of a part of Redis: whether it can be relied upon.
//!
//! One failure opens it. From then on one worker at a time probes, less and less often; one good answer has the
//! next probe follow soon, and a second one in a row closes it.

use diana_policy::time::{Micros, SECOND};

/// How long the first pause between two probes is, and the longest: a worker may hear of the good news
/// two pauses after Redis's return.
const SHORTEST: Micros = SECOND / 10;
const LONGEST: Micros = SECOND * 9 / 10;

/// Between the first good answer and the probe that has to confirm it.
const CONFIRM: Micros = SECOND / 20;

/// What fails again within this time is not trusted as soon as before.
const CALM: Micros = 10 * SECOND;

/// What the breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Everything.
    #[default]
    Closed,
    /// A probe at this instant.
    Open(Micros),
    /// A probe at this instant, after the last one was answered.
    HalfOpen(Micros),
}

/// A circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Breaker {
    state: State,
    /// The pause before the last probe after a failure.
    pause: Micros,
    /// When it was last closed.
    since: Micros,
}

impl Breaker {
    /// One that was stored as these words.
    pub(super) fn of([probe, pause, good, since]: [u64; 4]) -> Breaker {
        let state = match (probe, good) {
            (0, _) => State::Closed,
            (probe, 0) => State::Open(probe),
            (probe, _) => State::HalfOpen(probe),
        };
        Breaker { state, pause, since }
    }

    /// It as it is stored: when the next probe is due, or zero; the pause before; whether the last probe was
    /// answered; when it was last closed.
    pub(super) fn words(&self) -> [u64; 4] {
        let (probe, good) = match self.state {
            State::Closed => (0, 0),
            State::Open(probe) => (probe, 0),
            State::HalfOpen(probe) => (probe, 1),
        };
        [probe, self.pause, good, self.since]
    }

    /// Whether it is as good as one that never opened.
    pub(super) fn is_calm(&self, now: Micros) -> bool {
        !self.is_open() && now.saturating_sub(self.since) >= CALM
    }

    /// Whether nothing is to be sent but probes.
    pub(super) fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// When the next probe is due, if it is open. One that lies further ahead than any pause was written by
    /// nobody.
    pub(super) fn probe(&self, now: Micros) -> Option<Micros> {
        match self.state {
            State::Closed => None,
            State::Open(probe) | State::HalfOpen(probe) => {
                let corrupt = probe > now.saturating_add(LONGEST);
                Some(if corrupt { now } else { probe })
            }
        }
    }

    /// Takes the probe if it is due.
    pub(super) fn take_probe(&mut self, now: Micros) -> bool {
        let is_due = self.probe(now).is_some_and(|probe| probe <= now);
        if is_due && let State::Open(probe) | State::HalfOpen(probe) = &mut self.state {
            *probe = now.saturating_add(self.pause.clamp(SHORTEST, LONGEST));
        }
        is_due
    }

    /// What was sent at an instant came to nothing. Whether it changes.
    pub(super) fn failed(&mut self, now: Micros, sent: Micros, probing: bool) -> bool {
        // What was sent before it was closed says nothing new.
        let old = (sent..=now).contains(&self.since) && sent < self.since;
        if old || self.is_open() && !probing {
            return false;
        }
        let again = self.is_open() || now.saturating_sub(self.since) < CALM;
        self.pause =
            if again { self.pause.saturating_mul(2).clamp(SHORTEST, LONGEST) } else { SHORTEST };
        self.state = State::Open(now.saturating_add(self.pause));
        true
    }

    /// Something was answered. Whether it changes.
    pub(super) fn answered(&mut self, now: Micros, probing: bool) -> bool {
        match self.state {
            State::Open(_) if probing => self.state = State::HalfOpen(now.saturating_add(CONFIRM)),
            State::HalfOpen(_) if probing => (self.state, self.since) = (State::Closed, now),
            _ => return false,
        }
        true
    }
}
