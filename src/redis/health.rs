//! The record that the workers of a gateway share about Redis: unavailable shards, the number of
//! gateways, and the secret seed of the callers' hashes.
//!
//! A worker without a reply opens the breaker for all workers, so that no more requests wait for a
//! reply. Until the breaker closes, the gateway enforces its share of the limits in that shard.

use super::breaker::Breaker;
use super::shard::Shard;
use diana_policy::gateways::GatewayCount;
use diana_policy::key::Seed;
use diana_policy::port::SharedData;
use diana_policy::time::{self, Micros, SECOND};
use diana_policy::words;

/// The interval between calls of a gateway to the first shard, which counts the gateways. A call for
/// requests replaces one that is due within half of it.
const BEAT: Micros = SECOND;

/// Lost writes in a row before an update is given up.
const ATTEMPTS: usize = 100;

/// A report of the first shard about the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownFleet {
    /// Active gateways.
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
    pub(super) gateways: GatewayCount,
    /// Whether some of them have another number of shards.
    pub(super) is_apart: bool,
    /// When the next call to the first shard is due.
    beat: Micros,
    /// The fleet's secret seed, once Redis has sent it.
    seed: (u64, u64),
    /// Breakers that are not in their initial state, ordered by shard. The first that ever opened
    /// stays.
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
            // The first one stays: it is the sign of an outage.
            let mut is_first = true;
            health.breakers.retain(|(_, it)| std::mem::take(&mut is_first) || !it.is_calm(now));
            if words::write_all(&health.words(), data, key, number) {
                break;
            }
        }
        health
    }

    fn of(words: &[u64]) -> Health {
        let Some(([gateway, gateways, apart, fewer_since, fewer, beat, k0, k1], rest)) =
            words.split_first_chunk()
        else {
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
        Health {
            gateway: *gateway,
            gateways: GatewayCount::of([*gateways, *fewer_since, *fewer]),
            is_apart: *apart > 0,
            beat: *beat,
            seed: (*k0, *k1),
            breakers: known,
        }
    }

    fn words(&self) -> Vec<u64> {
        let Health { gateway, gateways, is_apart, beat, seed: (k0, k1), breakers } = self;
        let [gateways, since, fewer] = gateways.words();
        let mut words = vec![*gateway, gateways, (*is_apart).into(), since, fewer, *beat, *k0, *k1];
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

    /// Takes a report of Redis about the fleet. Before the first one, `least` gateways are assumed.
    /// Returns true if the record changed.
    pub(super) fn count(&mut self, reported: KnownFleet, least: u64, now: Micros) -> bool {
        let before = (self.gateways, self.is_apart);
        self.gateways.count(reported.gateways, least, now);
        self.is_apart = reported.is_apart;
        (self.gateways, self.is_apart) != before
    }

    /// Records that Redis did not answer about the fleet. Returns true if the record changed.
    pub(super) fn miss(&mut self) -> bool {
        let before = self.gateways;
        self.gateways.miss();
        self.gateways != before
    }

    /// When the next call to the first shard is due.
    pub(super) fn beat(&self) -> Micros {
        self.beat
    }

    /// Reserves the call to the first shard for this worker if it is due by `at`. The next one is due at
    /// the gateway's own turn, since a push of a configuration reaches all gateways at once.
    pub(super) fn take_beat(&mut self, at: Micros) -> bool {
        let is_due = self.is_beat_due(at);
        if is_due {
            self.beat = time::turn(at, BEAT, self.gateway);
        }
        is_due
    }

    /// Returns true if a call to the first shard is due by `at`. A much later instant is corrupt.
    pub(super) fn is_beat_due(&self, at: Micros) -> bool {
        self.beat <= at || self.beat > at.saturating_add(2 * BEAT)
    }

    /// Until when a call to the first shard that leaves now spares the next one.
    pub(super) fn spared_until(now: Micros) -> Micros {
        now.saturating_add(BEAT / 2)
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

    /// Returns true if a shard was unavailable since the gateway began. Only then are there arrears.
    pub(super) fn had_outage(&self) -> bool {
        !self.breakers.is_empty()
    }

    /// Returns true if a shard is unavailable.
    pub(super) fn is_open(&self, shard: Shard) -> bool {
        self.open().any(|(open, _)| *open == shard)
    }
}
