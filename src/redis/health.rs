//! The record that the workers of a gateway share about Redis: unavailable shards, the number of
//! gateways, and the secret seed of the callers' hashes.
//!
//! A worker without a reply opens the breaker for all workers, so that no more requests wait for a
//! reply. Until the breaker closes, the gateway enforces its share of the limits in that shard.

use super::breaker::Breaker;
use super::shard::Shard;
use diana_policy::key::Seed;
use diana_policy::port::SharedData;
use diana_policy::time::Micros;
use diana_policy::words;

/// Lost writes in a row before an update is given up.
const ATTEMPTS: usize = 100;

/// The first shard's knowledge of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct KnownFleet {
    /// Active gateways at Redis's latest reply; 0 before the first one.
    pub(super) gateways: u64,
    /// Whether some of them have another number of shards.
    pub(super) is_apart: bool,
}

/// The record in shared data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Health {
    /// The gateway's number in Redis; 0 if it has none yet.
    pub(super) gateway: u64,
    /// The gateways that share Redis.
    pub(super) fleet: KnownFleet,
    /// The fleet's secret seed, once Redis has sent it.
    seed: (u64, u64),
    /// Breakers that are not in their initial state, ordered by shard.
    breakers: Vec<(Shard, Breaker)>,
}

impl Health {
    /// Reads the record.
    pub(super) fn read(data: &dyn SharedData, key: &str) -> Health {
        Health::of(&words::read_all(data, key).0)
    }

    /// Updates the record with `change`, which returns true if there is a change to write. Returns
    /// the record as written or found.
    pub(super) fn update(
        data: &dyn SharedData,
        key: &str,
        now: Micros,
        mut change: impl FnMut(&mut Health) -> bool,
    ) -> Health {
        let mut health = Health::default();
        for _ in 0..ATTEMPTS {
            let (words, number) = words::read_all(data, key);
            health = Health::of(&words);
            if !change(&mut health) {
                break;
            }
            health.breakers.retain(|(_, breaker)| !breaker.is_calm(now));
            if words::write_all(&health.words(), data, key, number) {
                break;
            }
        }
        health
    }

    fn of(words: &[u64]) -> Health {
        let Some(([gateway, gateways, apart, k0, k1], rest)) = words.split_first_chunk() else {
            return Health::default();
        };
        let (breakers, rest) = rest.as_chunks();
        // Corrupt words count as an empty record.
        if !rest.is_empty() {
            return Health::default();
        }
        let breaker = |[shard, words @ ..]: &[u64; 5]| {
            u16::try_from(*shard).ok().map(|shard| (Shard::new(shard), Breaker::of(*words)))
        };
        let mut known: Vec<(Shard, Breaker)> = Vec::new();
        for one in breakers.iter().filter_map(breaker) {
            // Lookups need them sorted by shard without duplicates.
            if known.last().is_none_or(|(last, _)| *last < one.0) {
                known.push(one);
            }
        }
        let fleet = KnownFleet { gateways: *gateways, is_apart: *apart > 0 };
        Health { gateway: *gateway, fleet, seed: (*k0, *k1), breakers: known }
    }

    fn words(&self) -> Vec<u64> {
        let Health { gateway, fleet, seed: (k0, k1), breakers } = self;
        let mut words = vec![*gateway, fleet.gateways, fleet.is_apart.into(), *k0, *k1];
        for (shard, breaker) in breakers {
            words.push(shard.number().into());
            words.extend(breaker.words());
        }
        words
    }

    /// The fleet's secret seed.
    pub(super) fn seed(&self) -> Option<Seed> {
        let (k0, k1) = self.seed;
        (self.seed != (0, 0)).then_some(Seed { k0, k1 })
    }

    /// Sets the seed. Returns true if it changed.
    pub(super) fn agree(&mut self, seed: Seed) -> bool {
        let seed = (seed.k0, seed.k1);
        std::mem::replace(&mut self.seed, seed) != seed
    }

    /// Sets the state of the fleet. Returns true if it changed.
    pub(super) fn count(&mut self, fleet: KnownFleet) -> bool {
        std::mem::replace(&mut self.fleet, fleet) != fleet
    }

    /// Changes a breaker. Returns the result of `change`.
    pub(super) fn change(
        &mut self,
        shard: Shard,
        change: impl FnOnce(&mut Breaker) -> bool,
    ) -> bool {
        let index = self.breakers.binary_search_by_key(&shard, |(shard, _)| *shard);
        let known = index.ok().and_then(|index| self.breakers.get_mut(index));
        let mut new = Breaker::default();
        match (known, index) {
            (Some((_, breaker)), _) => change(breaker),
            (None, Ok(index) | Err(index)) => {
                let changed = change(&mut new);
                if changed {
                    self.breakers.insert(index.min(self.breakers.len()), (shard, new));
                }
                changed
            }
        }
    }

    /// The unavailable shards, in order, and their breakers.
    pub(super) fn open(&self) -> impl Iterator<Item = &(Shard, Breaker)> {
        self.breakers.iter().filter(|(_, breaker)| breaker.is_open())
    }

    /// Returns true if a shard is unavailable.
    pub(super) fn is_open(&self, shard: Shard) -> bool {
        self.open().any(|(open, _)| *open == shard)
    }
}
