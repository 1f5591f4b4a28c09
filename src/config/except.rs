//! `except`: requests that are not judged.

use super::addresses::{self, ADDRESSES};
use super::conditions;
use super::fields::Fields;
use super::node::Node;
use diana_core::policy::{Except, Prefix};

const WHAT: &str = "a mapping such as `{addresses: [10.0.0.0/8], paths: [/healthz]}`";
/// Its keys.
pub const KEYS: &[&str] = &["addresses", "paths", "headers"];
const PATHS: &str = "a list of paths such as `[/healthz]`";

/// Reads `except` of the document, of an entry or of a rule.
pub fn read(outer: &Fields<'_>, ignore_case: bool) -> Except {
    let fields = outer.get("except").and_then(|node| Fields::read(node, WHAT, KEYS));
    let Some(fields) = fields else { return Except::default() };
    let items = |key: &str, allowed: &str| {
        fields.get(key).and_then(|node| node.list(allowed)).unwrap_or_default()
    };
    Except {
        addresses: items("addresses", ADDRESSES).iter().filter_map(addresses::read).collect(),
        paths: items("paths", PATHS).iter().filter_map(|node| path(node, ignore_case)).collect(),
        headers: fields.get("headers").map(conditions::of_headers).unwrap_or_default(),
    }
}

fn path(node: &Node<'_>, ignore_case: bool) -> Option<Prefix> {
    let text = node.text("a path such as `/healthz`")?;
    Prefix::parse(text, ignore_case)
        .map_err(|why| node.problem(format!("{} {why}", node.tree().found())))
        .ok()
}
