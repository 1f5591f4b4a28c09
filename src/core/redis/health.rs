//! What the workers of a gateway tell each other about Redis: whether it can be relied upon, how many
//! gateways share it, and the secret that callers are hashed with there.
//!
//! One worker that gets no answer speaks for all of them, so that no more requests wait for what
//! will not come. From then on the gateway counts alone, until the breaker closes.

use super::breaker::Breaker;
use crate::key::Seed;
use crate::port::SharedData;
use crate::time::Micros;
use crate::words;

/// Writes that may be lost to other workers in a row.
const ATTEMPTS: usize = 100;

/// The record, as it lies in shared data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Health {
    /// The gateway's number in Redis; 0 is none yet.
    pub(super) gateway: u64,
    /// Gateways that were active when Redis last answered; 0 if it never did.
    pub(super) gateways: u64,
    /// The secret of the fleet, where Redis has told it.
    seed: (u64, u64),
    /// Whether Redis can be relied upon.
    pub(super) breaker: Breaker,
}

impl Health {
    /// What is known.
    pub(super) fn read(data: &dyn SharedData, key: &str) -> Health {
        Health::of(words::read(data, key).0)
    }

    /// Changes what is known, as far as `change` says that there is something to write. What was
    /// written, or found in its place.
    pub(super) fn update(
        data: &dyn SharedData,
        key: &str,
        mut change: impl FnMut(&mut Health) -> bool,
    ) -> Health {
        let mut health = Health::default();
        for _ in 0..ATTEMPTS {
            let (words, number) = words::read(data, key);
            health = Health::of(words);
            if !change(&mut health) || words::write(health.words(), data, key, number) {
                break;
            }
        }
        health
    }

    fn of([gateway, gateways, k0, k1, breaker @ ..]: [u64; 8]) -> Health {
        Health { gateway, gateways, seed: (k0, k1), breaker: Breaker::of(breaker) }
    }

    fn words(&self) -> [u64; 8] {
        let Health { gateway, gateways, seed: (k0, k1), breaker } = *self;
        let [probe, pause, good, since] = breaker.words();
        [gateway, gateways, k0, k1, probe, pause, good, since]
    }

    /// The secret of the fleet.
    pub(super) fn seed(&self) -> Option<Seed> {
        let (k0, k1) = self.seed;
        (self.seed != (0, 0)).then_some(Seed { k0, k1 })
    }

    /// Sets the secret. Whether it is another one.
    pub(super) fn agree(&mut self, seed: Seed) -> bool {
        let seed = (seed.k0, seed.k1);
        std::mem::replace(&mut self.seed, seed) != seed
    }

    /// Redis answered. Whether there is something to write.
    pub(super) fn answered(&mut self, now: Micros, gateways: u64, probing: bool) -> bool {
        let before = std::mem::replace(&mut self.gateways, gateways);
        self.breaker.answered(now, probing) || before != gateways
    }
}
