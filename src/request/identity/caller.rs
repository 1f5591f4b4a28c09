//! The caller of a request under each rule, found at most once per request.

use std::fmt::Write;
use std::rc::Rc;

use super::SourceValue;
use super::client_address::UNKNOWN;
use super::sources::Sources;
use diana_policy::Prefix;
use diana_policy::key::{Key, KeyHasher, Seed};
use diana_policy::port::Request;

/// The caller of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The caller is recognised.
    Known {
        /// The key of the caller's state.
        key: Key,
        /// 0 ..= 99, the same for this caller in every worker and gateway.
        percentile: u8,
    },
    /// A request with an unclear value or without an address. All such requests share the state
    /// of this key.
    Shared(Key),
    /// The caller is not recognised.
    Absent,
}

impl Caller {
    /// The caller under a rule for `all`.
    pub const ALL: Caller = Caller::Known { key: Key::ALL, percentile: 0 };
}

/// Where a rule counts its callers. This selects the secret for hashing their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountScope {
    /// In this gateway.
    Here,
    /// In Redis, shared by all gateways.
    InFleet,
}

/// The (compound) actors of the rules, with the caller that the current request has for each.
pub struct Callers {
    pub(super) actors: Vec<Sources>,
    /// Each is a list of indices into `actors`, with the place where its callers are counted.
    pub(super) compounds: Vec<(Vec<usize>, CountScope)>,
    found: Vec<Option<Caller>>,
    /// Whether several rules name the same actor, so that callers are cached for the request.
    repeats: bool,
    /// The seeds of the gateway and of the fleet.
    pub(super) seeds: (Seed, Seed),
    /// Whether any rule selects callers by percentile. Otherwise percentiles are not computed.
    percentiles: bool,
    /// Whether the current request lacks metadata that another filter should have set.
    lacks_metadata: bool,
    /// Requests without that metadata since the last flush.
    pub without_metadata: u64,
}

impl Callers {
    /// Callers recognised by `actors`. All keys are hashed under `seed`, those of the fleet until
    /// [`Callers::reseed`].
    #[must_use]
    pub fn new(actors: Vec<Sources>, seed: Seed, percentiles: bool) -> Callers {
        Callers {
            actors,
            compounds: Vec::new(),
            found: Vec::new(),
            repeats: false,
            seeds: (seed, seed),
            percentiles,
            lacks_metadata: false,
            without_metadata: 0,
        }
    }

    /// The actors in the rules of an entry with these paths: `actor`, and if `each` is set, the path
    /// that covers the request.
    pub fn within(&mut self, actor: &[usize], urls: &Rc<[Prefix]>, each: bool) -> Vec<usize> {
        let mut parts: Vec<usize> = Vec::with_capacity(actor.len() + 1);
        for &number in actor {
            let by_path = self.actors.get(number).and_then(|known| known.within(urls));
            parts.push(by_path.map_or(number, |sources| self.add(sources)));
        }
        if each {
            parts.push(self.add(Sources::covered_path(urls)));
        }
        parts
    }

    fn add(&mut self, sources: Sources) -> usize {
        self.actors.push(sources);
        self.actors.len() - 1
    }

    /// Registers a compound actor and returns its number for [`Callers::of`]. `None` for `all`,
    /// which recognises no callers.
    pub fn register(&mut self, actor: &[usize], counted: CountScope) -> Option<usize> {
        if actor.is_empty() {
            return None;
        }
        let compound = (actor.to_vec(), counted);
        if let Some(known) = self.compounds.iter().position(|known| *known == compound) {
            self.repeats = true;
            return Some(known);
        }
        self.compounds.push(compound);
        self.found.push(None);
        Some(self.compounds.len() - 1)
    }

    /// Replaces the seed for callers that the fleet counts.
    pub fn reseed(&mut self, fleet: Seed) {
        self.seeds.1 = fleet;
    }

    /// Drops the callers of the previous request.
    pub fn begin(&mut self) {
        if self.repeats {
            self.found.fill(None);
        }
    }

    /// Counts the current request if it lacks metadata. A resumed request was counted on arrival
    /// (`is_new` is false).
    #[inline]
    pub fn count(&mut self, is_new: bool) {
        if std::mem::take(&mut self.lacks_metadata) && is_new {
            self.without_metadata += 1;
        }
    }

    /// The caller of `request` under a registered compound actor.
    #[inline(always)]
    pub fn of(&mut self, compound: Option<usize>, request: &dyn Request) -> Caller {
        match compound {
            None => Caller::ALL,
            Some(compound) if self.repeats => self.once(compound, request),
            Some(compound) => self.find(compound, request),
        }
    }

    fn once(&mut self, compound: usize, request: &dyn Request) -> Caller {
        if let Some(Some(caller)) = self.found.get(compound) {
            return *caller;
        }
        let caller = self.find(compound, request);
        if let Some(found) = self.found.get_mut(compound) {
            *found = Some(caller);
        }
        caller
    }

    /// The caller of `request` as text for logs: addresses in the usual notation, `+` between the
    /// parts of a compound actor, `?` in place of special characters.
    #[must_use]
    pub fn name(&self, compound: Option<usize>, request: &dyn Request) -> String {
        let mut name = String::new();
        let compound = compound.and_then(|compound| self.compounds.get(compound));
        let Some((parts, _)) = compound else { return name };
        for actor in parts.iter().filter_map(|&part| self.actors.get(part)) {
            if !name.is_empty() {
                name.push('+');
            }
            if let (_, SourceValue::Value(value)) = actor.find(request) {
                spell(value.is_address(), &value, &mut name);
            }
        }
        name
    }

