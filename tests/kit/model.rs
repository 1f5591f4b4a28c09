//! What the script promises to be: the steps in Rust, in the order of an ask.

mod back;
mod bucket;
mod clock;
mod counted;
mod keys;
mod lend;
mod lift;
mod look;
pub mod places;
pub mod proxy;
pub mod redis;
pub mod rule;
mod slices;
mod terms;
pub mod wire;

use std::collections::HashMap;

use diana_algorithm::Algorithm;
use diana_policy::time::{Now, SECOND};
use diana_redis::protocol::RuleReply;

use clock::Clock;
use keys::{Counter, Seat, Who};
use look::Look;
use rule::Rule;
use terms::Terms;

/// What was charged tentatively is counted for one or two terms, and what is leased for one or two long ones.
pub const TERM: u64 = SECOND / 10;
pub const LONG: u64 = SECOND / 2;

/// A lease lives so long at most.
pub const LEASE: u64 = SECOND / 20;

/// The time whose demand a wanted block covers.
const AHEAD: u64 = SECOND / 50;

/// What an ask says that is only to be checked.
pub const CHECKS: u64 = 6;

/// And one by which it is only told what was used, or that is lifted.
pub const LOOKS: u64 = 7;
pub const LIFTS: u64 = 8;

/// Numbers are exact below it.
const FAR: u64 = 1 << 53;

/// What is asked of one rule, with the model's own receipt.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub rule: usize,
    pub caller: u64,
    pub cost: u64,
    pub unit_cost: u64,
    pub want: u64,
    pub shadow: bool,
    pub tentative: bool,
    pub keys: u64,
    pub receipt: u64,
    pub term: u64,
    pub block: u64,
    pub left: u64,
    /// Permits that were used beyond those that were charged.
    pub debt: u64,
    /// Where what was used is kept beside what is reserved: permits that have turned out to be.
    pub counted: Option<u64>,
    /// What else it says, of places in flight.
    pub what: u64,
}

/// What becomes of an ask about rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Ticks until the request may leave; nothing if it was refused and nothing was charged.
    pub wait: Option<u64>,
    /// What each rule says.
    pub rules: Vec<RuleReply>,
}

/// The model's receipts of a charge, of its cost and of its block.
#[derive(Debug, Clone, Copy)]
pub struct Receipts {
    pub cost: u64,
    pub lease: u64,
}

/// A caller of a rule, and what is out on lease.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub words: Vec<u64>,
    terms: Terms,
    /// Where that is kept beside what is reserved: what was used.
    used: Option<Vec<u64>>,
}

#[derive(Default)]
pub struct Model {
    clock: Clock,
    states: HashMap<(usize, Who), State>,
    counters: HashMap<usize, Counter>,
}

impl Model {
    /// The instant of a trip, when Redis tells `time`.
    pub fn at(&mut self, time: u64) -> Now {
        self.clock.read(time)
    }

    /// The outcome of an ask, in which all receipts are zero, and the model's own.
    pub fn ask(
        &mut self,
        rules: &[Rule],
        now: Now,
        mut delay: u64,
        ask: &[Asked],
    ) -> (Outcome, Vec<Receipts>) {
        let mut ask = ask.to_vec();
        let seats: Vec<Seat> = ask
            .iter_mut()
            .map(|asked| {
                let needs = (asked.keys, asked.unit_cost);
                let seat = self.seat(rules, asked.rule, asked.caller, needs, now.mono);
                // What is shared is not leased.
                if seat.overflows() {
                    asked.want = 0;
                    asked.what = if asked.what == LIFTS { LOOKS } else { asked.what };
                }
                seat
            })
            .collect();
        let look = |(asked, seat): (_, &Seat)| Look::new(rules, seat.state.as_ref(), asked, now);
        let mut looks: Vec<Look> = ask.iter().zip(&seats).map(look).collect();
        let mut agreed = looks.iter().all(Look::agrees);
        if agreed {
            delay = looks.iter().map(Look::turn).max().unwrap_or(0).max(delay);
            looks.iter_mut().for_each(|look| look.put_off(now, delay));
            agreed = looks.iter().all(Look::agrees);
        }
        let mut receipts = Vec::new();
        let mut opinions = Vec::new();
        for (mut look, seat) in looks.into_iter().zip(&seats) {
            let (opinion, receipt) = look.conclude(now, agreed.then_some(delay));
            opinions.push(RuleReply { overflow: seat.overflows(), ..opinion });
            receipts.push(receipt);
            if let Some(state) = look.written(now) {
                self.write(rules, look.asked.rule, seat, state, now.mono);
            }
        }
        (Outcome { wait: agreed.then_some(delay), rules: opinions }, receipts)
    }

    /// Ticks from `now` in which the state of a caller still means something.
    pub fn life(&self, rules: &[Rule], rule: usize, caller: u64, now: Now) -> u64 {
        let state = self.states.get(&(rule, Who::Caller(caller)));
        state.map_or(0, |state| state.ends(&rules[rule]).saturating_sub(now.mono))
    }
}

impl State {
    /// When it means nothing any more.
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
            // Should the wall clock be set back, a window in force lasts longer than it seems.
            ("W", [_, 0, _]) => 0,
            ("W", [_, _, latest]) => *latest,
            ("TB" | "LB", [_, _, at]) => expires.min(at + FAR).max(self.terms.leases_over()),
            _ => expires,
        };
        ends.max(used)
    }
}
