//! The JSON Schema of a configuration, made of what its readers know: their keys, the registries of algorithms and
//! sources, and the reference, whose comments say what each key means.

mod form;
mod words;

use super::rule::{ban, cost, hot, limit, quota, settling};
use super::{conditions, except, keys, operator, plans, redis, remote, response};
use diana_core::identity;
use form::FORMS;
use serde_json::{Map, Value, json};
use words::Words;

const DIALECT: &str = "http://json-schema.org/draft-07/schema#";
const TITLE: &str = "Rules for Diana, a rate-limit filter for Envoy and Istio";

/// A mapping in a configuration.
struct Mapping {
    name: &'static str,
    keys: Vec<&'static str>,
    required: &'static [&'static str],
}

/// All mappings with keys of their own.
fn mappings() -> Vec<Mapping> {
    let mapping =
        |name, keys: &[&'static str], required| Mapping { name, keys: keys.to_vec(), required };
    let mut rule = keys::RULE.to_vec();
    rule.extend(keys::algorithms());
    let source = identity::REGISTRY.iter().flat_map(|kind| [&[kind.name], kind.options].concat());
    vec![
        mapping("document", keys::DOCUMENT, &["limits"]),
        mapping("entry", keys::ENTRY, &["rules"]),
        mapping("match", keys::MATCH, &[]),
        mapping("claims", keys::CLAIMS, keys::CLAIMS),
        mapping("test", conditions::TESTS, &[]),
        mapping("rule", &rule, &["actor"]),
        mapping("source", &source.collect::<Vec<_>>(), &[]),
        mapping("except", except::KEYS, &[]),
        mapping("response", response::KEYS, &[]),
        mapping("limit", limit::KEYS, &["default", "max"]),
        mapping("plans", plans::KEYS, &["of"]),
        mapping("plan", &keys::plan(), &[]),
        mapping("reserve", plans::COST_KEYS, plans::COST_KEYS),
        mapping("cost", cost::KEYS, &["max"]),
        mapping("settled_cost", settling::COST_KEYS, &["response", "max"]),
        mapping("told", settling::RESPONSE_KEYS, &[]),
        mapping("count", settling::COUNT_KEYS, &[]),
        mapping("ban", ban::KEYS, &["after", "within", "for"]),
        mapping("quota", quota::KEYS, &["accounts"]),
        mapping("hot", hot::KEYS, &["over", "per"]),
        mapping("accepted", keys::ACCEPTED, &[]),
        mapping("redis", redis::KEYS, &["cluster"]),
        mapping("remote", remote::KEYS, &["cluster", "path"]),
        mapping("explain", operator::EXPLAIN_KEYS, operator::EXPLAIN_KEYS),
        mapping("admin", operator::ADMIN_KEYS, operator::ADMIN_KEYS),
        mapping("variable", remote::VARIABLE, &["env"]),
    ]
}

/// The schema.
#[must_use]
pub fn schema() -> Value {
    let words = Words::read();
    let all = mappings();
    let definitions = all.iter().map(|mapping| (mapping.name.into(), definition(mapping, &words)));
    // The shorter forms: one block, and a list of blocks.
    let (document, entry) = (reference("document"), reference("entry"));
    json!({
        "$schema": DIALECT,
        "title": TITLE,
        "anyOf": [document, entry, {"type": "array", "items": entry}],
        "definitions": definitions.collect::<Map<_, _>>(),
    })
}

fn definition(mapping: &Mapping, words: &Words) -> Value {
    let Mapping { name, keys, required } = mapping;
    let property = |key: &&'static str| {
        let form = FORMS.iter().find(|(of, known, _)| of == name && known == key);
        let schema = match form {
            Some((.., form)) => Some(form.schema()),
            None => form::of_algorithm(name, key),
        };
        // Without a form, any value is allowed.
        let mut schema = schema.unwrap_or_else(|| json!({}));
        if let (Some(meaning), Some(schema)) = (words.of(name, key), schema.as_object_mut()) {
            schema.insert("description".into(), meaning.into());
        }
        (key.to_string(), schema)
    };
    let properties: Map<_, _> = keys.iter().map(property).collect();
    match required {
        [] => json!({"type": "object", "additionalProperties": false, "properties": properties}),
        _ => json!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
            "required": required,
        }),
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/definitions/{name}")})
}