    /// Returns true if a part of a compound actor has had a number that the host has rounded.
    #[must_use]
    pub fn has_rounded(&self, compound: Option<usize>) -> bool {
        let compound = compound.and_then(|compound| self.compounds.get(compound));
        let parts = compound.into_iter().flat_map(|(parts, _)| parts);
        parts.filter_map(|&part| self.actors.get(part)).any(Sources::has_rounded)
    }

    /// The sources of a compound actor that has a single part.
    #[must_use]
    pub fn sources(&self, compound: usize) -> Option<&Sources> {
        let (parts, _) = self.compounds.get(compound)?;
        let [actor] = parts.as_slice() else { return None };
        self.actors.get(*actor)
    }

    #[inline]
    pub(super) fn seed(&self, counted: CountScope) -> &Seed {
        match counted {
            CountScope::Here => &self.seeds.0,
            CountScope::InFleet => &self.seeds.1,
        }
    }

    /// Reads the caller of `request` from the sources of an actor.
    #[inline(never)]
    fn find(&mut self, compound: usize, request: &dyn Request) -> Caller {
        let Some((parts, counted)) = self.compounds.get(compound) else { return Caller::Absent };
        let [part] = parts.as_slice() else { return self.find_several(compound, request) };
        let Some(actor) = self.actors.get(*part) else { return Caller::Absent };
        match actor.find(request) {
            (source, SourceValue::Value(value)) => {
                self.single(*counted, source, &actor.hashed(source, &value))
            }
            (source, SourceValue::NoAddress) => self.without_address(*counted, source),
            (_, SourceValue::Unclear) => Caller::Shared(Key::SHARED),
            (_, SourceValue::Absent) => Caller::Absent,
            (_, SourceValue::NoMetadata) => {
                self.lacks_metadata = true;
                Caller::Absent
            }
        }
    }

    /// All callers without an address.
    #[inline(never)]
    fn without_address(&self, counted: CountScope, source: usize) -> Caller {
        Caller::Shared(Key::of(self.seed(counted), source, UNKNOWN))
    }

    /// A caller with a single value.
    #[inline(always)]
    fn single(&self, counted: CountScope, source: usize, value: &[u8]) -> Caller {
        let public = || Key::of(&Seed::PUBLIC, source, value);
        let percentile = if self.percentiles { percentile(public()) } else { 0 };
        Caller::Known { key: Key::of(self.seed(counted), source, value), percentile }
    }

    /// The caller of `request` under an actor with several parts.
    #[inline(never)]
    fn find_several(&mut self, compound: usize, request: &dyn Request) -> Caller {
        let Some((parts, counted)) = self.compounds.get(compound) else { return Caller::Absent };
        let seed = self.seed(*counted);
        let mut secret = KeyHasher::new(seed);
        let mut public = self.percentiles.then(KeyHasher::public);
        let (mut is_unclear, mut lacks_address) = (false, false);
        for actor in parts.iter().filter_map(|&part| self.actors.get(part)) {
            match actor.find(request) {
                (source, SourceValue::Value(value)) => {
                    let value = actor.hashed(source, &value);
                    secret.part(source, &value);
                    public.iter_mut().for_each(|public| public.part(source, &value));
                }
                (source, SourceValue::NoAddress) => {
                    secret.part(source, UNKNOWN);
                    lacks_address = true;
                }
                (_, SourceValue::Unclear) => is_unclear = true,
                (_, SourceValue::Absent) => return Caller::Absent,
                (_, SourceValue::NoMetadata) => {
                    self.lacks_metadata = true;
                    return Caller::Absent;
                }
            }
        }
        if is_unclear {
            return Caller::Shared(Key::SHARED);
        }
        let percentile = public.map_or(0, |public| percentile(public.finish()));
        let key = secret.finish();
        let key = match (parts.get(..2), counted) {
            (Some([first, _]), CountScope::InFleet) => self.in_shard_of(key, *first, request),
            _ => key,
        };
        if lacks_address { Caller::Shared(key) } else { Caller::Known { key, percentile } }
    }

    /// The key in the fleet for a caller with this first part. Rules with the same first part keep
    /// its states in the same shard of Redis, so that one call charges them together.
    #[inline(never)]
    fn in_shard_of(&self, key: Key, first: usize, request: &dyn Request) -> Key {
        let mut secret = KeyHasher::new(&self.seeds.1);
        match self.actors.get(first).map(|actor| (actor, actor.find(request))) {
            Some((actor, (source, SourceValue::Value(value)))) => {
                secret.part(source, &actor.hashed(source, &value));
            }
            Some((_, (source, SourceValue::NoAddress))) => secret.part(source, UNKNOWN),
            _ => {}
        }
        key.with_shard_of(secret.finish())
    }
}

fn percentile(public: Key) -> u8 {
    (public.hash % 100) as u8
}

/// Appends a source's value to a name.
#[inline(never)]
fn spell(is_address: bool, value: &[u8], name: &mut String) {
    const LONGEST: usize = 64;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\",+".contains(&byte);
    for (place, &byte) in value.iter().take(LONGEST).enumerate() {
        // Writing to a string cannot fail.
        _ = match is_address {
            true if value.len() > 4 => {
                write!(name, "{}{byte:02x}", if place > 0 && place % 2 == 0 { ":" } else { "" })
            }
            true => write!(name, "{}{byte}", if place > 0 { "." } else { "" }),
            false => name.write_char(if is_plain(byte) { char::from(byte) } else { '?' }),
        };
    }
}
