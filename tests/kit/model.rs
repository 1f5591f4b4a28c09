//! A model of the Redis script: its steps in Rust, in the order of a question.

mod bucket;
mod clock;
mod effects;
pub mod in_flight;
mod keys;
mod lease;
pub mod proxy;
pub mod redis;
mod reset;
pub mod rule;
mod rule_state;
mod slices;
mod terms;
mod usage;
pub mod wire;

use std::collections::HashMap;

use diana_algorithm::Algorithm;
use diana_policy::time::{Now, SECOND};
use diana_redis::protocol::RuleReply;

use clock::Clock;
use keys::{Counter, Location, Who};
use rule::Rule;
use rule_state::Look;
pub use rule_state::NOTHING;
use terms::Terms;

/// Accounting periods: tentative charges count for one or two terms, leases for one or two long
/// terms.
pub const TERM: u64 = SECOND / 10;
pub const LONG: u64 = SECOND / 2;

/// Maximum lifetime of a lease.
pub const LEASE: u64 = SECOND * 2 / 5;

/// The kind of a question that only checks.
pub const CHECKS: u64 = 6;

/// The kinds of questions that read usage, and that reset it.
pub const READ_USAGE: u64 = 7;
pub const RESET: u64 = 8;
/// The kind of a question that charges permits without a check, and then reads usage.
pub const REPORT: u64 = 9;

/// The script's numbers are exact below this one.
const FAR: u64 = 1 << 53;

/// A question about one rule, with the model's own receipt.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub rule: usize,
    pub caller: u64,
    pub cost: u64,
    pub unit_cost: u64,
    pub want: u64,
    /// The time in which a block is spent.
    pub ahead: u64,
    pub shadow: bool,
    pub tentative: bool,
    pub keys: u64,
    pub receipt: u64,
    pub term: u64,
    pub block: u64,
    pub left: u64,
    /// Permits used beyond the charge.
    pub debt: u64,
    /// A gateway's arrears that are not charged yet.
    pub arrears: u64,
    /// Permits by which they may exceed the limit of a bucket.
    pub overdraft: u64,
    /// Permits whose usage has become known. `None` if the rule does not store usage separately
    /// from reservations.
    pub counted: Option<u64>,
    /// The kind of the question, for in-flight slots and operators.
    pub what: u64,
}

/// The outcome of a question about rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Ticks until the request may leave. `None` if it was refused and nothing was charged.
    pub wait: Option<u64>,
    /// The reply about each rule.
    pub rules: Vec<RuleReply>,
}

/// The model's receipts for the cost and the block of a charge.
#[derive(Debug, Clone, Copy)]
pub struct Receipts {
    pub cost: u64,
    pub lease: u64,
}

/// A caller's state under a rule, with its outstanding leases.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub words: Vec<u64>,
    terms: Terms,
    /// The usage, if the rule stores it separately from reservations.
    used: Option<Vec<u64>>,
    /// The instant of its expiry, by the rule that wrote it.
    expires: u64,
}

#[derive(Default)]
pub struct Model {
    clock: Clock,
    states: HashMap<(usize, Who), State>,
    counters: HashMap<usize, Counter>,
}

impl Model {
    /// The instant of a batch, for the wall clock `time` of Redis.
    pub fn at(&mut self, time: u64) -> Now {
        self.clock.read(time)
    }

    /// The outcome of a question with all receipts zero, and the model's own receipts.
    pub fn ask(
        &mut self,
        rules: &[Rule],
        now: Now,
        mut delay: u64,
        ask: &[Asked],
    ) -> (Outcome, Vec<Receipts>) {
        let mut ask = ask.to_vec();
        let locations: Vec<Location> = ask
            .iter_mut()
            .map(|asked| {
                let needs = (asked.keys, asked.unit_cost);
                let location = self.location(rules, asked.rule, asked.caller, needs, now.mono);
                // Overflow buckets are not leased.
                if location.overflows() {
                    asked.want = 0;
                    asked.what = if asked.what == RESET { READ_USAGE } else { asked.what };
                }
                location
            })
            .collect();
        let look = |(asked, location): (_, &Location)| {
            Look::new(rules, location.state.as_ref(), asked, now)
        };
        let mut looks: Vec<Look> = ask.iter().zip(&locations).map(look).collect();
        let mut agreed = looks.iter().all(Look::agrees);
        if agreed {
            delay = looks.iter().map(Look::turn).max().unwrap_or(0).max(delay);
            looks.iter_mut().for_each(|look| look.put_off(now, delay));
            agreed = looks.iter().all(Look::agrees);
        }
        let mut receipts = Vec::new();
        let mut opinions = Vec::new();
        for (mut look, location) in looks.into_iter().zip(&locations) {
            let (opinion, receipt) = look.conclude(now, agreed.then_some(delay));
            opinions.push(RuleReply { overflow: location.overflows(), ..opinion });
            receipts.push(receipt);
            if let Some(state) = look.written(now) {
                self.write(rules, look.asked.rule, location, state, now.mono);
            }
        }
        (Outcome { wait: agreed.then_some(delay), rules: opinions }, receipts)
    }

    /// Ticks from `now` until the state of a caller expires.
    pub fn life(&self, rules: &[Rule], rule: usize, caller: u64, now: Now) -> u64 {
        let state = self.states.get(&(rule, Who::Caller(caller)));
        state.map_or(0, |state| state.ends(&rules[rule]).saturating_sub(now.mono))
    }
}

impl State {
    /// The expiry of the state.
    fn ends(&self, rule: &Rule) -> u64 {
        self.ends_by(rule.entry.short, &*rule.case.algorithm)
    }

    fn ends_by(&self, short: &str, algorithm: &dyn Algorithm) -> u64 {
        let used = self
            .used
            .clone()
            .map_or(0, |words| State { words, ..State::default() }.ends_by(short, algorithm));
        let expires = algorithm.expires(&self.words, Now::default());
        let ends = match (short, &*self.words) {
            // If the wall clock steps back, the current window lasts longer than its state
            // indicates.
            ("W", [_, 0, _]) => 0,
            ("W", [_, _, latest]) => *latest,
            ("TB" | "LB", [_, _, at]) => expires.min(at + FAR).max(self.terms.leases_over()),
            _ => expires,
        };
        ends.max(used)
    }
}
