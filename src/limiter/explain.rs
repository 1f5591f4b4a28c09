//! What an operator is told who asks why a request was decided about as it was.

use crate::check::{Check, CheckOutcome};
use crate::limiter::Limiter;
use crate::report::explained::{Explained, Why};
use crate::verdict::Verdict;
use diana_policy::port::{Clock, Request};
use diana_request::matching::{except, matcher};

impl Limiter {
    /// Whether an operator asks about the requests that are decided about from now on.
    pub fn explain(&mut self, explains: bool) {
        self.scratch.explains = explains;
    }

    /// As [`Limiter::decide`], about a request that an operator asks about: the verdict tells what was decided, and beside
    /// it stand the rules that do not apply.
    pub fn decide_explained(
        &mut self,
        request: &dyn Request,
        clock: &dyn Clock,
    ) -> (Verdict, Vec<Explained>) {
        self.gather(false, request);
        let skipped = self.skipped(request);
        if self.freed.is_any() {
            self.take_back(clock.now());
        }
        (self.decide_since(None, request, clock), skipped)
    }

    /// What the rules decided that apply to the request in hand, if an operator asks.
    pub(crate) fn explained(&mut self) -> Vec<Explained> {
        if !self.scratch.explains {
            return Vec::new();
        }
        let mut told = Vec::new();
        for place in 0..self.scratch.checks.len() {
            let Some(check) = self.scratch.checks.get(place) else { continue };
            told.extend(match check.says {
                CheckOutcome::Pending | CheckOutcome::Nothing => {
                    self.not_consulted(check.rule, Why::NotAsked)
                }
                _ => self.record(place).map(Explained::Decided),
            });
        }
        let silenced = std::mem::take(&mut self.scratch.silenced);
        told.extend(silenced.iter().filter_map(|&rule| self.not_consulted(rule, Why::Banned)));
        told
    }

    /// Notes which rules have no say in the request in hand since others ban its caller, if an operator asks.
    pub(crate) fn silence(&mut self) {
        if self.scratch.explains {
            let bans = |check: &&Check| matches!(check.says, CheckOutcome::Bans(_));
            let silenced = self.scratch.checks.iter().filter(|check| !bans(check));
            self.scratch.silenced = silenced.map(|check| check.rule).collect();
        }
    }

    fn not_consulted(&self, rule: usize, why: Why) -> Option<Explained> {
        Some(Explained::Skipped { rule: self.rules.get(rule)?.name.clone(), why })
    }

    /// The rules that do not apply to the request that was gathered, and why.
    fn skipped(&mut self, request: &dyn Request) -> Vec<Explained> {
        let mut skipped = Vec::new();
        let is_exempt = except::covers(&self.entries.except, request, &self.scratch.path);
        for (number, limit) in self.entries.limits.iter().enumerate() {
            let covers = self.scratch.limits.contains(&number);
            let why = match () {
                () if is_exempt => Some(Why::Exempt),
                () if !covers => Some(Why::Path),
                () if !matcher::holds(&limit.matcher, request) => Some(Why::Match),
                () if except::covers(&limit.except, request, &self.scratch.path) => {
                    Some(Why::Exempt)
                }
                () => None,
            };
            for number in limit.rules.clone() {
                let Some(judge) = self.rules.get(number) else { continue };
                if self.scratch.checks.iter().any(|check| check.rule == number) {
                    continue;
                }
                let is_exempt = except::covers(&judge.rule.except, request, &self.scratch.path);
                let own = if is_exempt { Why::Exempt } else { Why::Absent };
                skipped.push((number, why.unwrap_or(own)));
            }
        }
        let told = skipped.into_iter().filter_map(|(number, why)| {
            let why = match why {
                Why::Absent if self.has_no_limit(number, request) => Why::Plan,
                why => why,
            };
            self.not_consulted(number, why)
        });
        told.collect()
    }
}
