//! The sources that recognise an actor's callers.

use std::borrow::Cow;
use std::rc::Rc;

use super::path_param::CoveredPath;
use super::{Mistake, Source, SourceValue};
use diana_policy::port::Request;
use diana_policy::spelling::fully_decoded;
use diana_policy::spelling::header::key;
use diana_policy::{Actor, Prefix};

/// The sources of an actor, in the order in which they are tried.
pub struct Sources {
    /// The actor's name, and the kinds of its sources.
    pub(super) name: String,
    pub(super) kinds: Vec<&'static str>,
    pub(super) sources: Vec<Rc<dyn Source>>,
    /// The number that each source contributes to the hash. All sources that the client chooses
    /// have the same number. A client that sends one key in several places thus remains one caller.
    numbers: Vec<usize>,
    /// That common number, if the client chooses any value.
    chosen: Option<usize>,
    /// Whether several sources have it.
    is_shared: bool,
}

impl Sources {
    /// Builds the sources of an actor.
    ///
    /// # Errors
    /// Every mistake in them.
    pub fn new(actor: &Actor) -> Result<Sources, Vec<Mistake>> {
        let sources: Vec<_> = actor.sources.iter().map(super::build).collect::<Result<_, _>>()?;
        let kinds = actor.sources.iter().map(|source| source.kind).collect();
        let mut chosen = (0..).zip(&sources).filter(|(_, source)| source.is_caller_chosen());
        let first = chosen.next().map(|(number, _)| number);
        let is_shared = chosen.next().is_some();
        let number = |(own, source): (usize, &Rc<dyn Source>)| {
            first.filter(|_| source.is_caller_chosen()).unwrap_or(own)
        };
        let numbers = sources.iter().enumerate().map(number).collect();
        Ok(Sources { name: actor.name.clone(), kinds, sources, numbers, chosen: first, is_shared })
    }

    /// The part of the path that one of `urls` covers.
    #[must_use]
    pub fn covered_path(urls: &Rc<[Prefix]>) -> Sources {
        Sources {
            name: "path".into(),
            kinds: vec!["path"],
            sources: vec![Rc::new(CoveredPath::new(urls))],
            numbers: vec![0],
            chosen: None,
            is_shared: false,
        }
    }

    /// The sources for rules of an entry with these paths, if any of them depends on the paths.
    #[must_use]
    pub fn within(&self, urls: &Rc<[Prefix]>) -> Option<Sources> {
        let by_path = |source: &Rc<dyn Source>| source.within(urls);
        self.sources.iter().find_map(by_path)?;
        let source = |source: &Rc<dyn Source>| by_path(source).unwrap_or_else(|| source.clone());
        Some(Sources {
            name: self.name.clone(),
            kinds: self.kinds.clone(),
            sources: self.sources.iter().map(source).collect(),
            numbers: self.numbers.clone(),
            ..*self
        })
    }

    /// The number that a source contributes to the hash.
    pub(super) fn number(&self, place: usize) -> usize {
        self.numbers.get(place).copied().unwrap_or(place)
    }

    /// The bytes to hash for a value of a source with this number. A key that the client chooses
    /// hashes the same in all its spellings, with and without `Bearer`, as `api_key_auth` treats
    /// it. If the client chooses among several places, some of which are percent-encoded, the key
    /// hashes the same in all of them.
    #[inline(always)]
    pub fn hashed<'v>(&self, number: usize, value: &'v [u8]) -> Cow<'v, [u8]> {
        if self.chosen != Some(number) {
            return Cow::Borrowed(value);
        }
        let plain = key(value);
        if self.is_shared && plain.iter().any(|byte| b"%+".contains(byte)) {
            return Cow::Owned(key(&fully_decoded(&plain)).into_owned());
        }
        plain
    }

    /// The number and the bytes to hash if a source has this text as its value, for each source.
    pub fn readings(&self, text: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let reading = |(place, source): (usize, &Rc<dyn Source>)| {
            let number = self.number(place);
            Some((number, self.hashed(number, &source.spelled(text)?).into_owned()))
        };
        self.sources.iter().enumerate().filter_map(reading).collect()
    }

    /// Returns true if any source reads headers.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.sources.iter().any(|source| source.reads_headers())
    }

    /// Returns true if any source has had a number that the host has rounded.
    #[must_use]
    pub fn has_rounded(&self) -> bool {
        self.sources.iter().any(|source| source.has_rounded())
    }

    /// Tries the sources in order. Returns the first that has a value, as its number and the value.
    #[inline]
    pub fn find<'r>(&self, request: &'r dyn Request) -> (usize, SourceValue<'r>) {
        let mut missing = SourceValue::Absent;
        for (number, source) in self.sources.iter().enumerate() {
            match source.find(request) {
                SourceValue::Absent => {}
                SourceValue::NoMetadata => missing = SourceValue::NoMetadata,
                found => return (self.number(number), found),
            }
        }
        (0, missing)
    }
}
