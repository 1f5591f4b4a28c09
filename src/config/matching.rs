//! `match`: what must hold of a request beyond its path.

use super::fields::Fields;
use super::node::Node;
use super::{condition, keys};
use diana_core::policy::{Host, Match};
use diana_core::route::header::is_name;
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
        headers: fields.get("headers").map(condition::read).unwrap_or_default(),
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
