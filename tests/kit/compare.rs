//! Compares a real Redis with the model of its script: random questions about random rules, with a
//! clock that steps back.

mod ask;

use std::collections::HashMap;

use diana_algorithm::Entry;
use diana_policy::Quota;
use diana_policy::decision::Retry;
use diana_store::slots::arrears::Arrears;
use fastrand::Rng;

use crate::laws::stream;
use crate::model::{Asked, CHECKS, Model, Receipts};
use crate::rules::{Rule, at, pipeline_of_asks, today};
use crate::server::Server;

/// Maximum debt or usage of one settlement. So few that no slice in Rust reaches its maximum, 2³².
const MOST: u64 = 1 << 20;

const DAY: u64 = 86_400_000_000;

/// A charge that can be returned.
#[derive(Clone)]
struct Held {
    rule: usize,
    caller: u64,
    cost: u64,
    block: u64,
    term: u64,
    tentative: bool,
    /// The receipts of Redis.
    receipts: Receipts,
    /// The receipts of the model.
    own: Receipts,
}

/// Runs one case in Redis and in the model.
pub fn play(server: &Server, entry: &'static Entry, seed: u64) -> Play {
    let mut play = Play::new(entry, seed);
    println!("{} seed {seed}: {:?}", entry.short, play.rules[0].case.quota);
    for (now, cost) in play.arrivals() {
        let back = if play.rng.u8(0..25) == 0 { play.rng.u64(0..20_000_000) } else { 0 };
        play.turn(server, now.saturating_sub(back), cost);
        play.trips += 1;
    }
    play
}

/// One case and its statistics.
pub struct Play {
    rng: Rng,
    pub trips: usize,
    rules: Vec<Rule>,
    /// The plans of each rule. Empty if it has none.
    plans: Vec<Vec<Quota>>,
    model: Model,
    held: Vec<Held>,
    /// The arrears of each rule and caller: those before, and the latest ones.
    arrears: HashMap<(usize, u64), [Arrears; 2]>,
    pub in_arrears: usize,
    pub leased: usize,
    pub given_back: usize,
    pub owed: usize,
    pub refused: usize,
    pub waited: usize,
    pub lends: usize,
    pub shared: usize,
    pub soon: usize,
    pub resets: usize,
}

impl Play {
    fn new(entry: &'static Entry, seed: u64) -> Play {
        let mut rng = Rng::with_seed(seed);
        let mut rules = vec![Rule::random(entry, &mut rng)];
        for fingerprint in 1..rng.u64(1..5) {
            let rule = rules[0].beside(&mut rng);
            rules.push(Rule { fingerprint, ..rule });
        }
        for rule in &mut rules {
            rule.counts = (rule.entry.capabilities)(&rule.case.quota).settles && rng.bool();
        }
        let mut plans = |rule: &mut Rule| {
            let plans = if rng.bool() { rule.plans(&mut rng) } else { Vec::new() };
            plans.first().into_iter().for_each(|own| rule.use_plan(*own));
            plans
        };
        let plans = rules.iter_mut().map(&mut plans).collect();
        let (model, held) = (Model::default(), Vec::new());
        Play {
            rng,
            rules,
            plans,
            model,
            held,
            arrears: HashMap::new(),
            in_arrears: 0,
            trips: 0,
            leased: 0,
            given_back: 0,
            owed: 0,
            refused: 0,
            waited: 0,
            lends: 0,
            shared: 0,
            soon: 0,
            resets: 0,
        }
    }

    fn arrivals(&mut self) -> Vec<(u64, u64)> {
        // The clock of a machine without a battery begins at its start.
        let rng = &mut self.rng;
        let now = if rng.u8(0..8) == 0 { rng.u64(0..DAY) } else { today(rng) };
        let arrivals = stream::from(at(now), &self.rules[0].case, &mut self.rng, 120);
        arrivals.into_iter().map(|(now, cost)| (now.mono, cost)).collect()
    }

    /// One batch at `now`.
    fn turn(&mut self, server: &Server, now: u64, cost: u64) {
        if self.rng.u8(0..40) == 0 {
            let rule = self.rng.usize(0..self.rules.len());
            if self.plans[rule].is_empty() {
                self.rules[rule].change(&mut self.rng);
            }
        }
        for (rule, plans) in self.rules.iter_mut().zip(&self.plans) {
            if !plans.is_empty() && self.rng.u8(0..6) == 0 {
                rule.use_plan(plans[self.rng.usize(0..plans.len())]);
            }
        }
        let at = self.model.at(now);
        let mut asks = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..self.rng.usize(1..5) {
            let delay = if self.rng.u8(0..4) == 0 { self.rng.u64(0..2_000_000) } else { 0 };
            let (ask, asked) = self.ask(delay, cost);
            let (outcome, receipts) = self.model.ask(&self.rules, at, delay, &asked);
            asks.push(ask);
            expected.push((outcome, receipts, asked));
        }
        let pipeline = pipeline_of_asks(Some(now), asks);
        let decided = server.decide(&pipeline);
        assert_eq!((decided.asks.len(), decided.corrupt), (expected.len(), 0));
        for ((seen, (outcome, receipts, asked)), ask) in
            decided.asks.iter().zip(expected).zip(&pipeline.calls[0].asks)
        {
            let mut plain = seen.clone();
            plain.rules.iter_mut().for_each(|rule| (rule.receipt, rule.lease) = (0, 0));
            // A block that cannot be spent has no deadline.
            plain.rules.iter_mut().filter(|rule| rule.block == 0).for_each(|rule| rule.spend = 0);
            self.shared += seen.rules.iter().filter(|rule| rule.overflow).count();
            self.lends += seen.rules.iter().filter(|rule| rule.is_outstanding).count();
            self.soon += seen.rules.iter().filter(|rule| rule.retry == Some(Retry::Soon)).count();
            let mut outcome = outcome;
            outcome.rules.iter_mut().filter(|rule| rule.block == 0).for_each(|rule| rule.spend = 0);
            assert_eq!(plain, outcome, "at {now}: {ask:?} {asked:?}");
            let Some(wait) = seen.wait else {
                self.refused += 1;
                continue;
            };
            self.waited += usize::from(wait > 0);
            for ((opinion, own), asked) in seen.rules.iter().zip(receipts).zip(asked) {
                let is_checked = asked.what >= CHECKS;
                if opinion.retry.is_none() && asked.cost + opinion.block > 0 && !is_checked {
                    self.leased += usize::from(opinion.block > 0);
                    let receipts = Receipts { cost: opinion.receipt, lease: opinion.lease };
                    let Asked { rule, caller, cost, tentative, .. } = asked;
                    self.held.push(Held {
                        rule,
                        caller,
                        cost,
                        block: opinion.block,
                        term: opinion.term,
                        tentative,
                        receipts,
                        own,
                    });
                }
            }
        }
        self.held.drain(..self.held.len().saturating_sub(30));
    }
}
