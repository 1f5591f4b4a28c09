//! `match`: what must hold of a request beyond its path; and the conditions on headers, which `except` has, too.

use std::collections::BTreeMap;

use super::fields::Fields;
use super::keys;
use super::node::Node;
use diana_core::matching::header::is_name;
use diana_core::policy::{Condition, Host, Match, Test};
use diana_core::tree::Tree;

const WHAT: &str = "a mapping such as `{methods: [POST], hosts: [\"*.example.com\"]}`";
const METHODS: &str = "a list of methods such as `[GET, POST]`";
const HOSTS: &str = "a list of hosts such as `[example.com, \"*.example.com\"]`";

/// Reads `match` of an entry.
pub fn read(entry: &Fields<'_>) -> Match {
    let fields = entry.get("match").and_then(|node| Fields::read(node, WHAT, keys::MATCH));
    let Some(fields) = fields else { return Match::default() };
    Match {
        methods: items(&fields, "methods", METHODS).iter().filter_map(method).collect(),
        hosts: items(&fields, "hosts", HOSTS).iter().filter_map(host).collect(),
        headers: fields.get("headers").map(conditions).unwrap_or_default(),
    }
}

/// The items of a list that must have some: of an empty one nobody knows whether it means all or
/// none.
fn items<'a>(fields: &Fields<'a>, key: &str, allowed: &str) -> Vec<Node<'a>> {
    let Some(node) = fields.get(key) else { return Vec::new() };
    let items = node.list(allowed).unwrap_or_default();
    if items.is_empty() && *node.tree() == Tree::List(Vec::new()) {
        node.problem(format!("found an empty list, allowed: {allowed}; without `{key}` all match"));
    }
    items
}

fn method(node: &Node<'_>) -> Option<String> {
    let allowed = "a method in upper case, such as POST";
    let text = node.text(allowed)?;
    let upper = text.to_ascii_uppercase();
    if !is_name(text) {
        node.reject(allowed);
    } else if upper != text {
        node.reject(&format!("{allowed}; did you mean `{upper}`?"));
    } else {
        return Some(upper);
    }
    None
}

fn host(node: &Node<'_>) -> Option<Host> {
    let text = node.text("a host name, or `*.` and a host name")?;
    Host::parse(text)
        .map_err(|why| node.problem(format!("found {}, {why}", node.tree().found())))
        .ok()
}

const CONDITIONS: &str = "a mapping from names to conditions, such as `{x-app: {prefix: mobile}}`";
const TEST: &str = "a value, or one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, \
                    `{present: true}`, `{not: …}`";
/// Conditions on a header.
pub const TESTS: &[&str] = &["exact", "prefix", "suffix", "present", "not"];

/// Reads a mapping from header names to tests.
pub fn conditions(node: &Node<'_>) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let mut names = BTreeMap::new();
    for (key, value) in node.pairs(CONDITIONS).unwrap_or_default() {
        let name = key.to_ascii_lowercase();
        if name == "host" || name.starts_with(':') {
            let instead =
                "no header but a part of the request: see `Url`, `paths`, `methods`, `hosts`";
            value.key_problem(instead.into());
        } else if !is_name(&name) {
            value.key_problem("not a header's name".into());
        } else if names.insert(name.clone(), 0).is_some() && name != key {
            value.key_problem(format!("duplicate key: the same header as `{name}`"));
        }
        if let Some(test) = test(&value) {
            conditions.push(Condition { name, test });
        }
    }
    conditions
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
        [("present", value)] => value.boolean().map(Test::Present),
        [("not", value)] => text(value, true).map(Test::Not),
        [_] => None,
        _ => {
            node.problem(format!("found {} conditions, allowed: {TEST}", pairs.len()));
            None
        }
    }
}

/// Text that a header can hold.
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
