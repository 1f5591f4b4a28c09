//! Finds the line and column of a node by reading the text once more.
//!
//! The YAML reader keeps no positions, but its errors carry them: this walks to the node and fails
//! there on purpose.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::place::{Part, Place};

/// Line and column of `place`, counted from 1.
pub fn locate(text: &str, place: &Place) -> Option<(usize, usize)> {
    let (&document, steps) = place.steps.split_first()?;
    let document = serde_yaml::Deserializer::from_str(text).nth(document)?;
    let walk = Walk { steps, to_key: place.part == Part::Key };
    let location = walk.deserialize(document).err()?.location()?;
    Some((location.line(), location.column()))
}

/// The rest of the way. Every visit fails, at the latest at its end.
#[derive(Clone, Copy)]
struct Walk<'s> {
    steps: &'s [usize],
    to_key: bool,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another node")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if let Some((&step, steps)) = self.steps.split_first() {
            for _ in 0..step {
                items.next_element::<IgnoredAny>()?;
            }
            items.next_element_seed(Walk { steps, ..self })?;
        }
        Err(A::Error::custom("here"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<(), A::Error> {
        if let Some((&step, steps)) = self.steps.split_first() {
            for _ in 0..step {
                pairs.next_entry::<IgnoredAny, IgnoredAny>()?;
            }
            if self.to_key && steps.is_empty() {
                pairs.next_key_seed(Walk { steps, ..self })?;
            } else {
                pairs.next_key::<IgnoredAny>()?;
                pairs.next_value_seed(Walk { steps, ..self })?;
            }
        }
        Err(A::Error::custom("here"))
    }
}
