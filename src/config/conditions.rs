//! Conditions on values: of headers, query parameters, cookies, metadata and claims.

use std::borrow::Cow;

use super::fields::{Fields, Names};
use super::keys;
use super::node::Node;
use diana_core::matching::header;
use diana_core::policy::{Condition, Field, Test};
use diana_core::port::Property;
use diana_core::spelling::cookie;
use diana_core::tree::Tree;

const CONDITIONS: &str = "a mapping from names to conditions, such as `{x-app: {prefix: mobile}}`";
const NAMESPACES: &str = "a mapping from namespaces to mappings from keys to conditions, such as \
                          `{com.example.tenancy: {plan: gold}}`";
const CLAIMS: &str = "a mapping such as `{payload: jwt, values: {plan: gold}}`, where `payload` is the \
                      `payload_in_metadata` of jwt_authn";
const TEST: &str = "a value, or one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, `{contains: …}`, \
                    `{in: […]}`, `{present: true}`, `{not: …}`";
/// Conditions on a value.
pub const TESTS: &[&str] = &["exact", "prefix", "suffix", "contains", "in", "present", "not"];
const TEXTS: &str = "a list of values such as `[gold, silver]`";

/// Reads a mapping from header names to tests.
pub fn of_headers(node: &Node<'_>) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let mut names = Names::new();
    for (key, value) in node.pairs(CONDITIONS).unwrap_or_default() {
        let name = key.to_ascii_lowercase();
        if name == "host" || name.starts_with(':') {
            let instead =
                "no header but a part of the request: see `Url`, `paths`, `methods`, `hosts`";
            value.key_problem(instead.into());
        } else if !header::is_name(&name) {
            value.key_problem("not a header's name".into());
        } else if names.insert(Cow::Owned(name.clone()), 0).is_some() && name != key {
            value.key_problem(format!("duplicate key: the same header as `{name}`"));
        }
        conditions.extend(condition(Field::Header(name), &value));
    }
    conditions
}

/// Reads a mapping from names of query parameters to tests.
pub fn of_query(node: &Node<'_>) -> Vec<Condition> {
    named(node, |name| (!name.is_empty()).then(|| Field::Query(name.into())), "a parameter's name")
}

/// Reads a mapping from names of cookies to tests.
pub fn of_cookies(node: &Node<'_>) -> Vec<Condition> {
    let field = |name: &str| cookie::is_name(name).then(|| Field::Cookie(name.into()));
    named(node, field, "a cookie's name, without `=`, `;` or spaces")
}

/// Reads a mapping from namespaces of metadata.
pub fn of_metadata(node: &Node<'_>) -> Vec<Condition> {
    let namespaces = node.pairs(NAMESPACES).unwrap_or_default();
    let of_one = |(namespace, keys): (&str, Node<'_>)| {
        if !is_key(namespace) {
            keys.key_problem("found no name, allowed: a namespace".into());
        }
        named(&keys, |key| property(&[namespace, key]), "a key of metadata")
    };
    namespaces.into_iter().flat_map(of_one).collect()
}

/// Reads `claims` of a token that was verified.
pub fn of_claims(node: &Node<'_>) -> Vec<Condition> {
    let Some(fields) = Fields::read(node, CLAIMS, keys::CLAIMS) else {
        return Vec::new();
    };
    let payload = fields.require("payload", CLAIMS).and_then(|node| node.text(CLAIMS));
    let Some(values) = fields.require("values", CLAIMS) else { return Vec::new() };
    let payload = payload.unwrap_or("?");
    if !is_key(payload) {
        fields.blame("payload", format!("found no name, allowed: {CLAIMS}"));
    }
    let path = |claim: &str| property(&["envoy.filters.http.jwt_authn", payload, claim]);
    named(values, path, "a claim's name")
}

fn is_key(name: &str) -> bool {
    !name.is_empty() && !name.contains('\0')
}

/// A value in dynamic metadata, by a namespace and keys.
fn property(path: &[&str]) -> Option<Field> {
    let path = [&["metadata", "filter_metadata"], path].concat();
    path.iter().all(|key| is_key(key)).then(|| Field::Property(Property::new(&path)))
}

/// Reads a mapping from names, which `field` knows to be of some kind, to tests.
fn named(node: &Node<'_>, field: impl Fn(&str) -> Option<Field>, kind: &str) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for (name, value) in node.pairs(CONDITIONS).unwrap_or_default() {
        match field(name) {
            Some(field) => conditions.extend(condition(field, &value)),
            None => value.key_problem(format!("not a name, allowed: {kind}")),
        }
    }
    conditions
}

fn condition(field: Field, node: &Node<'_>) -> Option<Condition> {
    test(node).map(|test| Condition { field, test })
}

fn test(node: &Node<'_>) -> Option<Test> {
    if node.tree().text().is_some() {
        return text(node, true).map(Test::Exact);
    }
    let pairs = match node.tree() {
        Tree::Map(_) => node.pairs(TEST)?,
        _ => {
            node.free_text(TEST)?;
            return None;
        }
    };
    for (key, value) in &pairs {
        if !TESTS.contains(key) {
            value.unknown_key(key, TESTS);
        }
    }
    match pairs.as_slice() {
        [("exact", value)] => text(value, true).map(Test::Exact),
        [("prefix", value)] => text(value, false).map(Test::Prefix),
        [("suffix", value)] => text(value, false).map(Test::Suffix),
        [("contains", value)] => text(value, false).map(Test::Contains),
        [("in", value)] => texts(value).map(Test::In),
        [("present", value)] => value.boolean().map(Test::Present),
        [("not", value)] => text(value, true).map(Test::Not),
        [_] => None,
        _ => {
            node.problem(format!("found {} conditions, allowed: {TEST}", pairs.len()));
            None
        }
    }
}

/// Some texts, sorted.
fn texts(node: &Node<'_>) -> Option<Vec<String>> {
    let items = node.list(TEXTS)?;
    if items.is_empty() {
        node.problem(format!("found an empty list, which nothing is in; allowed: {TEXTS}"));
    }
    let mut texts = Vec::new();
    for item in &items {
        let text = text(item, true)?;
        match texts.binary_search(&text) {
            Ok(_) => item.problem(format!("{} is in the list already", item.tree().found())),
            Err(place) => texts.insert(place, text),
        }
    }
    Some(texts)
}

/// Text that a header can hold, and anything else that is compared.
fn text(node: &Node<'_>, may_be_empty: bool) -> Option<String> {
    let allowed = "text on one line";
    let text = node.free_text(allowed)?;
    if text.is_empty() && !may_be_empty {
        node.reject("some text; `{present: true}` holds for any value");
    } else if text.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
        node.reject(allowed);
    } else {
        return Some(text.into());
    }
    None
}
