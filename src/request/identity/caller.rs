//! Who calls, in the eyes of each rule, found at most once per request.

use std::fmt::Write;

use super::Found;
use super::sources::Sources;
use diana_policy::key::{Key, KeyHasher, Seed};
use diana_policy::port::Request;

/// A request's caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Recognised.
    Known {
        /// Finds the caller's state.
        key: Key,
        /// 0 ..= 99, the same for this caller in every worker and gateway.
        percentile: u8,
    },
    /// One of those who share a bucket, since nobody can tell them apart.
    Shared,
    /// Not recognised.
    Absent,
}

impl Caller {
    /// The caller in the eyes of a rule for `all`.
    pub const ALL: Caller = Caller::Known { key: Key::ALL, percentile: 0 };
}

/// Where a rule's callers are counted, which decides about the secret that they are hashed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// In this gateway.
    Here,
    /// In what all gateways share.
    InFleet,
}

/// The (compound) actors that rules name, and what the request in hand yields for each.
pub struct Callers {
    pub(super) actors: Vec<Sources>,
    /// Each a list of indices into `actors`, and who counts callers by it.
    pub(super) compounds: Vec<(Vec<usize>, Counted)>,
    found: Vec<Option<Caller>>,
    /// Whether several rules name the same one, so that what was found is worth keeping.
    repeats: bool,
    /// The gateway's, and the fleet's.
    pub(super) seeds: (Seed, Seed),
    /// Whether any rule chooses callers by percentile, so that it must be worked out.
    percentiles: bool,
    /// Whether the request in hand lacks metadata which another filter should have left.
    lacks_metadata: bool,
    /// Requests since the last flush that did.
    pub without_metadata: u64,
}

impl Callers {
    /// Callers as recognised by `actors`, hashed under `seed`; those whom the fleet counts, too, until
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

    /// The number by which [`Callers::of`] knows a compound actor; none for `all`, where nobody is to be
    /// recognised.
    pub fn register(&mut self, actor: &[usize], counted: Counted) -> Option<usize> {
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

    /// Hashes those whom the fleet counts under another secret.
    pub fn reseed(&mut self, fleet: Seed) {
        self.seeds.1 = fleet;
    }

    /// Forgets the request before.
    pub fn begin(&mut self) {
        if self.repeats {
            self.found.fill(None);
        }
    }

    /// Counts the request in hand if it lacks metadata, unless it was counted when it came.
    pub fn count(&mut self, is_new: bool) {
        if std::mem::take(&mut self.lacks_metadata) && is_new {
            self.without_metadata += 1;
        }
    }

    /// The caller of `request` by a registered compound actor.
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

    /// How the caller of `request` is called, as it may stand in the log: addresses spelled out, `+`
    /// between the parts of a compound actor, `?` in the place of what would look odd.
    #[must_use]
    pub fn name(&self, compound: Option<usize>, request: &dyn Request) -> String {
        let mut name = String::new();
        let compound = compound.and_then(|compound| self.compounds.get(compound));
        let Some((parts, _)) = compound else { return name };
        for actor in parts.iter().filter_map(|&part| self.actors.get(part)) {
            if !name.is_empty() {
                name.push('+');
            }
            if let (_, Found::Value(value)) = actor.find(request) {
                spell(value.is_address(), &value, &mut name);
            }
        }
        name
    }

    /// The sources of a compound actor that is a single one.
    #[must_use]
    pub fn sources(&self, compound: usize) -> Option<&Sources> {
        let (parts, _) = self.compounds.get(compound)?;
        let [actor] = parts.as_slice() else { return None };
        self.actors.get(*actor)
    }

    #[inline]
    pub(super) fn seed(&self, counted: Counted) -> &Seed {
        match counted {
            Counted::Here => &self.seeds.0,
            Counted::InFleet => &self.seeds.1,
        }
    }

    /// The caller of `request` by an actor that was not asked yet.
    #[inline(never)]
    fn find(&mut self, compound: usize, request: &dyn Request) -> Caller {
        let Some((parts, counted)) = self.compounds.get(compound) else { return Caller::Absent };
        let [part] = parts.as_slice() else { return self.find_several(compound, request) };
        let Some(actor) = self.actors.get(*part) else { return Caller::Absent };
        match actor.find(request) {
            (source, Found::Value(value)) => {
                self.known(*counted, source, &actor.hashed(source, &value))
            }
            (_, Found::Repeated) => Caller::Shared,
            (_, Found::Absent) => Caller::Absent,
            (_, Found::NoMetadata) => {
                self.lacks_metadata = true;
                Caller::Absent
            }
        }
    }

    /// A caller with a single value.
    #[inline(always)]
    fn known(&self, counted: Counted, source: usize, value: &[u8]) -> Caller {
        let public = || Key::of(&Seed::PUBLIC, source, value);
        let percentile = if self.percentiles { percentile(public()) } else { 0 };
        Caller::Known { key: Key::of(self.seed(counted), source, value), percentile }
    }

    /// The caller of `request` by an actor that is made of several.
    #[inline(never)]
    fn find_several(&mut self, compound: usize, request: &dyn Request) -> Caller {
        let Some((parts, counted)) = self.compounds.get(compound) else { return Caller::Absent };
        let seed = self.seed(*counted);
        let mut secret = KeyHasher::new(seed);
        let mut public = self.percentiles.then(KeyHasher::public);
        let mut shared = false;
        for actor in parts.iter().filter_map(|&part| self.actors.get(part)) {
            match actor.find(request) {
                (source, Found::Value(value)) => {
                    let value = actor.hashed(source, &value);
                    secret.part(source, &value);
                    public.iter_mut().for_each(|public| public.part(source, &value));
                }
                (_, Found::Repeated) => shared = true,
                (_, Found::Absent) => return Caller::Absent,
                (_, Found::NoMetadata) => {
                    self.lacks_metadata = true;
                    return Caller::Absent;
                }
            }
        }
        if shared {
            return Caller::Shared;
        }
        let percentile = public.map_or(0, |public| percentile(public.finish()));
        let key = secret.finish();
        let key = match (parts.get(..2), counted) {
            (Some([first, _]), Counted::InFleet) => self.beside(key, *first, request),
            _ => key,
        };
        Caller::Known { key, percentile }
    }

    /// The key in the fleet of a caller whose first actor is this one. Rules that begin with the same actor have
    /// their states in the same part of Redis, so that one call charges them together.
    #[inline(never)]
    fn beside(&self, key: Key, first: usize, request: &dyn Request) -> Key {
        let mut secret = KeyHasher::new(&self.seeds.1);
        if let Some(actor) = self.actors.get(first)
            && let (source, Found::Value(value)) = actor.find(request)
        {
            secret.part(source, &actor.hashed(source, &value));
        }
        key.beside(secret.finish())
    }
}

fn percentile(public: Key) -> u8 {
    (public.hash % 100) as u8
}

/// Adds a value that an actor's source found to a name.
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
