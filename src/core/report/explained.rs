//! What an operator is told who asks why: what each rule decided, or why it did not.

use std::rc::Rc;

use super::state::spell_key;
use super::{Outcome, Record};
use crate::decision::Retry;
use crate::json::object::{JsonObject, list};
use crate::time::{Micros, SECOND};

/// Bytes that an explanation has at most.
const MOST: usize = 8 << 10;

/// Bytes of them that are kept for how many rules it leaves out.
const END: usize = 32;

/// What is told of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explained {
    /// What it decided.
    Decided(Record),
    /// It was not consulted.
    Skipped {
        /// The rule's name.
        rule: Rc<str>,
        /// Why not.
        why: Why,
    },
}

/// Why a rule was not consulted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its entry does not cover the path.
    Path,
    /// The conditions of its entry do not hold.
    Match,
    /// The request is exempt.
    Exempt,
    /// The request does not say who calls.
    Absent,
    /// Its caller's plan is unlimited.
    Plan,
    /// Redis was not asked, since another rule refuses.
    NotAsked,
    /// The caller is banned, by it or another rule.
    Banned,
}

impl Explained {
    /// The explanation by all rules, as JSON that a header can bear. Where there are too many for that, it says how
    /// many more there are.
    #[must_use]
    pub fn all(rules: &[Explained]) -> String {
        let mut told = Vec::new();
        let mut size = END;
        for rule in rules {
            let json = rule.json();
            size += json.len() + 1;
            if size > MOST {
                let more = (rules.len() - told.len()) as u64;
                told.push(JsonObject::default().number("more", more).finish());
                break;
            }
            told.push(json);
        }
        list(told)
    }

    /// The same of this rule alone.
    #[must_use]
    pub fn json(&self) -> String {
        match self {
            Explained::Decided(record) => record.json(),
            Explained::Skipped { rule, why } => {
                let told = JsonObject::default().text("rule", rule);
                match why.reason() {
                    Some(reason) => told.text("decision", "skipped").text("why", reason),
                    None => told.text("decision", "not asked"),
                }
                .finish()
            }
        }
    }
}

impl Why {
    fn reason(self) -> Option<&'static str> {
        match self {
            Why::Path => Some("path"),
            Why::Match => Some("match"),
            Why::Exempt => Some("exempt"),
            Why::Absent => Some("absent"),
            Why::Plan => Some("plan"),
            Why::Banned => Some("banned"),
            Why::NotAsked => None,
        }
    }
}

impl Record {
    fn json(&self) -> String {
        let (decision, wait) = match self.outcome {
            Outcome::Admitted { wait: 0 } => ("admitted", Some(0)),
            Outcome::Admitted { wait } => ("held", Some(wait)),
            Outcome::Refused(Retry::Never) => ("refused", None),
            Outcome::Refused(retry) => ("refused", retry.ticks()),
            Outcome::Banned(left) => ("banned", Some(left)),
            Outcome::Unavailable(ticks) => ("unavailable", Some(ticks)),
        };
        let told = JsonObject::default()
            .text("rule", &self.rule)
            .text("scope", self.scope.name())
            .text("mode", if self.shadow { "shadow" } else { "enforced" })
            .text("decision", decision);
        let told = match &self.plan {
            Some(plan) => told.text("plan", plan),
            None => told,
        };
        let told = told.number("limit", self.policy.0);
        let told = match self.remaining {
            Some(left) => told.number("remaining", left),
            None => told,
        };
        let told = match wait {
            Some(ticks) => told.json("wait", &seconds(ticks)),
            None => told.text("wait", "never"),
        };
        told.text("key", &spell_key(self.caller)).finish()
    }
}

/// Seconds as a number in JSON.
#[must_use]
pub fn seconds(ticks: Micros) -> String {
    match ticks % SECOND {
        0 => (ticks / SECOND).to_string(),
        rest => format!("{}.{rest:06}", ticks / SECOND),
    }
}
