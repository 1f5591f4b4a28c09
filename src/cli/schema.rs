//! `diana schema`: what editors know of rules.

use std::io::{self, Write};

use diana_core::tree::Tree;
use serde_json::Value;

use crate::exit::Exit;

/// Writes the JSON Schema of a configuration.
pub fn run(out: &mut dyn Write) -> io::Result<Exit> {
    writeln!(out, "{:#}", value(&diana_config::schema()))?;
    Ok(Exit::Fine)
}

fn value(tree: &Tree) -> Value {
    match tree {
        Tree::Null => Value::Null,
        Tree::Bool(flag) => (*flag).into(),
        Tree::Int(number) => i64::try_from(*number).map_or(Value::Null, Value::from),
        Tree::Number(text) | Tree::Text(text) => text.as_str().into(),
        Tree::List(items) => items.iter().map(value).collect(),
        Tree::Map(pairs) => pairs.iter().map(|(key, tree)| (key.clone(), value(tree))).collect(),
    }
}
