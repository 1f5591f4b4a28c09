//! Text to trees: YAML, of which JSON is a part. What is built is bounded, since aliases can make
//! a short text mean a huge tree.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

use super::hint;
use super::problem::{Problem, Problems};
use crate::tree::Tree;

/// Largest size of all the trees together, where a node counts 1 and its text 1 for every 32 bytes.
const MAX_SIZE: usize = 200_000;

/// Deepest nesting.
const MAX_DEPTH: usize = 32;

/// The tree of every document in `text`.
pub fn documents(text: &str) -> Result<Vec<Tree>, Problems> {
    let bounds = Bounds { left: Cell::new(MAX_SIZE), refusal: Cell::new(None) };
    let mut trees = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let builder = Builder { bounds: &bounds, depth: 0 };
        trees.push(builder.deserialize(document).map_err(|error| problems(&error, &bounds, text))?);
    }
    Ok(trees)
}

fn problems(error: &serde_yaml::Error, bounds: &Bounds, text: &str) -> Problems {
    let position = error.location().map(|location| (location.line(), location.column()));
    if let Some(refusal) = bounds.refusal.take() {
        return Problems::one(position, refusal.into());
    }
    let mut message = error.to_string();
    if let Some((line, column)) = position {
        message = message.replacen(&format!(" at line {line} column {column}"), "", 1);
        let written = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        if written.chars().nth(column.saturating_sub(1)) == Some('\t') {
            message.push_str("; YAML indents with spaces, not tabs");
        }
    }
    message.insert_str(0, "not valid YAML: ");
    let mut list = hint::missing_spaces(text);
    let after = list.partition_point(|earlier| earlier.position <= position);
    list.insert(after, Problem { position, path: String::new(), message });
    Problems::new(list, 0)
}

/// What may still be built, and why no more was.
struct Bounds {
    left: Cell<usize>,
    refusal: Cell<Option<&'static str>>,
}

impl Bounds {
    fn refuse<E: Error>(&self, refusal: &'static str) -> E {
        self.refusal.set(Some(refusal));
        E::custom(refusal)
    }

    fn spend<E: Error>(&self, text: &str) -> Result<(), E> {
        match self.left.get().checked_sub(1 + text.len() / 32) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                Err(self.refuse("too large: more than 200000 nodes, aliases counted each time"))
            }
        }
    }
}

/// Builds the tree of one node at a depth.
#[derive(Clone, Copy)]
struct Builder<'b> {
    bounds: &'b Bounds,
    depth: usize,
}

impl Builder<'_> {
    fn below<E: Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.bounds.refuse("nested too deeply: more than 32 levels"));
        }
        Ok(Builder { depth: self.depth + 1, ..self })
    }

    fn leaf<E: Error>(self, tree: Tree) -> Result<Tree, E> {
        self.bounds.spend("")?;
        Ok(tree)
    }
}

impl<'de> DeserializeSeed<'de> for Builder<'_> {
    type Value = Tree;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Builder<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        self.leaf(Tree::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        self.leaf(Tree::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        self.leaf(Tree::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        self.leaf(Tree::Int(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        self.leaf(Tree::Int(value.into()))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Tree, E> {
        self.leaf(Tree::Int(i128::try_from(value).unwrap_or(i128::MAX)))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Tree, E> {
        self.leaf(Tree::Int(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        let whole = value.fract() == 0.0 && value.abs() < 1e18;
        self.leaf(if whole { Tree::Int(value as i128) } else { Tree::Float(value) })
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        self.bounds.spend(value)?;
        Ok(Tree::Text(value.into()))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<Tree, A::Error> {
        Err(self.bounds.refuse("tags such as `!name` mean nothing here; leave them out"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let below = self.below()?;
        self.bounds.spend("")?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Tree, A::Error> {
        let below = self.below()?;
        self.bounds.spend("")?;
        let mut map = Vec::new();
        while let Some(key) = pairs.next_key_seed(Key(self.bounds))? {
            map.push((key, pairs.next_value_seed(below)?));
        }
        Ok(Tree::Map(map))
    }
}

/// Reads a key as the text that stands there, whatever it looks like.
struct Key<'b>(&'b Bounds);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key that is text")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<String, E> {
        self.0.spend(value)?;
        Ok(value.into())
    }
}
