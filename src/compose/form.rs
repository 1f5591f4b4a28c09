//! A form of a policy: its entries in a document, if the platform allows them.

use std::fmt;

use diana_config::problem::{Problem, Problems};
use diana_config::resource::{self, PolicyTargetRef};
use diana_config::{ConfigSource, Reader};
use diana_policy::tree::Tree;

use crate::objects::{Platform, PolicyObject};
use crate::rights::{FORBIDDEN, Rights};
use crate::text;

/// Problems in a message.
const MOST_PROBLEMS: usize = 5;

/// Why a policy is not accepted, in its condition `Accepted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyReason {
    /// It cannot be read.
    Invalid,
    /// A route that it names does not exist, or is attached to no gateway of the platform.
    TargetNotFound,
    /// The platform does not allow it.
    NotAllowed,
    /// An older policy replaces the same rule on the same route.
    Conflicted,
}

impl fmt::Display for PolicyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A reason, the finding and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRefusal {
    /// The reason.
    pub reason: PolicyReason,
    /// The message of the condition.
    pub message: String,
}

impl PolicyRefusal {
    /// The platform does not allow something.
    pub(crate) fn not_allowed(message: String) -> PolicyRefusal {
        PolicyRefusal { reason: PolicyReason::NotAllowed, message }
    }

    /// The resource has problems. Its keys are named as it has them.
    fn invalid(problems: &Problems, spec: &Tree) -> PolicyRefusal {
        let lines = problems.list().iter().take(MOST_PROBLEMS).map(|problem| {
            let dot = if problem.path.is_empty() { "" } else { "." };
            let path = resource::path(spec, &problem.path);
            format!("spec{dot}{}", Problem { path, ..problem.clone() })
        });
        let mut message = lines.collect::<Vec<_>>().join("\n");
        let more = problems.list().len().saturating_sub(MOST_PROBLEMS) + problems.more();
        if more > 0 {
            message.push_str(&format!("\nand {more} more"));
        }
        PolicyRefusal { reason: PolicyReason::Invalid, message }
    }
}

/// A form of a policy.
pub struct PolicyForm {
    pub targets: Vec<PolicyTargetRef>,
    /// Its entries in a document. They are not restricted to the targets.
    pub entries: Vec<Tree>,
    /// The number of its rules.
    pub rules: usize,
    /// The rules of the platform that it replaces.
    pub replaces: Vec<String>,
}

/// Reads a form of a policy.
pub fn read(
    platform: &Platform,
    policy: &PolicyObject,
    spec: &Tree,
) -> Result<PolicyForm, PolicyRefusal> {
    let document = resource::document(&ConfigSource::of(spec.clone()));
    let document = document.map_err(|problems| PolicyRefusal::invalid(&problems, spec))?;
    check_keys(spec, &platform.rights)?;
    let limits = document.source.documents().first().and_then(|tree| tree.get("limits"));
    let entries: Vec<Tree> =
        limits.map_or(&[][..], items).iter().map(|entry| owned(entry, policy)).collect();
    // With the platform's rules only if the policy names some: they may be many.
    let named = if names_rules(&entries) { platform.entries() } else { &[] };
    let all: Vec<Tree> = entries.iter().chain(named).cloned().collect();
    let mut pairs: Vec<_> = text::others(&platform.document).cloned().collect();
    pairs.push(("limits".into(), Tree::List(all)));
    let read = Reader::remote(platform.own.clone()).read(&ConfigSource::of(Tree::Map(pairs)));
    let (read, _) = read.map_err(|problems| PolicyRefusal::invalid(&problems, spec))?;
    let rules: Vec<_> =
        read.limits.iter().take(entries.len()).flat_map(|limit| &limit.rules).collect();
    for rule in &rules {
        let name = diana_policy::names::for_clients(&rule.name);
        if !platform.rights.scopes.contains(&rule.scope) {
            let scopes: Vec<_> = platform.rights.scopes.iter().map(|scope| scope.name()).collect();
            return Err(PolicyRefusal::not_allowed(format!(
                "the rule `{name}` has `scope: {}`, allowed for policies: {}",
                rule.scope.name(),
                scopes.join(", ")
            )));
        }
        if let Some(other) = rule.replaces.iter().find(|it| !platform.rights.defaults.contains(*it))
        {
            let defaults: Vec<_> = platform.rights.defaults.iter().map(String::as_str).collect();
            let defaults = if defaults.is_empty() { "none".into() } else { defaults.join(", ") };
            return Err(PolicyRefusal::not_allowed(format!(
                "the rule `{name}` replaces `{other}`, which is no default of the platform, allowed: {defaults}"
            )));
        }
    }
    let replaces = rules.iter().flat_map(|rule| rule.replaces.iter().cloned()).collect();
    Ok(PolicyForm { targets: document.targets, rules: rules.len(), entries, replaces })
}

