//! An entry of `limits`: paths, conditions and rules.

use std::rc::Rc;

use super::context::Context;
use super::fields::Fields;
use super::mapping::Allowed;
use super::mapping::Allowed::{Either, Flag, List, Map, Text};
use super::mapping::{Mapping, mapping, optional, required};
use super::matching::{BLOCKS, EXCEPT};
use super::node::Node;
use super::response::RESPONSE;
use super::rule::RULE;
use super::rule::{self, EntryScope, fingerprint};
use super::{matching, response, values};
use diana_policy::tree::Tree;
use diana_policy::{Limit, Prefix, Response, Rule};

/// An entry.
pub static ENTRY: Mapping = mapping(
    "entry",
    "a mapping such as `{Url: /, rules: […]}`",
    &[
        // One of both is required.
        optional("Url", Either(&[URL, List("a list of paths", &URL)])),
        optional("url", Either(&[URL, List("a list of paths", &URL)])),
        required(
            "rules",
            List("a list of rules such as `{actor: device, unit: second, rpu: 10}`", &Map(&RULE)),
        ),
        optional("match", BLOCKS),
        optional("unless", BLOCKS),
        optional("except", Map(&EXCEPT)),
        optional("response", Map(&RESPONSE)),
        optional("ignore_case", Flag),
        optional("each", Flag),
    ],
);

/// A path.
const URL: Allowed = Text("a path such as `/sample`", |_| true);

const MAX_PATHS: usize = 100;

/// Reads an entry. `outer` is the response of the document.
pub fn read<'c>(node: &Node<'c>, outer: &Rc<Response>, context: &Context<'c>) -> Option<Limit> {
    let fields = Fields::read(node, &Allowed::Map(&ENTRY))?;
    let ignore_case = fields.flag("ignore_case", false);
    let each = fields.flag("each", false);
    let urls = urls(&fields, ignore_case);
    let matcher = matching::read(&fields);
    let except = matching::except(&fields, ignore_case);
    let response = response::read(&fields, outer);
    let tree = |key: &'static str| fields.get(key).map(Node::tree);
    let scope = EntryScope { response: &response, ignore_case, each, urls: urls.as_deref() };
    let rule = |node: &Node<'c>| {
        let fingerprint = fingerprint::of_content(tree("except"), node.tree());
        let rule = rule::read(node, &scope, context)?;
        Some(Rule { fingerprint, ..rule })
    };
    let rules = fields.list("rules").unwrap_or_default().iter().filter_map(rule).collect();
    let urls = urls?;
    let fingerprint = fingerprint::of_entry(&urls, each, tree("match"), tree("unless"));
    Some(Limit { urls, each, matcher, except, rules, fingerprint })
}

fn urls(fields: &Fields<'_>, ignore_case: bool) -> Option<Vec<Prefix>> {
    let node = match (fields.get("Url"), fields.get("url")) {
        (Some(_), Some(second)) => {
            second.key_problem("duplicate key: `url` and `Url` are the same".into());
            return None;
        }
        (None, Some(node)) => node,
        _ => fields.require("Url")?,
    };
    if !matches!(node.tree(), Tree::List(_)) {
        return Some(vec![values::path(node, &fields.allowed("Url"), ignore_case)?]);
    }
    let nodes = node.children();
    if !(1..=MAX_PATHS).contains(&nodes.len()) {
        node.problem(format!("found {} paths, allowed: 1 … {MAX_PATHS}", nodes.len()));
        return None;
    }
    let urls: Vec<Prefix> =
        nodes.iter().filter_map(|node| values::path(node, &URL, ignore_case)).collect();
    if urls.len() == nodes.len() {
        nodes.iter().enumerate().for_each(|(index, node)| report_covered(index, node, &urls));
    }
    Some(urls).filter(|urls| !urls.is_empty())
}

/// Reports a path that another one of the list covers, unless one of them has wildcards, which
/// earlier versions took literally.
fn report_covered(index: usize, node: &Node<'_>, urls: &[Prefix]) {
    let Some(url) = urls.get(index) else { return };
    let covers = |(at, other): &(usize, &Prefix)| {
        let is_plain = !other.is_pattern() && !url.is_pattern();
        is_plain && *at != index && other.covers(url.path()) && (*at < index || *other != url)
    };
    if let Some((_, other)) = urls.iter().enumerate().find(covers) {
        let other = String::from_utf8_lossy(other.path());
        node.problem(format!("already covered by `{other}` in this list; remove it"));
    }
}
