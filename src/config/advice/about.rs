//! A piece of advice, and what the kinds of advice look at.

use std::collections::BTreeSet;

use crate::actors::ActorSources;
use crate::fields::Fields;
use crate::node::Node;
use diana_policy::{IdentitySource, Limit, Policy, Rule, names};
use diana_request::identity;

/// A setting that is allowed and probably unintended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The kind of the setting, by which operators accept the advice.
    pub id: &'static str,
    /// The setting, and how to fix it.
    pub message: String,
    /// The names of the rules concerned. Empty if it does not concern rules.
    pub rules: Vec<String>,
    /// Whether the filter applies the document differently from its text, so that `diana check`
    /// fails.
    pub is_mistake: bool,
}

impl Advice {
    /// Advice that does not concern rules, and that the filter applies as written.
    pub fn new(id: &'static str, message: impl Into<String>) -> Advice {
        Advice { id, message: message.into(), rules: Vec::new(), is_mistake: false }
    }

    /// Formats a line for the log.
    #[must_use]
    pub fn line(&self) -> String {
        let Advice { message, rules, .. } = self;
        if rules.is_empty() {
            return message.clone();
        }
        format!("{message}: {}", names::listed(rules))
    }
}

/// A kind of advice.
pub struct Row {
    /// The identifier, by which operators accept the advice.
    pub id: &'static str,
    /// Whether the filter applies such a document differently from its text.
    pub is_mistake: bool,
    /// Finds what it concerns.
    pub find: Find,
}

/// How a kind of advice finds what it concerns.
pub enum Find {
    /// The message, and whether it concerns a rule.
    Rules(&'static str, fn(&About<'_>, &Rule) -> bool),
    /// The message, and whether it concerns all rules of an entry.
    Entries(&'static str, fn(&About<'_>, &Limit) -> bool),
    /// A message for each finding, with the names of its rules.
    Other(fn(&About<'_>) -> Vec<Advised>),
}

/// A message, and the names of the rules that it concerns.
pub type Advised = (String, Vec<String>);

/// A valid document.
pub struct About<'a> {
    /// Its meaning.
    pub policy: &'a Policy,
    /// Its actors, with their sources.
    pub actors: &'a [ActorSources],
    /// The document.
    pub top: &'a Fields<'a>,
    /// The nodes of `limits`.
    pub entries: &'a [Node<'a>],
    /// The fingerprints of rules that differ only by their order.
    pub twins: &'a BTreeSet<u64>,
    /// The names of rules that another rule replaces.
    replaced: BTreeSet<&'a str>,
}

impl<'a> About<'a> {
    /// Describes a document.
    pub fn new(
        policy: &'a Policy,
        actors: &'a [ActorSources],
        top: &'a Fields<'a>,
        entries: &'a [Node<'a>],
        twins: &'a BTreeSet<u64>,
    ) -> About<'a> {
        let rules = policy.rules();
        let replaced = rules.flat_map(|rule| &rule.replaces).map(String::as_str).collect();
        About { policy, actors, top, entries, twins, replaced }
    }

    /// The advice of these kinds.
    pub fn advice(&self, rows: &[Row]) -> Vec<Advice> {
        let of_row = |row: &Row| {
            let found = match row.find {
                Find::Rules(message, is) => named(message, self.rules().filter(|it| is(self, it))),
                Find::Entries(message, is) => {
                    let limits = self.policy.limits.iter().filter(|limit| is(self, limit));
                    named(message, limits.flat_map(|limit| &limit.rules))
                }
                Find::Other(find) => find(self),
            };
            let (id, is_mistake) = (row.id, row.is_mistake);
            found.into_iter().map(move |(message, rules)| Advice { id, message, rules, is_mistake })
        };
        rows.iter().flat_map(of_row).collect()
    }

    /// All rules.
    pub fn rules(&self) -> impl Iterator<Item = &'a Rule> + use<'a> {
        self.policy.rules()
    }

    /// Returns true if another rule replaces this one, so that it does not refuse all that it covers.
    pub fn is_replaced(&self, rule: &Rule) -> bool {
        self.replaced.contains(rule.name.as_str())
    }

    /// The actors of a rule.
    pub fn actors_of<'r>(
        &self,
        rule: &'r Rule,
    ) -> impl Iterator<Item = &'a ActorSources> + use<'a, 'r> {
        let actors = self.actors;
        rule.actor.iter().filter_map(|&index| actors.get(index))
    }

    /// Clients choose a compound key if they choose any part: that part alone yields an unlimited
    /// number of keys.
    pub fn is_caller_chosen(&self, rule: &Rule) -> bool {
        self.actors_of(rule).any(|known| known.is_caller_chosen)
    }

    /// Returns true if a remote document will replace these rules. Until it arrives, a gateway may
    /// refuse or exempt every request on purpose.
    pub fn is_replaceable(&self) -> bool {
        !self.policy.is_remote && self.policy.remote.is_some()
    }
}

/// A finding about some rules; none without rules.
pub fn named<'r>(message: &str, rules: impl Iterator<Item = &'r Rule>) -> Vec<Advised> {
    let rules: Vec<String> = rules.map(|rule| rule.name.clone()).collect();
    if rules.is_empty() { Vec::new() } else { vec![(message.into(), rules)] }
}

/// A finding about the document.
pub fn of_document(message: Option<impl Into<String>>) -> Vec<Advised> {
    message.into_iter().map(|message| (message.into(), Vec::new())).collect()
}

/// Returns true if clients choose the value of a source.
pub fn is_chosen_value(wanted: &IdentitySource) -> bool {
    identity::build(wanted).is_ok_and(|source| source.is_caller_chosen())
}
