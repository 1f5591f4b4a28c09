//! An entry of `limits`: a path, what else must hold, and the rules.

use std::rc::Rc;

use super::context::Context;
use super::fields::Fields;
use super::node::Node;
use super::rule::{self, fingerprint};
use super::{except, keys, matching, response};
use diana_core::policy::{Limit, Prefix, Response};
use diana_core::tree::Tree;

const WHAT: &str = "a mapping such as `{Url: /, rules: […]}`";
const URL: &str = "a path such as `/sample`, or a list of paths";
const PATH: &str = "a path such as `/sample`";
const MAX_PATHS: usize = 100;
const RULES: &str = "a list of rules such as `{actor: device, unit: second, rpu: 10}`";

/// Reads an entry; `outer` is the response of the document.
pub fn read(node: &Node<'_>, outer: &Rc<Response>, context: &Context<'_>) -> Option<Limit> {
    let fields = Fields::read(node, WHAT, keys::ENTRY)?;
    let ignore_case = fields.flag("ignore_case", false);
    let urls = urls(&fields, ignore_case);
    let matcher = matching::read(&fields);
    let except = except::read(&fields, ignore_case);
    let response = response::read(&fields, outer);
    let rules = fields.require("rules", RULES).and_then(|rules| rules.list(RULES));
    let rules = rules.unwrap_or_default();
    let rules =
        rules.iter().filter_map(|node| rule::read(node, &response, ignore_case, context)).collect();
    let urls = urls?;
    let tree = |key: &str| fields.get(key).map(Node::tree);
    let fingerprint = fingerprint::of_entry(&urls, tree("match"), tree("unless"));
    Some(Limit { urls, matcher, except, rules, fingerprint })
}

fn urls(fields: &Fields<'_>, ignore_case: bool) -> Option<Vec<Prefix>> {
    let node = match (fields.get("Url"), fields.get("url")) {
        (Some(_), Some(second)) => {
            second.key_problem("duplicate key: `url` and `Url` are the same".into());
            return None;
        }
        (None, Some(node)) => node,
        _ => fields.require("Url", URL)?,
    };
    if !matches!(node.tree(), Tree::List(_)) {
        return Some(vec![url(node, URL, ignore_case)?]);
    }
    let nodes = node.children();
    if !(1..=MAX_PATHS).contains(&nodes.len()) {
        node.problem(format!("found {} paths, allowed: 1 … {MAX_PATHS}", nodes.len()));
        return None;
    }
    let urls: Vec<Prefix> = nodes.iter().filter_map(|node| url(node, PATH, ignore_case)).collect();
    if urls.len() == nodes.len() {
        nodes.iter().enumerate().for_each(|(place, node)| below_another(place, node, &urls));
    }
    Some(urls).filter(|urls| !urls.is_empty())
}

/// Reports a path that another one of the list covers.
fn below_another(place: usize, node: &Node<'_>, urls: &[Prefix]) {
    let Some(url) = urls.get(place) else { return };
    let covers = |(at, other): &(usize, &Prefix)| {
        *at != place && other.covers(url.path()) && (*at < place || *other != url)
    };
    if let Some((_, other)) = urls.iter().enumerate().find(covers) {
        let other = String::from_utf8_lossy(other.path());
        node.problem(format!(
            "is covered by `{other}` already, which is in the list; leave it out"
        ));
    }
}

fn url(node: &Node<'_>, allowed: &str, ignore_case: bool) -> Option<Prefix> {
    let text = node.text(allowed)?;
    match Prefix::parse(text, ignore_case) {
        Ok(prefix) => Some(prefix),
        Err(why) => {
            node.problem(format!("{} {why}", node.tree().found()));
            None
        }
    }
}
