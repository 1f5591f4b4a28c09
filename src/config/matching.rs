//! `match` and `unless`: what must hold of a request beyond its path.

use super::addresses::{self, ADDRESSES};
use super::conditions;
use super::fields::Fields;
use super::keys;
use super::node::Node;
use diana_core::matching::header::is_name;
use diana_core::policy::{Block, Condition, Host, Match};
use diana_core::tree::Tree;

const WHAT: &str = "a mapping such as `{methods: [POST], hosts: [\"*.example.com\"]}`";
const METHODS: &str = "a list of methods such as `[GET, POST]`";
const HOSTS: &str = "a list of hosts such as `[example.com, \"*.example.com\"]`";

/// Reads `match` and `unless` of an entry.
pub fn read(entry: &Fields<'_>) -> Match {
    let mut any = entry.get("match").map(blocks).unwrap_or_default();
    // Everything meets a single block without conditions.
    any.retain(|block| *block != Block::default());
    let unless = entry.get("unless").map(blocks).unwrap_or_default();
    if let Some(node) = entry.get("unless")
        && node.tree() == &Tree::Map(Vec::new())
    {
        node.problem("found an empty mapping, which takes all requests out; leave it out".into());
    }
    Match { any, unless }
}

/// Reads a block, or a list of blocks.
fn blocks(node: &Node<'_>) -> Vec<Block> {
    let Tree::List(items) = node.tree() else { return block(node).into_iter().collect() };
    if items.is_empty() {
        node.problem(format!("found an empty list, allowed: {WHAT}, or a list of those"));
    }
    let children = node.children();
    for child in children.iter().filter(|child| *child.tree() == Tree::Map(Vec::new())) {
        child.problem("found an empty mapping, which all requests meet; leave it out".into());
    }
    children.iter().filter_map(block).collect()
}

fn block(node: &Node<'_>) -> Option<Block> {
    let fields = Fields::read(node, WHAT, keys::MATCH)?;
    let values = |key: &str, read: fn(&Node<'_>) -> Vec<Condition>| {
        fields.get(key).map(read).unwrap_or_default()
    };
    Some(Block {
        methods: items(&fields, "methods", METHODS).iter().filter_map(method).collect(),
        hosts: items(&fields, "hosts", HOSTS).iter().filter_map(host).collect(),
        addresses: items(&fields, "addresses", ADDRESSES)
            .iter()
            .filter_map(addresses::read)
            .collect(),
        values: [
            values("headers", conditions::of_headers),
            values("query", conditions::of_query),
            values("cookies", conditions::of_cookies),
            values("metadata", conditions::of_metadata),
            values("claims", conditions::of_claims),
        ]
        .concat(),
    })
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
