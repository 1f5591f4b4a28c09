//! The JSON Schema of a configuration, made of what its readers know: their keys, the registries of algorithms and
//! sources, and the reference, whose comments say what each key means.

mod form;
mod words;

use super::rule::{ban, cost, hot, limit, quota, settling};
use super::{conditions, except, keys, operator, plans, redis, remote, response};
use diana_core::identity;
use diana_core::tree::Tree;
use form::FORMS;
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

/// The schema, as a tree to be written as JSON.
#[must_use]
pub fn schema() -> Tree {
    let words = Words::read();
    let all = mappings();
    let definitions = all.iter().map(|mapping| (mapping.name.into(), definition(mapping, &words)));
    // The shorter forms: one block, and a list of blocks.
    let forms = ["document", "entry"].map(reference).to_vec();
    let blocks = object(&[("type", "array".into()), ("items", reference("entry"))]);
    Tree::Map(vec![
        ("$schema".into(), DIALECT.into()),
        ("title".into(), TITLE.into()),
        ("anyOf".into(), Tree::List([forms, vec![blocks]].concat())),
        ("definitions".into(), Tree::Map(definitions.collect())),
    ])
}

fn definition(mapping: &Mapping, words: &Words) -> Tree {
    let Mapping { name, keys, required } = mapping;
    let property = |key: &&'static str| {
        let form = FORMS.iter().find(|(of, known, _)| of == name && known == key);
        let mut schema = match form {
            Some((.., form)) => form.schema(),
            // Of an algorithm; or nobody has said yet what it may be, and anything goes.
            None => form::of_algorithm(name, key).unwrap_or_default(),
        };
        if let Some(meaning) = words.of(name, key) {
            schema.push(("description".into(), meaning.into()));
        }
        (key.to_string(), Tree::Map(schema))
    };
    let mut pairs = vec![
        ("type".to_string(), "object".into()),
        ("additionalProperties".into(), Tree::Bool(false)),
        ("properties".into(), Tree::Map(keys.iter().map(property).collect())),
    ];
    if !required.is_empty() {
        let required = required.iter().map(|key| Tree::from(*key));
        pairs.push(("required".into(), Tree::List(required.collect())));
    }
    Tree::Map(pairs)
}

fn reference(name: &str) -> Tree {
    object(&[("$ref", Tree::Text(format!("#/definitions/{name}")))])
}

fn object(pairs: &[(&str, Tree)]) -> Tree {
    Tree::Map(pairs.iter().map(|(key, value)| (key.to_string(), value.clone())).collect())
}
