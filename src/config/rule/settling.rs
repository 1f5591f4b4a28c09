//! What is known of a request only when it ends: `cost.response` and `count` of a rule.

use super::ban;
use crate::fields::Fields;
use crate::node::Node;
use diana_core::algorithm::{Entry, REGISTRY};
use diana_core::matching::header::is_name;
use diana_core::policy::{
    Answered, MAX_PERMITS, NumberForm, Outcomes, Quota, ResponseSource, Settling,
};
use diana_core::tree::Tree;

const COST: &str =
    "a mapping such as `{response: {header: x-tokens-used}, reserve: 500, max: 20000}`";
/// Keys of a `cost` that the response tells.
pub const COST_KEYS: &[&str] = &["response", "reserve", "max", "missing"];
const RESPONSE: &str =
    "a mapping such as `{header: x-tokens-used}` or `{metadata: [namespace, key]}`";
/// Keys of its `response`.
pub const RESPONSE_KEYS: &[&str] = &["header", "metadata", "typed", "type"];
const HEADER: &str = "the name of a header";
const METADATA: &str = "a list of a namespace and keys";
const MISSING: &str = "max, reserve, or a whole number up to `max`";
const TYPES: &[&str] = &["number", "text"];
const COUNT: &str = "a mapping such as `{status: [401, 403, 5xx]}`";
/// Keys of `count`.
pub const COUNT_KEYS: &[&str] = &["status", "details", "failed"];
const DETAILS: &str = "a list of reasons such as `[jwt_authn_access_denied]`";
const STATUS: &str = "a status such as 401, or a class such as 5xx";

/// Reads a `cost` that the response tells. The permits that are reserved, and where it is told.
#[inline(never)]
pub fn cost(node: &Node<'_>) -> Option<(u64, Answered)> {
    let fields = Fields::read(node, COST, COST_KEYS)?;
    let most = fields.require("max", &format!("a whole number, 0 … {MAX_PERMITS}"));
    let most = most.and_then(|node| node.whole(0, MAX_PERMITS));
    let limit = most.unwrap_or(MAX_PERMITS);
    let reserve = match fields.get("reserve") {
        Some(node) => node.whole(0, limit),
        None => Some(1),
    };
    let missing = match fields.get("missing") {
        None => most,
        Some(node) => match node.tree() {
            Tree::Text(text) if text == "max" => most,
            Tree::Text(text) if text == "reserve" => reserve,
            Tree::Int(_) => node.whole(0, limit),
            _ => {
                node.reject(MISSING);
                None
            }
        },
    };
    let place = fields.get("response").and_then(place);
    let (reserve, most) = (reserve?, most?);
    let answered = Answered { place: place?, most, missing: missing? };
    Some((reserve, answered))
}

/// Where the response says it: exactly one place.
fn place(node: &Node<'_>) -> Option<ResponseSource> {
    let fields = Fields::read(node, RESPONSE, RESPONSE_KEYS)?;
    let typed = fields.flag("typed", false);
    let is_text = match fields.get("type") {
        Some(node) => node.choice(TYPES, &TYPES.join(", "))? == 1,
        None => false,
    };
    match (fields.get("header"), fields.get("metadata")) {
        (Some(node), None) => {
            for key in ["typed", "type"] {
                if let Some(node) = fields.get(key) {
                    node.key_problem("means nothing without `metadata`".into());
                }
            }
            let name = node.text(HEADER)?.to_ascii_lowercase();
            if !is_name(&name) {
                node.reject(HEADER);
                return None;
            }
            Some(ResponseSource::Header(name))
        }
        (None, Some(node)) => {
            let form = match (typed, is_text) {
                (false, false) => NumberForm::Number,
                (true, false) => NumberForm::Typed,
                (typed, true) => NumberForm::Text { typed },
            };
            let names: Vec<String> = node
                .children()
                .iter()
                .filter_map(|name| name.text(METADATA))
                .map(Into::into)
                .collect();
            let usable = |name: &String| !name.is_empty() && !name.contains('\0');
            if names.len() < 2 || !names.iter().all(usable) {
                node.reject(METADATA);
                return None;
            }
            Some(ResponseSource::Metadata { path: names, form })
        }
        found => {
            let count = usize::from(found.0.is_some()) + usize::from(found.1.is_some());
            node.problem(format!("found {count} places, allowed: exactly one of header, metadata"));
            None
        }
    }
}

/// Reads what a rule settles, whose `cost` has been read.
#[inline(never)]
pub fn read(rule: &Fields<'_>, answered: Option<(u64, Answered)>, cost: u64) -> Option<Settling> {
    let count = rule.get("count").and_then(count);
    if answered.is_none() && count.is_none() {
        return None;
    }
    let (reserve, told) = answered.map_or((cost, None), |(reserve, told)| (reserve, Some(told)));
    let bans = rule.get("ban").is_some_and(ban::is_by_outcome);
    Some(Settling { reserve, told, count, bans, is_place: false })
}

/// What an algorithm cannot settle is a problem.
pub fn blame(rule: &Fields<'_>, quota: &Quota, entry: &Entry) {
    if !(entry.can)(quota).settles {
        let key = if rule.get("count").is_some() { "count" } else { "cost" };
        let able = REGISTRY.iter().filter(|entry| (entry.can)(quota).settles);
        let able: Vec<_> =
            able.map(|entry| format!("`algo: {}` ({})", entry.short, entry.long)).collect();
        let message = format!(
            "is settled when a request ends, which `algo: {}`{} cannot do; allowed: {}",
            entry.short,
            if rule.get("algo").is_some() { "" } else { ", the default," },
            able.join(", ")
        );
        rule.blame(key, message);
    }
}

fn count(node: &Node<'_>) -> Option<Outcomes> {
    let fields = Fields::read(node, COUNT, COUNT_KEYS)?;
    let statuses = fields.get("status").map_or(Some(Vec::new()), statuses);
    let details = match fields.get("details") {
        Some(node) => node
            .list(DETAILS)
            .and_then(|items| items.iter().map(|item| Some(item.text(DETAILS)?.into())).collect()),
        None => Some(Vec::new()),
    };
    let outcomes =
        Outcomes { statuses: statuses?, details: details?, failed: fields.flag("failed", false) };
    if outcomes == Outcomes::default() {
        node.problem(format!("lists no outcome; allowed: {COUNT}"));
        return None;
    }
    Some(outcomes)
}

fn statuses(node: &Node<'_>) -> Option<Vec<(u16, u16)>> {
    let items = node.list("a list such as `[401, 5xx]`")?;
    let read: Vec<_> = items.iter().map(status).collect();
    read.into_iter().collect()
}

/// A status, or all of a class.
fn status(node: &Node<'_>) -> Option<(u16, u16)> {
    let found = match node.tree() {
        Tree::Int(status) => u16::try_from(*status).ok().map(|status| (status, status)),
        Tree::Text(text) => text
            .strip_suffix("xx")
            .and_then(|class| class.parse::<u16>().ok())
            .filter(|class| (1..=5).contains(class))
            .map(|class| (class * 100, class * 100 + 99)),
        _ => None,
    };
    let found = found.filter(|(first, _): &(u16, u16)| (100..600).contains(first));
    if found.is_none() {
        node.reject(STATUS);
    }
    found
}
