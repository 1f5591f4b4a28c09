//! What the workers of a gateway tell each other about Redis: whether it can be relied upon, how many
//! gateways share it, and the secret that callers are hashed with there.
//!
//! One worker that gets no answer speaks for all of them, so that no more requests wait for what
//! will not come. From then on the gateway counts alone, and one worker at a time asks whether Redis
//! is back, less and less often; two good answers in a row bring the fleet together again.

use crate::key::Seed;
use crate::port::SharedData;
use crate::time::{Micros, SECOND};
use crate::words;

/// How long the first pause between two probes is, and the longest: a worker may hear of the good news
/// two pauses after Redis's return.
const SHORTEST: Micros = SECOND / 10;
const LONGEST: Micros = SECOND * 9 / 10;

/// Between the first good answer and the probe that has to confirm it.
const CONFIRM: Micros = SECOND / 20;

/// Who fails again within this time is not trusted as soon as before.
const CALM: Micros = 10 * SECOND;

/// Writes that may be lost to other workers in a row.
const ATTEMPTS: usize = 100;

/// The record, as it lies in shared data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// The gateway's number in Redis; 0 is none yet.
    pub gateway: u64,
    /// Gateways that were active when Redis last answered; 0 if it never did.
    pub gateways: u64,
    /// The secret of the fleet, where Redis has told it.
    seed: (u64, u64),
    /// When Redis is to be asked whether it is back; 0 while it is relied upon.
    probe: Micros,
    /// The pause before that.
    pause: Micros,
    /// Whether the last probe was answered.
    good: u64,
    /// When the fleet last came together.
    since: Micros,
}

impl Head {
    /// What is known.
    pub fn read(data: &dyn SharedData, key: &str) -> Head {
        Head::of(words::read(data, key).0)
    }

    /// Changes what is known, as far as `change` says that there is something to write. What was
    /// written, or found in its place.
    pub fn update(
        data: &dyn SharedData,
        key: &str,
        mut change: impl FnMut(&mut Head) -> bool,
    ) -> Head {
        let mut head = Head::default();
        for _ in 0..ATTEMPTS {
            let (words, number) = words::read(data, key);
            head = Head::of(words);
            if !change(&mut head) || words::write(head.words(), data, key, number) {
                break;
            }
        }
        head
    }

    fn of([gateway, gateways, k0, k1, probe, pause, good, since]: [u64; 8]) -> Head {
        Head { gateway, gateways, seed: (k0, k1), probe, pause, good, since }
    }

    fn words(&self) -> [u64; 8] {
        let Head { gateway, gateways, seed: (k0, k1), probe, pause, good, since } = *self;
        [gateway, gateways, k0, k1, probe, pause, good, since]
    }

    /// The secret of the fleet.
    #[must_use]
    pub fn seed(&self) -> Option<Seed> {
        let (k0, k1) = self.seed;
        (self.seed != (0, 0)).then_some(Seed { k0, k1 })
    }

    /// Sets the secret. Whether it is another one.
    pub fn agree(&mut self, seed: Seed) -> bool {
        let seed = (seed.k0, seed.k1);
        std::mem::replace(&mut self.seed, seed) != seed
    }

    /// Whether the gateway counts alone.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.probe > 0
    }

    /// When the next probe is due, if the gateway counts alone. One that lies further ahead than any
    /// pause was written by nobody.
    #[must_use]
    pub fn probe(&self, now: Micros) -> Option<Micros> {
        let foreign = self.probe > now.saturating_add(LONGEST);
        self.is_alone().then_some(if foreign { now } else { self.probe })
    }

    /// Takes the probe if it is due.
    pub fn take_probe(&mut self, now: Micros) -> bool {
        let takes = self.probe(now).is_some_and(|probe| probe <= now);
        if takes {
            self.probe = now + self.pause.clamp(SHORTEST, LONGEST);
        }
        takes
    }

    /// A trip came to nothing that was sent then. Whether there is something to write.
    pub fn failed(&mut self, now: Micros, sent: Micros, probing: bool) -> bool {
        // What was sent before the fleet came together says nothing new.
        let old = (sent..=now).contains(&self.since) && sent < self.since;
        if old || self.is_alone() && !probing {
            return false;
        }
        let again = self.is_alone() || now.saturating_sub(self.since) < CALM;
        self.pause =
            if again { self.pause.saturating_mul(2).clamp(SHORTEST, LONGEST) } else { SHORTEST };
        self.probe = now + self.pause;
        self.good = 0;
        true
    }

    /// A trip was answered. Whether there is something to write.
    pub fn answered(&mut self, now: Micros, gateways: u64, probing: bool) -> bool {
        let before = *self;
        self.gateways = gateways;
        if self.is_alone() && probing {
            if self.good > 0 {
                (self.probe, self.good, self.since) = (0, 0, now);
            } else {
                (self.probe, self.good) = (now + CONFIRM, 1);
            }
        }
        *self != before
    }
}
