//! Conditions on headers, as `match` and `except` have them.

use std::collections::BTreeMap;

use super::node::Node;
use diana_core::policy::{Condition, Test};
use diana_core::route::header::is_name;
use diana_core::tree::Tree;

const WHAT: &str = "a mapping from names to conditions, such as `{x-app: {prefix: mobile}}`";
const TEST: &str = "a value, or one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, \
                    `{present: true}`, `{not: …}`";
const TESTS: &[&str] = &["exact", "prefix", "suffix", "present", "not"];

/// Reads a mapping from header names to tests.
pub fn read(node: &Node<'_>) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let mut names = BTreeMap::new();
    for (key, value) in node.pairs(WHAT).unwrap_or_default() {
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
