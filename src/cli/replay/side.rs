//! One file of rules, its decisions on a log, and their counts.

use std::rc::Rc;

use diana_policy::{Policy, Rule};
use diana_replay::{LogEntry, ReplayDecision, ReplayFleet};
use hdrhistogram::Histogram;

use super::counts::DecisionCounts;
use super::refused::RefusedCallers;
use super::series::Series;

/// The longest wait in the histogram, in ticks; longer ones count as this. Rules hold for 20 s at
/// most.
const LONGEST: u64 = 60_000_000;

/// Significant digits of a wait.
const DIGITS: u8 = 2;

/// The waits of requests held by a rule, in ticks.
pub type Waits = Histogram<u32>;

/// One file of rules.
pub struct Side {
    fleet: ReplayFleet<LogEntry>,
    /// The rules' names, in their order.
    pub rules: Vec<String>,
    /// The counts of all requests, and then of each rule.
    pub totals: Vec<DecisionCounts>,
    /// The same over time.
    pub series: Series<DecisionCounts>,
    /// The waits of each rule.
    pub waits: Vec<Waits>,
    /// The refused callers.
    pub refused: RefusedCallers,
    /// The callers that rules in shadow would have refused.
    pub shadowed: RefusedCallers,
    /// Whether any rule limits concurrent requests.
    pub has_slots: bool,
    /// Whether any rule has a daily quota in fixed memory.
    pub has_quotas: bool,
    /// The current step, and its counts besides the metrics.
    step: u64,
    own: Vec<DecisionCounts>,
}

impl Side {
    /// A side without decisions.
    ///
    /// # Errors
    /// If a worker cannot build the rules.
    pub fn new(policy: &Policy, gateways: usize, workers: usize) -> Result<Side, String> {
        let fleet = ReplayFleet::new(policy, gateways, workers)?;
        let all = || policy.rules();
        let rules: Vec<String> = all().map(|rule| rule.name.clone()).collect();
        let none = vec![DecisionCounts::default(); rules.len() + 1];
        let waits = rules.iter().map(|_| Histogram::new_with_max(LONGEST, DIGITS));
        Ok(Side {
            fleet,
            totals: none.clone(),
            series: Series::new(),
            waits: waits.collect::<Result<_, _>>().map_err(|error| error.to_string())?,
            refused: RefusedCallers::new(policy),
            shadowed: RefusedCallers::new(policy),
            has_slots: all().any(Rule::is_in_flight),
            has_quotas: all().any(|rule| rule.daily.is_some()),
            step: 0,
            own: none,
            rules,
        })
    }

    /// Decides about a request that arrives.
    pub fn request(&mut self, entry: &Rc<LogEntry>) -> ReplayDecision {
        if self.series.step(entry.at) != self.step {
            self.flush();
            self.step = self.series.step(entry.at);
        }
        let decision = self.fleet.request(entry);
        self.count(entry, &decision);
        for refused in self.fleet.take_shadowed() {
            self.shadowed.add(&refused, entry);
        }
        decision
    }

    /// The counts of all requests.
    pub fn all(&self) -> DecisionCounts {
        self.totals.first().copied().unwrap_or_default()
    }

    /// The number of refusals by rules in shadow.
    pub fn shadow_refused(&self) -> u64 {
        self.totals.iter().map(|counts| counts.shadow_refused).sum()
    }

    /// The counts of each rule, with its name and its waits.
    pub fn by_rule(&self) -> impl Iterator<Item = (&str, &DecisionCounts, &Waits)> {
        let counts = self.totals.iter().skip(1);
        self.rules
            .iter()
            .zip(counts)
            .zip(&self.waits)
            .map(|((name, it), waits)| (&**name, it, waits))
    }

    fn count(&mut self, entry: &LogEntry, decision: &ReplayDecision) {
        let Some(all) = self.own.first_mut() else { return };
        match decision {
            ReplayDecision::Admitted => all.admitted += 1,
            ReplayDecision::Held { rule, wait } => {
                all.admitted += 1;
                all.held += 1;
                let number = rule.as_deref().and_then(|rule| self.number(rule));
                let waits = number.and_then(|number| self.waits.get_mut(number));
                waits.into_iter().for_each(|waits| waits.saturating_record(*wait));
            }
            ReplayDecision::Refused(refusal) => {
                match decision.is_ban() {
                    true => all.banned += 1,
                    false => all.refused += 1,
                }
                self.refused.add(&refusal.by, entry);
                for record in refusal.records() {
                    let is_counted = record.rule == refusal.by.rule
                        || record.shadow && record.outcome.refused().is_some();
                    let number = self.number(&record.rule).filter(|_| !is_counted);
                    let counts = number.and_then(|number| self.own.get_mut(number + 1));
                    counts.into_iter().for_each(|counts| counts.beside += 1);
                }
            }
        }
    }

    fn number(&self, rule: &str) -> Option<usize> {
        self.rules.iter().position(|own| own == rule)
    }

    /// Adds the counts of the current step to the totals.
    pub fn flush(&mut self) {
        let (rules, own) = (&self.rules, &mut self.own);
        self.fleet.take_counts(|rule, metric, count| {
            let number = rules.iter().position(|own| own == rule);
            let counts = number.and_then(|number| own.get_mut(number + 1));
            if let Some(sum) = counts.and_then(|counts| counts.metric(metric)) {
                *sum += count.cast_unsigned();
            }
        });
        if self.own.iter().any(|counts| *counts != DecisionCounts::default()) {
            self.totals.iter_mut().zip(&self.own).for_each(|(sum, counts)| *sum += *counts);
            self.series.add(self.step, &self.own);
            self.own.fill(DecisionCounts::default());
        }
    }
}