/// Returns true if a rule of these entries names other rules.
fn names_rules(entries: &[Tree]) -> bool {
    rules(entries).any(|rule| rule.get("replaces").is_some())
}

/// The rules of these entries.
pub fn rules(entries: &[Tree]) -> impl Iterator<Item = &Tree> {
    entries.iter().filter_map(|entry| entry.get("rules")).flat_map(items)
}

/// An entry. The names of its rules begin with their owner.
fn owned(entry: &Tree, policy: &PolicyObject) -> Tree {
    let name = |name: &Tree| match name {
        Tree::Text(name) => Tree::Text(format!("{}/{}/{name}", policy.namespace, policy.name)),
        other => other.clone(),
    };
    with_rules(entry, &|rule| with(rule, "name", &name))
}

/// An entry with tables for `keys` callers in each of its rules.
pub fn with_keys(entry: &Tree, keys: usize) -> Tree {
    with_rules(entry, &|rule| {
        let Tree::Map(pairs) = rule else { return rule.clone() };
        let keys = ("keys".into(), Tree::Int(keys as i128));
        Tree::Map(pairs.iter().cloned().chain([keys]).collect())
    })
}

/// An entry with changed rules.
fn with_rules(entry: &Tree, change: &dyn Fn(&Tree) -> Tree) -> Tree {
    with(entry, "rules", &|rules| Tree::List(items(rules).iter().map(change).collect()))
}

/// A mapping with another value of a key that it has.
fn with(tree: &Tree, key: &str, change: &dyn Fn(&Tree) -> Tree) -> Tree {
    let Tree::Map(pairs) = tree else { return tree.clone() };
    let pair = |(name, value): &(String, Tree)| {
        (name.clone(), if name == key { change(value) } else { value.clone() })
    };
    Tree::Map(pairs.iter().map(pair).collect())
}

/// Refuses keys of entries and rules that the platform does not allow.
fn check_keys(spec: &Tree, rights: &Rights) -> Result<(), PolicyRefusal> {
    let entries = spec.get("limits").map_or(&[][..], items);
    for mapping in entries.iter().chain(rules(entries)) {
        let Tree::Map(pairs) = mapping else { continue };
        for (key, _) in pairs {
            if FORBIDDEN.contains(&key.as_str()) {
                return Err(PolicyRefusal::not_allowed(format!(
                    "found `{key}`, which changes requests of other routes, so that only the platform can use it"
                )));
            }
            if !rights.keys.contains(key) {
                let allowed: Vec<_> = rights.keys.iter().map(String::as_str).collect();
                return Err(PolicyRefusal::not_allowed(format!(
                    "found `{key}`, which the platform does not allow for policies; allowed: {}",
                    allowed.join(", ")
                )));
            }
        }
    }
    Ok(())
}

/// The items of a list.
pub fn items(tree: &Tree) -> &[Tree] {
    match tree {
        Tree::List(items) => items,
        _ => &[],
    }
}
