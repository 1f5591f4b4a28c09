//! Callers whom somebody names, instead of a request that comes from them.

use super::caller::{Callers, Counted};
use diana_policy::key::{Key, KeyHasher};

/// Most ways in which the same names can be those of callers: one for each choice of sources.
const MOST: usize = 256;

/// Whom a name may stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// By which sources it would be recognised, one for each actor; the first of those that recognise the same caller.
    /// Empty if it was named by its key.
    pub sources: Vec<&'static str>,
    /// Its key.
    pub key: Key,
}

impl Callers {
    /// The actors that a compound actor is made of, by their names; none for `all`.
    pub fn actors(&self, compound: Option<usize>) -> impl Iterator<Item = &str> {
        let parts = compound.and_then(|compound| self.compounds.get(compound));
        let parts = parts.into_iter().flat_map(|(parts, _)| parts);
        parts.filter_map(|&part| self.actors.get(part)).map(|actor| actor.name.as_str())
    }

    /// Whom a compound actor would recognise by these values, one for each of its actors, by whichever of their sources.
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

    /// The caller by one choice of sources.
    fn named_by(
        &self,
        mut way: usize,
        parts: &[usize],
        counted: Counted,
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
        let is_beside = parts.len() > 1 && counted == Counted::InFleet;
        Some(Named { sources, key: if is_beside { key.beside(first.finish()) } else { key } })
    }
}
