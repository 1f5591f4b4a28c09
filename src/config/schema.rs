//! The JSON Schema of a configuration, generated from the declarations of mappings and the comments
//! of the reference.

pub(super) mod words;

use super::document::DOCUMENT;
use super::entry::ENTRY;
use super::mapping::{Allowed, Mapping, MappingKey};
use diana_policy::time::DURATIONS;
use serde_json::{Map, Value, json};
use words::Words;

/// The pattern of a size.
pub(super) const SIZE: &str = "^[0-9]+(KiB|MiB)$";

const DIALECT: &str = "http://json-schema.org/draft-07/schema#";
const TITLE: &str = "Rules for Diana, a rate-limit filter for Envoy and Istio";

/// The schema.
#[must_use]
pub fn schema() -> Value {
    let words = Words::read();
    let mut definitions = Map::new();
    define(&DOCUMENT, &words, &mut definitions);
    // Also allows the shorter forms: one block, and a list of blocks.
    let (document, entry) = (reference(&DOCUMENT), reference(&ENTRY));
    json!({
        "$schema": DIALECT,
        "title": TITLE,
        "anyOf": [document, entry, {"type": "array", "items": entry}],
        "definitions": definitions,
    })
}

/// Adds a mapping and the mappings that it contains.
fn define(mapping: &Mapping, words: &Words, definitions: &mut Map<String, Value>) {
    if definitions.contains_key(mapping.name) {
        return;
    }
    // The placeholder ends the recursion of a mapping that contains itself.
    definitions.insert(mapping.name.into(), Value::Null);
    let keys = mapping.all();
    let property = |key: &MappingKey| {
        let mut schema = of(&key.allowed);
        let meaning = words.of(mapping.name, key.name);
        if let (Some(meaning), Some(schema)) = (meaning, schema.as_object_mut()) {
            schema.insert("description".into(), meaning.into());
        }
        (key.name.into(), schema)
    };
    let properties: Map<_, _> = keys.iter().map(property).collect();
    let required = keys.iter().filter(|key| key.is_required).map(|key| key.name);
    let required: Vec<_> = required.collect();
    let mut schema = json!({
        "type": "object",
        "description": mapping.what,
        "additionalProperties": false,
        "properties": properties,
    });
    if let (false, Some(schema)) = (required.is_empty(), schema.as_object_mut()) {
        schema.insert("required".into(), required.into());
    }
    definitions.insert(mapping.name.into(), schema);
    for mapping in keys.iter().flat_map(|key| mappings(&key.allowed)) {
        define(mapping, words, definitions);
    }
}

/// The mappings that a value may be, or contain.
fn mappings(allowed: &Allowed) -> Vec<&'static Mapping> {
    match allowed {
        Allowed::Map(mapping) => vec![mapping],
        Allowed::List(_, one) | Allowed::Named(_, one) => mappings(one),
        Allowed::Either(several) => several.iter().flat_map(mappings).collect(),
        _ => Vec::new(),
    }
}

/// The schema of a value.
fn of(allowed: &Allowed) -> Value {
    match allowed {
        Allowed::Any => json!({}),
        Allowed::Text(..) => json!({"type": "string"}),
        Allowed::Flag => json!({"type": "boolean"}),
        Allowed::Number => json!({"type": "number"}),
        Allowed::Whole(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Allowed::Fraction(_, min, max) => {
            let [min, max] = [min, max].map(|millionths| *millionths as f64 / 1e6);
            json!({"type": "number", "minimum": min, "maximum": max})
        }
        Allowed::Duration(0, _) => json!({"anyOf": [duration("|0"), {"const": 0}]}),
        Allowed::Duration(..) => duration(""),
        Allowed::Size(_) => json!({"type": "string", "pattern": SIZE}),
        Allowed::Choice(words) => json!({"enum": words()}),
        // Draft 7 ignores the description next to a `$ref`.
        Allowed::Map(mapping) => json!({"allOf": [reference(mapping)]}),
        Allowed::List(_, item) => json!({"type": "array", "items": of(item)}),
        Allowed::Named(_, value) => json!({"type": "object", "additionalProperties": of(value)}),
        Allowed::Either(several) => {
            json!({"anyOf": several.iter().map(of).collect::<Vec<_>>()})
        }
    }
}

fn duration(more: &str) -> Value {
    json!({"type": "string", "pattern": duration_pattern(more)})
}

/// The pattern of a duration in text, or `more`.
pub(super) fn duration_pattern(more: &str) -> String {
    let units = DURATIONS.map(|(name, _)| name).join("|");
    format!("^([0-9]+({units}){more})$")
}

fn reference(mapping: &Mapping) -> Value {
    json!({"$ref": format!("#/definitions/{}", mapping.name)})
}
