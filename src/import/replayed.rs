//! Requests of an access log by the models of the originals and by Diana's own worker.

#[cfg(test)]
mod tests;

use std::rc::Rc;

use diana_config::Reader;
use diana_replay::{Arrival, ReplayFleet};

use crate::document;
use crate::importer::ImportResult;
use crate::model::{LimiterModel, ModelDecision};

/// Maximum number of rules that a log is replayed for.
pub(crate) const MOST_RULES: usize = 50;

/// A rule, and its decisions about the requests that it covers.
pub struct RuleReplay<A> {
    /// Its name.
    pub name: String,
    /// The number of requests that it covers.
    pub requests: u64,
    /// Of these, the number that the original refuses, and that Diana refuses.
    pub refused: [u64; 2],
    /// The number that only Diana refuses, and that only the original refuses.
    pub only: [u64; 2],
    /// The first request with different decisions.
    pub first: Option<Rc<A>>,
    model: Box<dyn LimiterModel>,
    rule: ReplayFleet<A>,
    /// Refuses what the rule covers.
    covered: ReplayFleet<A>,
}

impl ImportResult {
    /// The rules with a model of the original, for the requests of a log.
    #[must_use]
    pub fn replays<A: Arrival>(&mut self) -> Vec<RuleReplay<A>> {
        let mut found = Vec::new();
        for entry in &mut self.entries {
            for number in 0..entry.rules.len() {
                let model = entry.rules.get_mut(number).and_then(|rule| rule.model.take());
                let (Some(mut model), Some(rule)) = (model, entry.rules.get(number)) else {
                    continue;
                };
                let fleets = document::of_entry(entry, rule).map(|text| {
                    let policy = Reader::default().policy(text.as_bytes()).ok()?;
                    ReplayFleet::new(&policy, 1, 1).ok()
                });
                let ([Some(rule_fleet), Some(covered)], true) = (fleets, found.len() < MOST_RULES)
                else {
                    continue;
                };
                model.reset();
                found.push(RuleReplay {
                    name: rule.name.clone(),
                    requests: 0,
                    refused: [0; 2],
                    only: [0; 2],
                    first: None,
                    model,
                    rule: rule_fleet,
                    covered,
                });
            }
        }
        found
    }
}

impl<A: Arrival> RuleReplay<A> {
    /// Decides about a request, which arrives after the earlier ones.
    pub fn request(&mut self, request: &Rc<A>) {
        let diana = self.rule.request(request).is_refused();
        if !self.covered.request(request).is_refused() {
            return;
        }
        let original = self.model.decide(&**request) == ModelDecision::Refused;
        self.requests += 1;
        let [by_original, by_diana] = &mut self.refused;
        *by_original += u64::from(original);
        *by_diana += u64::from(diana);
        if original != diana {
            let [only_diana, only_original] = &mut self.only;
            *only_diana += u64::from(diana);
            *only_original += u64::from(original);
            self.first.get_or_insert_with(|| request.clone());
        }
    }

    /// The result in a few words.
    #[must_use]
    pub fn summary(&self) -> String {
        let relation = match self.only {
            [0, 0] => "equal",
            [_, 0] => "stricter",
            [0, _] => "looser",
            _ => "stricter and looser",
        };
        let RuleReplay { requests, refused: [original, diana], only, .. } = self;
        let [only_diana, only_original] = only;
        let mut text = format!(
            "{relation}, by {requests} requests of the log: the original refuses {original} of them, Diana {diana}"
        );
        if *only != [0, 0] {
            text.push_str(&format!("; {only_diana} only Diana, {only_original} only the original"));
        }
        text
    }
}
