//! An entry of `limits`: a path, what else must hold, and the rules.

use std::rc::Rc;

use super::context::Context;
use super::fields::Fields;
use super::node::Node;
use super::rule::{self, fingerprint};
use super::{except, keys, matching, response};
use diana_core::policy::{Limit, Prefix, Response};

const WHAT: &str = "a mapping such as `{Url: /, rules: […]}`";
const URL: &str = "a path such as `/sample`";
const RULES: &str = "a list of rules such as `{actor: device, unit: second, rpu: 10}`";

/// Reads an entry; `outer` is the response of the document.
pub fn read(node: &Node<'_>, outer: &Rc<Response>, context: &Context<'_>) -> Option<Limit> {
    let fields = Fields::read(node, WHAT, keys::ENTRY)?;
    let ignore_case = fields.flag("ignore_case", false);
    let url = url(&fields, ignore_case);
    let matcher = matching::read(&fields);
    let except = except::read(&fields, ignore_case);
    let response = response::read(&fields, outer);
    let rules = fields.require("rules", RULES).and_then(|rules| rules.list(RULES));
    let rules = rules.unwrap_or_default();
    let rules =
        rules.iter().filter_map(|node| rule::read(node, &response, ignore_case, context)).collect();
    let url = url?;
    let fingerprint = fingerprint::of_entry(&url, fields.get("match").map(Node::tree));
    Some(Limit { url, matcher, except, rules, fingerprint })
}

fn url(fields: &Fields<'_>, ignore_case: bool) -> Option<Prefix> {
    let node = match (fields.get("Url"), fields.get("url")) {
        (Some(_), Some(second)) => {
            second.key_problem("duplicate key: `url` and `Url` are the same".into());
            return None;
        }
        (None, Some(node)) => node,
        _ => fields.require("Url", URL)?,
    };
    let text = node.text(URL)?;
    match Prefix::parse(text, ignore_case) {
        Ok(prefix) => Some(prefix),
        Err(why) => {
            node.problem(format!("{} {why}", node.tree().found()));
            None
        }
    }
}
