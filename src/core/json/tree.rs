//! JSON that is written: any document.

use super::object::{JsonObject, list, quoted};
use crate::tree::Tree;

/// A document as JSON. A number that JSON cannot say is text.
#[must_use]
pub fn json(tree: &Tree) -> String {
    match tree {
        Tree::Null => "null".into(),
        Tree::Bool(value) => value.to_string(),
        Tree::Int(value) => value.to_string(),
        Tree::Number(text) => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => number.to_string(),
            _ => quoted(text),
        },
        Tree::Text(text) => quoted(text),
        Tree::List(items) => list(items.iter().map(json)),
        Tree::Map(pairs) => {
            let add =
                |object: JsonObject, (key, value): &(String, Tree)| object.json(key, &json(value));
            pairs.iter().fold(JsonObject::default(), add).finish()
        }
    }
}
