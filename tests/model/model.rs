//! What the script promises to be: the steps in Rust, in the order of an ask.

mod clock;
mod look;
pub mod redis;
pub mod rule;
mod slices;
pub mod wire;

use std::collections::HashMap;

use diana::fleet::script::Outcome;
use diana::time::{Now, SECOND};

use crate::case::Case;
use clock::Clock;
use look::Look;
use rule::Rule;
use slices::Slices;

/// A lease is counted for one or two terms.
const TERM: u64 = SECOND / 2;

/// What is needed soon is needed in this time, and what is wanted in that.
const SOON: u64 = SECOND / 50;
const IDLE: u64 = SECOND / 10;

/// Numbers are exact below it.
const FAR: u64 = 1 << 53;

/// What is asked of one rule, with the model's own receipt.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub rule: usize,
    pub caller: u64,
    pub cost: u64,
    pub grain: u64,
    pub want: u64,
    pub soon: u64,
    pub shadow: bool,
    pub receipt: u64,
    pub block: u64,
    pub left: u64,
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
    term: u64,
    /// Taken in the term before, and in this one.
    out: [u64; 2],
    /// Lent of the next slice.
    next: u64,
}

#[derive(Default)]
pub struct Model {
    clock: Clock,
    states: HashMap<(usize, u64), State>,
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
        let look = |asked| Look::new(rules, self.states.get(&place(asked)), asked, now);
        let mut looks: Vec<Look> = ask.iter().map(look).collect();
        let mut agreed = looks.iter().all(Look::agrees);
        if agreed {
            delay = looks.iter().map(Look::turn).max().unwrap_or(0).max(delay);
            looks.iter_mut().for_each(|look| look.put_off(now, delay));
            agreed = looks.iter().all(Look::agrees);
        }
        let mut receipts = Vec::new();
        let mut opinions = Vec::new();
        for mut look in looks {
            let (opinion, receipt) = look.conclude(now, agreed.then_some(delay));
            opinions.push(opinion);
            receipts.push(receipt);
            match look.written(now) {
                Some(Some(state)) => drop(self.states.insert(place(look.asked), state)),
                Some(None) => drop(self.states.remove(&place(look.asked))),
                None => {}
            }
        }
        (Outcome { wait: agreed.then_some(delay), rules: opinions }, receipts)
    }

    /// Ticks from `now` in which the state of a caller still means something.
    pub fn life(&self, rules: &[Rule], rule: usize, caller: u64, now: Now) -> u64 {
        let Some(state) = self.states.get(&(rule, caller)) else { return 0 };
        let Case { algorithm, quota } = &rules[rule].case;
        let expires = match *state.words {
            // Should the wall clock be set back, a window in force lasts longer than it seems.
            [_, _, first] if rules[rule].entry.short == "W" => first + quota.period(),
            _ => algorithm.expires(&state.words, now),
        };
        let over = match state {
            State { out: [0, 0], next: 0, .. } => 0,
            State { next: 0, term, .. } => (term + 2) * TERM,
            _ => Slices::new(quota).after(&state.words),
        };
        expires.max(over).saturating_sub(now.mono)
    }
}

fn place(asked: &Asked) -> (usize, u64) {
    (asked.rule, asked.caller)
}
