//! Explains a decision to an operator: the result of each rule, or why it was skipped.

use std::rc::Rc;

use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

use super::{Outcome, Record};
use diana_policy::json;
use diana_policy::time::{Micros, SECOND};

/// The maximum size of an explanation in bytes.
const MOST: usize = 8 << 10;

/// Bytes reserved for the number of omitted rules.
const END: usize = 32;

/// The explanation of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explained {
    /// Its decision.
    Decided(Record),
    /// It was not evaluated.
    Skipped {
        /// The rule's name.
        rule: Rc<str>,
        /// The reason.
        why: Why,
    },
}

/// The reason why a rule was not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The document is disabled.
    Disabled,
    /// Its entry does not cover the path.
    Path,
    /// The conditions of its entry are not met.
    Match,
    /// The request is exempt.
    Exempt,
    /// The request has no value for the actor.
    Absent,
    /// The rule with this name replaces it.
    Replaced(Rc<str>),
    /// Its caller's plan is unlimited.
    Plan,
    /// Redis was not queried, since another rule refuses.
    NotAsked,
    /// The caller is banned, by this rule or another one.
    Banned,
}

/// The members of the JSON object for one rule.
#[derive(Default, Serialize)]
struct Members<'a> {
    rule: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let members = match self {
            Explained::Decided(record) => record.members(),
            Explained::Skipped { rule, why } => {
                let by = if let Why::Replaced(by) = why { Some(&**by) } else { None };
                let why = why.words().map(|(name, _)| name);
                let decision = if why.is_some() { "skipped" } else { "not asked" };
                Members { rule, decision, why, by, ..Members::default() }
            }
        };
        members.serialize(to)
    }
}

impl Explained {
    /// The explanation of all rules, as JSON of a size that fits in a header, with the number of
    /// omitted rules if it is too long.
    #[must_use]
    pub fn all(rules: &[Explained]) -> String {
        let mut items = Vec::new();
        let mut size = END;
        for rule in rules {
            let json = json::ascii(rule);
            size += json.len() + 1;
            if size > MOST {
                items.push(format!("{{\"more\":{}}}", rules.len() - items.len()));
                break;
            }
            items.push(json);
        }
        format!("[{}]", items.join(","))
    }
}

impl Why {
    /// The text of a reason for people, by its name in JSON. `{by}` stands for the rule that
    /// replaces the rule.
    #[must_use]
    pub fn text(name: &str) -> Option<&'static str> {
        let replaced = Why::Replaced("".into());
        let all = [Why::Disabled, Why::Path, Why::Match, Why::Exempt, Why::Absent, Why::Plan];
        let all = all.into_iter().chain([Why::Banned, replaced]);
        all.filter_map(|why| why.words()).find(|(known, _)| *known == name).map(|(_, text)| text)
    }

    fn words(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Why::Disabled => Some(("disabled", "the document has `disabled: true`")),
            Why::Path => Some(("path", "its entry does not cover the path")),
            Why::Match => Some(("match", "its entry covers the path, but its `match` fails")),
            Why::Exempt => Some(("exempt", "an `except` matches")),
            Why::Absent => Some(("absent", "the request has no value for its actor")),
            Why::Replaced(_) => Some(("replaced", "the rule `{by}` replaces it")),
            Why::Plan => Some(("plan", "the caller's plan is unlimited")),
            Why::Banned => Some(("banned", "another rule bans the caller")),
            Why::NotAsked => None,
        }
    }
}

impl Record {
    fn members(&self) -> Members<'_> {
        let (decision, wait) = match self.outcome {
            Outcome::Admitted { wait: 0, .. } => ("admitted", Some(0)),
            Outcome::Admitted { wait, .. } => ("held", Some(wait)),
            Outcome::Refused(refused) if self.marks => ("over", refused.retry.ticks()),
            Outcome::Refused(refused) => (refused.reason.name(), refused.retry.ticks()),
        };
        Members {
            rule: &self.rule,
            scope: Some(self.scope.name()),
            mode: Some(if self.shadow { "shadow" } else { "enforced" }),
            decision,
            why: None,
            by: None,
            plan: self.plan.as_deref(),
            limit: Some(self.policy.0),
            remaining: self.outcome.remaining(),
            wait: Some(wait.map_or("never".into(), |ticks| seconds(ticks).into())),
            key: Some(self.caller.spell()),
        }
    }
}

/// Ticks in seconds.
#[must_use]
pub fn seconds(ticks: Micros) -> Number {
    let part = Number::from_f64(ticks as f64 / SECOND as f64);
    part.filter(|_| !ticks.is_multiple_of(SECOND)).unwrap_or_else(|| (ticks / SECOND).into())
}
