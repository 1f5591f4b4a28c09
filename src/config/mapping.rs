//! Declarations of mappings: their keys, and the allowed values of each.

use std::fmt;
use std::slice;

use diana_policy::time::{Micros, spell};

/// A mapping with declared keys.
#[derive(Debug)]
pub struct Mapping {
    /// Its name in the schema.
    pub name: &'static str,
    /// An example, for messages.
    pub what: &'static str,
    /// Its keys.
    pub keys: &'static [MappingKey],
    /// Further keys from another table.
    pub more: fn() -> Vec<MappingKey>,
}

/// A key of a mapping.
#[derive(Debug, Clone, Copy)]
pub struct MappingKey {
    /// The key itself.
    pub name: &'static str,
    /// Its allowed values.
    pub allowed: Allowed,
    /// Whether the key is required.
    pub is_required: bool,
}

/// The allowed values of a key. Readers check all further conditions. Texts are for messages.
#[derive(Debug, Clone, Copy)]
pub enum Allowed {
    /// Anything.
    Any,
    /// Text for which the function returns true.
    Text(&'static str, fn(&str) -> bool),
    /// `true` or `false`.
    Flag,
    /// A whole number in a range.
    Whole(u64, u64),
    /// A number in a range of millionths.
    Fraction(&'static str, u64, u64),
    /// A number, negative or not, of at most six decimals.
    Number,
    /// A duration in a range of ticks.
    Duration(Micros, Micros),
    /// A size in KiB or MiB, up to this number of bytes.
    Size(u64),
    /// One of some words.
    Choice(fn() -> Vec<&'static str>),
    /// A mapping with declared keys.
    Map(&'static Mapping),
    /// A list of items.
    List(&'static str, &'static Allowed),
    /// A mapping from arbitrary names to values.
    Named(&'static str, &'static Allowed),
    /// One of several.
    Either(&'static [Allowed]),
}

/// The words of an [`Allowed::Choice`], each with its meaning.
pub type Choices<T> = &'static [(&'static str, T)];

/// The words without their meanings.
pub fn words<T>(choices: &[(&'static str, T)]) -> Vec<&'static str> {
    choices.iter().map(|(word, _)| *word).collect()
}

/// A required key.
pub const fn required(name: &'static str, allowed: Allowed) -> MappingKey {
    MappingKey { name, allowed, is_required: true }
}

/// An optional key.
pub const fn optional(name: &'static str, allowed: Allowed) -> MappingKey {
    MappingKey { name, allowed, is_required: false }
}

/// A mapping without keys of another table.
pub const fn mapping(
    name: &'static str,
    what: &'static str,
    keys: &'static [MappingKey],
) -> Mapping {
    Mapping { name, what, keys, more: Vec::new }
}

impl Mapping {
    /// All keys.
    pub fn all(&self) -> Vec<MappingKey> {
        [self.keys, &(self.more)()].concat()
    }

    /// The names of all keys.
    pub fn names(&self) -> Vec<&'static str> {
        self.all().iter().map(|key| key.name).collect()
    }

    /// A key by its name.
    pub fn key(&self, name: &str) -> Option<MappingKey> {
        let is_it = |key: &&MappingKey| key.name == name;
        self.keys.iter().find(is_it).copied().or_else(|| (self.more)().iter().find(is_it).copied())
    }
}

impl Allowed {
    /// The alternatives, or the value itself.
    fn parts(&self) -> &[Allowed] {
        match self {
            Allowed::Either(several) => several,
            one => slice::from_ref(one),
        }
    }

    /// The alternative that is a number in a range, or the value itself.
    pub fn number(&self) -> Allowed {
        let is_number = |one: &&Allowed| matches!(one, Allowed::Whole(..) | Allowed::Duration(..));
        *self.parts().iter().find(is_number).unwrap_or(self)
    }

    /// Returns true if this text is allowed.
    pub fn takes(&self, text: &str) -> bool {
        self.parts().iter().any(|one| matches!(one, Allowed::Text(_, fits) if fits(text)))
    }

    /// The allowed mapping, if there is one.
    pub fn mapping(&self) -> Option<&'static Mapping> {
        self.parts().iter().find_map(|one| match one {
            Allowed::Map(mapping) => Some(*mapping),
            _ => None,
        })
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Any => f.write_str("anything"),
            Allowed::Flag => f.write_str("true or false"),
            Allowed::Number => f.write_str("a number up to 12 digits, with at most six decimals"),
            Allowed::Text(what, _)
            | Allowed::Fraction(what, ..)
            | Allowed::List(what, _)
            | Allowed::Named(what, _)
            | Allowed::Map(Mapping { what, .. }) => f.write_str(what),
            Allowed::Whole(min, max) => write!(f, "a whole number, {min} … {max}"),
            Allowed::Duration(min, max) => write!(
                f,
                "a duration, {} … {}: a whole number of ms, s, m, h or d, such as `1500ms`",
                spell(*min),
                spell(*max)
            ),
            Allowed::Size(most) => write!(
                f,
                "a size, 1KiB … {}MiB: a whole number of KiB or MiB, such as `64KiB`",
                most >> 20
            ),
            Allowed::Choice(words) => f.write_str(&words().join(", ")),
            Allowed::Either(several) => {
                let several: Vec<_> = several.iter().map(Allowed::to_string).collect();
                f.write_str(&several.join(", or "))
            }
        }
    }
}
