//! Callers that an operator names, without a request of theirs.

use super::caller::{Callers, CountScope};
use diana_policy::key::{Key, KeyHasher};

/// Most combinations of sources that are tried for the same values.
const MOST: usize = 256;

/// A caller that the given values may denote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The source of each actor's value. If several combinations yield the same key, the first of
    /// them. Empty for a caller that was named by its key.
    pub sources: Vec<&'static str>,
    /// The key of the caller.
    pub key: Key,
}

impl Callers {
    /// The names of a compound actor's parts. None for `all`.
    pub fn actors(&self, compound: Option<usize>) -> impl Iterator<Item = &str> {
        let parts = compound.and_then(|compound| self.compounds.get(compound));
        let parts = parts.into_iter().flat_map(|(parts, _)| parts);
        parts.filter_map(|&part| self.actors.get(part)).map(|actor| actor.name.as_str())
    }

    /// The callers that these values denote under a compound actor, one value for each of its
    /// parts. Every combination of the parts' sources yields a caller.
    #[must_use]
    pub fn named(&self, compound: Option<usize>, values: &[Vec<u8>]) -> Vec<Named> {
        let Some(compound) = compound else {
            return vec![Named { sources: Vec::new(), key: Key::ALL }];
        };
        let Some((parts, counted)) = self.compounds.get(compound) else { return Vec::new() };
        let all = |part: &usize| self.actors.get(*part).map_or(0, |actor| actor.sources.len());
        let ways = parts.iter().map(all).fold(1, usize::saturating_mul).min(MOST);
        let mut all: Vec<Named> = Vec::new();
        for named in (0..ways).filter_map(|way| self.named_by(way, parts, *counted, values)) {
            if all.iter().all(|known| known.key != named.key) {
                all.push(named);
            }
        }
        all
    }

    /// The caller for one combination of sources.
    fn named_by(
        &self,
        mut way: usize,
        parts: &[usize],
        counted: CountScope,
        values: &[Vec<u8>],
    ) -> Option<Named> {
        let seed = self.seed(counted);
        let (mut secret, mut first) = (KeyHasher::new(seed), KeyHasher::new(seed));
        let mut sources = Vec::new();
        for (place, (part, value)) in parts.iter().zip(values).enumerate() {
            let actor = self.actors.get(*part)?;
            let chosen = way % actor.sources.len().max(1);
            way /= actor.sources.len().max(1);
            let source = actor.sources.get(chosen)?;
            let number = actor.number(chosen);
            let value = source.spelled(value)?;
            let value = actor.hashed(number, &value);
            secret.part(number, &value);
            if place == 0 {
                first.part(number, &value);
            }
            sources.push(*actor.kinds.get(chosen)?);
        }
        let key = secret.finish();
        let is_beside = parts.len() > 1 && counted == CountScope::InFleet;
        Some(Named {
            sources,
            key: if is_beside { key.with_shard_of(first.finish()) } else { key },
        })
    }
}
