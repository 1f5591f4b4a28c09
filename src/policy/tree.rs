//! A configuration document as a plain tree, before its interpretation.

use serde::{Serialize, Serializer};

/// A node of a document. Mappings keep their order and duplicate keys, so that errors can report
/// both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tree {
    /// `null`, `~`, or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number. `10.0` is one, since a `Struct` has floats only.
    Int(i128),
    /// Any other number, as written.
    Number(String),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Tree>),
    /// A mapping. Keys that are not text are kept as written in the document.
    Map(Vec<(String, Tree)>),
}

/// A number without a JSON representation becomes text.
impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Tree::Null => to.serialize_unit(),
            Tree::Bool(value) => to.serialize_bool(*value),
            Tree::Int(value) => to.serialize_i128(*value),
            Tree::Number(text) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => to.serialize_f64(number),
                _ => to.serialize_str(text),
            },
            Tree::Text(text) => to.serialize_str(text),
            Tree::List(items) => to.collect_seq(items),
            Tree::Map(pairs) => to.collect_map(pairs.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl From<&str> for Tree {
    fn from(text: &str) -> Tree {
        Tree::Text(text.into())
    }
}

impl Tree {
    /// A description for messages: the kind, and the value if it is short.
    #[must_use]
    pub fn found(&self) -> String {
        match self {
            Tree::Null => "nothing".into(),
            Tree::Bool(value) => format!("`{value}`"),
            Tree::Int(value) => format!("`{value}`"),
            Tree::Number(value) | Tree::Text(value) => format!("`{}`", shorten(value)),
            Tree::List(_) => "a list".into(),
            Tree::Map(_) => "a mapping".into(),
        }
    }

    /// The value of a key, if the node is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Tree> {
        let Tree::Map(pairs) = self else { return None };
        pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The text, if the node is text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Tree::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// At most 60 characters of `text`, on one line.
fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}
