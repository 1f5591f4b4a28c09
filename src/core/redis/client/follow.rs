//! What the client learns of Redis, which all workers of the gateway go by.

use super::Client;
use crate::key::Seed;
use crate::redis::handle::Handle;
use crate::redis::health::Health;
use crate::redis::pending::Settled;
use crate::redis::protocol::Failure;
use crate::time::Micros;

impl Client {
    /// Redis answered.
    pub(super) fn answered(
        &mut self,
        now: Micros,
        gateways: u64,
        probing: bool,
        handle: &mut Handle,
    ) {
        let seed = self.seed;
        let mut back = false;
        let health = Health::update(&*self.data, &self.key, |health| {
            let was_open = health.breaker.is_open();
            let changed = health.answered(now, gateways, probing);
            back = was_open && !health.breaker.is_open();
            health.agree(seed) || changed
        });
        self.follow(health, handle);
        if back {
            let line = format!(
                "rules for the fleet: Redis (cluster `{}`) is back; the fleet counts together",
                self.endpoint.cluster
            );
            self.stats.news.push(line);
        }
    }

    /// Redis was asked in vain.
    pub(super) fn failed(
        &mut self,
        failure: &Failure,
        now: Micros,
        sent: Micros,
        probing: bool,
        handle: &mut Handle,
    ) {
        self.stats.fail(failure.name());
        let mut left = false;
        let health = Health::update(&*self.data, &self.key, |health| {
            let was_open = health.breaker.is_open();
            let changed = health.breaker.failed(now, sent, probing);
            left = !was_open && health.breaker.is_open();
            changed
        });
        self.follow(health, handle);
        if left {
            let line = format!(
                "rules for the fleet: Redis (cluster `{}`) cannot be relied upon: {failure}; this gateway \
                 goes by itself until it is back",
                self.endpoint.cluster
            );
            self.stats.news.push(line);
        }
    }

    /// The fleet's secret is this one. What goes by another is of no use any more.
    pub(super) fn reseed(&mut self, seed: Seed, handle: &mut Handle) {
        if self.seed != seed {
            self.seed = seed;
            self.give_up(Settled::Again, handle);
        }
    }

    /// Tells what is known of Redis.
    pub fn tell(&self, handle: &mut Handle) {
        handle.alone = self.health.breaker.is_open();
        handle.gateways = self.health.gateways.max(1);
    }

    /// Goes by what all workers know.
    pub(super) fn follow(&mut self, health: Health, handle: &mut Handle) {
        self.health = health;
        self.tell(handle);
    }
}
