//! What the workers of a gateway tell each other about Redis: which parts of it can be relied upon, how many
//! gateways share it, and the secret that callers are hashed with there.
//!
//! One worker that gets no answer speaks for all of them, so that no more requests wait for what
//! will not come. From then on the gateway counts alone what lies in that part, until its breaker closes.

use super::breaker::Breaker;
use super::part::Part;
use diana_policy::key::Seed;
use diana_policy::port::SharedData;
use diana_policy::time::Micros;
use diana_policy::words;

/// Writes that may be lost to other workers in a row.
const ATTEMPTS: usize = 100;

/// What the first part knows of the gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fleet {
    /// Those that were active when Redis last answered; 0 if it never did.
    pub(super) gateways: u64,
    /// Whether the keys fall into another number of parts for some of them.
    pub(super) is_apart: bool,
}

/// The record, as it lies in shared data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Health {
    /// The gateway's number in Redis; 0 is none yet.
    pub(super) gateway: u64,
    /// The gateways that share Redis.
    pub(super) fleet: Fleet,
    /// The secret of the fleet, where Redis has told it.
    seed: (u64, u64),
    /// The breakers that have something to remember, in the order of their parts.
    breakers: Vec<(Part, Breaker)>,
}

impl Health {
    /// What is known.
    pub(super) fn read(data: &dyn SharedData, key: &str) -> Health {
        Health::of(&words::read_all(data, key).0)
    }

    /// Changes what is known at an instant, as far as `change` says that there is something to write. What was
    /// written, or found in its place.
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
        // Whatever is no such record is taken for an empty one.
        if !rest.is_empty() {
            return Health::default();
        }
        let breaker = |[part, words @ ..]: &[u64; 5]| {
            u16::try_from(*part).ok().map(|part| (Part::new(part), Breaker::of(*words)))
        };
        let mut known: Vec<(Part, Breaker)> = Vec::new();
        for one in breakers.iter().filter_map(breaker) {
            // They are found by their parts, in order and each once.
            if known.last().is_none_or(|(last, _)| *last < one.0) {
                known.push(one);
            }
        }
        let fleet = Fleet { gateways: *gateways, is_apart: *apart > 0 };
        Health { gateway: *gateway, fleet, seed: (*k0, *k1), breakers: known }
    }

    fn words(&self) -> Vec<u64> {
        let Health { gateway, fleet, seed: (k0, k1), breakers } = self;
        let mut words = vec![*gateway, fleet.gateways, fleet.is_apart.into(), *k0, *k1];
        for (part, breaker) in breakers {
            words.push(part.number().into());
            words.extend(breaker.words());
        }
        words
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

    /// Notes what is known of the gateways. Whether that is something else.
    pub(super) fn count(&mut self, fleet: Fleet) -> bool {
        std::mem::replace(&mut self.fleet, fleet) != fleet
    }

    /// Changes a breaker. What `change` says.
    pub(super) fn change(&mut self, part: Part, change: impl FnOnce(&mut Breaker) -> bool) -> bool {
        let place = self.breakers.binary_search_by_key(&part, |(part, _)| *part);
        let known = place.ok().and_then(|place| self.breakers.get_mut(place));
        let mut new = Breaker::default();
        match (known, place) {
            (Some((_, breaker)), _) => change(breaker),
            (None, Ok(place) | Err(place)) => {
                let changed = change(&mut new);
                if changed {
                    self.breakers.insert(place.min(self.breakers.len()), (part, new));
                }
                changed
            }
        }
    }

    /// The parts that cannot be relied upon, in order, and their breakers.
    pub(super) fn open(&self) -> impl Iterator<Item = &(Part, Breaker)> {
        self.breakers.iter().filter(|(_, breaker)| breaker.is_open())
    }

    /// Whether a part cannot be relied upon.
    pub(super) fn is_open(&self, part: Part) -> bool {
        self.open().any(|(open, _)| *open == part)
    }
}
