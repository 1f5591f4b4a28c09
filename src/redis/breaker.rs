//! The circuit breaker of one shard of Redis.
//!
//! One failure opens it. Then one worker at a time probes, at increasing intervals. A successful
//! probe is followed soon by a rehearsal: a call with a question about each rule, as of requests.
//! Only its reply closes the breaker, since a Redis may answer probes whose script fails. If Redis
//! decides a rehearsal and soon after refuses a call of requests, the next rehearsal comes later,
//! each time by twice as much.

use diana_policy::time::{Micros, SECOND};

/// The first and the longest pause between two probes. A worker may learn two pauses late that
/// Redis is available again.
const SHORTEST: Micros = SECOND / 10;
const LONGEST: Micros = SECOND * 9 / 10;

/// The time between a successful probe and the rehearsal that must confirm it.
const CONFIRM: Micros = SECOND / 20;

/// After another failure within this time, the next pause is longer.
const CALM: Micros = 10 * SECOND;

/// The time between two closings after the first relapse, and how often it doubles.
const DISTRUST: Micros = 2 * SECOND;
const DOUBLINGS: u32 = 4;

/// The calls that the breaker allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum BreakerState {
    /// All calls.
    #[default]
    Closed,
    /// A probe at this instant.
    Open(Micros),
    /// A rehearsal at this instant, after a successful probe.
    HalfOpen(Micros),
}

/// A circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Breaker {
    state: BreakerState,
    /// The pause before the latest probe after a failure.
    pause: Micros,
    /// How often in a row Redis has refused a call soon after the breaker had closed.
    relapses: u32,
    /// When it was last closed.
    since: Micros,
}

impl Breaker {
    /// Decodes a breaker from these words.
    pub(super) fn of([probe, pause, good, since]: [u64; 4]) -> Breaker {
        let state = match (probe, good) {
            (0, _) => BreakerState::Closed,
            (probe, 0) => BreakerState::Open(probe),
            (probe, _) => BreakerState::HalfOpen(probe),
        };
        let (relapses, pause) = ((pause >> 32) as u32, pause & u64::from(u32::MAX));
        Breaker { state, pause, relapses, since }
    }

    /// Encodes the breaker: the instant of the next probe, or zero; the pause before it, with the
    /// relapses in the upper half; whether the latest probe succeeded; when the breaker was last
    /// closed.
    pub(super) fn words(&self) -> [u64; 4] {
        let (probe, good) = match self.state {
            BreakerState::Closed => (0, 0),
            BreakerState::Open(probe) => (probe, 0),
            BreakerState::HalfOpen(probe) => (probe, 1),
        };
        [probe, u64::from(self.relapses) << 32 | self.pause, good, self.since]
    }

    /// Returns true if it is equivalent to a breaker that never opened.
    pub(super) fn is_calm(&self, now: Micros) -> bool {
        !self.is_open() && now.saturating_sub(self.since) >= CALM
    }

    /// Returns true if only probes may be sent.
    pub(super) fn is_open(&self) -> bool {
        self.state != BreakerState::Closed
    }

    /// Returns true if the next probe is a rehearsal.
    pub(super) fn is_half_open(&self) -> bool {
        matches!(self.state, BreakerState::HalfOpen(_))
    }

    /// The instant of the next probe, if the breaker is open. An instant beyond the longest pause
    /// is corrupt.
    pub(super) fn probe(&self, now: Micros) -> Option<Micros> {
        match self.state {
            BreakerState::Closed => None,
            BreakerState::Open(probe) | BreakerState::HalfOpen(probe) => {
                let corrupt = probe > now.saturating_add(LONGEST);
                Some(if corrupt { now } else { probe })
            }
        }
    }

    /// Reserves the probe for this worker if it is due.
    pub(super) fn take_probe(&mut self, now: Micros) -> bool {
        let is_due = self.probe(now).is_some_and(|probe| probe <= now);
        if is_due && let BreakerState::Open(probe) | BreakerState::HalfOpen(probe) = &mut self.state
        {
            *probe = now.saturating_add(self.pause.clamp(SHORTEST, LONGEST));
        }
        is_due
    }

    /// Records that a call sent at `sent` failed; `is_refused` is true if Redis refused it. Returns
    /// true if the breaker changed.
    pub(super) fn failed(
        &mut self,
        now: Micros,
        sent: Micros,
        probing: bool,
        is_refused: bool,
    ) -> bool {
        // A call sent before the breaker closed is outdated.
        let old = (sent..=now).contains(&self.since) && sent < self.since;
        if old || self.is_open() && !probing {
            return false;
        }
        let is_soon = now.saturating_sub(self.since) < CALM;
        if !self.is_open() {
            self.relapses = match is_soon && self.since > 0 {
                true => self.relapses.saturating_add(is_refused.into()).min(1 + DOUBLINGS),
                false => 0,
            };
        }
        self.pause = match self.is_open() || is_soon {
            true => self.pause.saturating_mul(2).clamp(SHORTEST, LONGEST),
            false => SHORTEST,
        };
        self.state = BreakerState::Open(now.saturating_add(self.pause));
        true
    }

    /// Returns true if it must not close yet, since it has closed too early.
    fn is_distrusted(&self, now: Micros) -> bool {
        let Some(doublings) = self.relapses.checked_sub(1) else { return false };
        let until = self.since.saturating_add(DISTRUST << doublings.min(DOUBLINGS));
        self.since > 0 && (self.since..until).contains(&now)
    }

    /// Records a reply, which `decided` questions or none. Returns true if the breaker changed.
    pub(super) fn answered(&mut self, now: Micros, probing: bool, decided: bool) -> bool {
        match self.state {
            // The probe is a heartbeat only.
            BreakerState::Open(_) if probing && self.is_distrusted(now) => {
                self.state = BreakerState::Open(now.saturating_add(LONGEST))
            }
            BreakerState::Open(_) if probing => {
                self.state = BreakerState::HalfOpen(now.saturating_add(CONFIRM))
            }
            BreakerState::HalfOpen(_) if probing && decided => {
                (self.state, self.since) = (BreakerState::Closed, now)
            }
            _ => return false,
        }
        true
    }
}
