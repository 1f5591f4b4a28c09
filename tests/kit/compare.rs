//! Random asks about random rules, to a real Redis and to the model of its script, by a clock that steps back.

use std::time::{Duration, Instant};

use diana_core::algorithm::Entry;
use diana_core::decision::Retry;
use diana_core::policy::Quota;
use diana_core::redis::protocol::{Ask, Back, Charge};
use fastrand::Rng;

use crate::laws::stream;
use crate::model::{Asked, CHECKS, LIFTS, LOOKS, Model, Receipts};
use crate::rules::{Rule, ask_of, at, today, trip_of};
use crate::server::Server;

/// Keys live a second longer than need be. A machine that is slower than this sees them end while
/// the clock of the case still stands.
const PATIENCE: Duration = Duration::from_millis(800);

/// Permits that are in debt, or turn out to be used, at a time: so few that no slice in Rust comes to its end, 2³².
const MOST: u64 = 1 << 20;

const DAY: u64 = 86_400_000_000;

/// A charge that can be given back.
#[derive(Clone)]
struct Held {
    rule: usize,
    caller: u64,
    cost: u64,
    block: u64,
    term: u64,
    tentative: bool,
    /// Those of Redis.
    receipts: Receipts,
    /// Those of the model.
    own: Receipts,
}

/// Plays one case to Redis and to the model.
#[allow(clippy::disallowed_methods, reason = "keys of a real Redis end by a real clock")]
pub fn play(server: &Server, entry: &'static Entry, seed: u64) -> Play {
    let mut play = Play::new(entry, seed);
    println!("{} seed {seed}: {:?}", entry.short, play.rules[0].case.quota);
    let began = Instant::now();
    for (now, cost) in play.arrivals() {
        let back = if play.rng.u8(0..25) == 0 { play.rng.u64(0..20_000_000) } else { 0 };
        play.turn(server, now.saturating_sub(back), cost, began);
        if began.elapsed() > PATIENCE {
            break;
        }
        play.trips += 1;
    }
    play
}

/// One case, and what became of its asks.
pub struct Play {
    rng: Rng,
    pub trips: usize,
    rules: Vec<Rule>,
    /// By what else a rule may judge, if it has plans.
    plans: Vec<Vec<Quota>>,
    model: Model,
    held: Vec<Held>,
    pub leased: usize,
    pub ahead: usize,
    pub given_back: usize,
    pub owed: usize,
    pub refused: usize,
    pub waited: usize,
    pub lends: usize,
    pub shared: usize,
    pub soon: usize,
    pub lifted: usize,
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
            rule.counts = (rule.entry.can)(&rule.case.quota).settles && rng.bool();
        }
        let mut plans = |rule: &mut Rule| {
            let plans = if rng.bool() { rule.plans(&mut rng) } else { Vec::new() };
            plans.first().into_iter().for_each(|own| rule.judge_by(*own));
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
            trips: 0,
            leased: 0,
            ahead: 0,
            given_back: 0,
            owed: 0,
            refused: 0,
            waited: 0,
            lends: 0,
            shared: 0,
            soon: 0,
            lifted: 0,
        }
    }

    fn arrivals(&mut self) -> Vec<(u64, u64)> {
        // A machine without a battery believes after each start that its clock began today.
        let rng = &mut self.rng;
        let now = if rng.u8(0..8) == 0 { rng.u64(0..DAY) } else { today(rng) };
        let arrivals = stream::from(at(now), &self.rules[0].case, &mut self.rng, 120);
        arrivals.into_iter().map(|(now, cost)| (now.mono, cost)).collect()
    }

    /// One trip at `now`.
    fn turn(&mut self, server: &Server, now: u64, cost: u64, began: Instant) {
        if self.rng.u8(0..40) == 0 {
            let rule = self.rng.usize(0..self.rules.len());
            if self.plans[rule].is_empty() {
                self.rules[rule].change(&mut self.rng);
            }
        }
        for (rule, plans) in self.rules.iter_mut().zip(&self.plans) {
            if !plans.is_empty() && self.rng.u8(0..6) == 0 {
                rule.judge_by(plans[self.rng.usize(0..plans.len())]);
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
        let trip = trip_of(Some(now), asks);
        let decided = server.decide(&trip);
        if began.elapsed() > PATIENCE {
            return;
        }
        assert_eq!((decided.asks.len(), decided.corrupt), (expected.len(), 0));
        for ((seen, (outcome, receipts, asked)), ask) in
            decided.asks.iter().zip(expected).zip(&trip.calls[0].asks)
        {
            let mut plain = seen.clone();
            plain.rules.iter_mut().for_each(|rule| (rule.receipt, rule.lease) = (0, 0));
            // Where it cannot be spent nothing is promised of it.
            plain.rules.iter_mut().filter(|rule| rule.block == 0).for_each(|rule| rule.spend = 0);
            self.shared += seen.rules.iter().filter(|rule| rule.overflow).count();
            self.lends += seen.rules.iter().filter(|rule| rule.loan > 0).count();
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
                    self.ahead += usize::from(opinion.starts > 0);
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

    /// A random ask.
    fn ask(&mut self, delay: u64, cost: u64) -> (Ask, Vec<Asked>) {
        let (mut rules, mut asked) = (Vec::new(), Vec::new());
        for rule in 0..self.rules.len() {
            if rule > 0 && self.rng.bool() {
                continue;
            }
            let (charge, one) = self.charge(rule, cost);
            rules.push(charge);
            asked.push(one);
        }
        (ask_of(delay, rules), asked)
    }

    fn can_settle(&self, rule: usize) -> bool {
        let Rule { entry, case, .. } = &self.rules[rule];
        (entry.can)(&case.quota).settles
    }

    fn charge(&mut self, rule: usize, cost: u64) -> (Charge, Asked) {
        let rng = &mut self.rng;
        // Two of them have the same bucket, should there be no room for them.
        let caller = [0, 1, 1024][rng.usize(0..3)];
        let quota = self.rules[rule].case.quota;
        let cost = match rng.u8(0..6) {
            0 => 0,
            1..=3 => quota.cost,
            _ => cost,
        };
        // Nothing is leased of what is settled; in windows it would make no difference.
        let is_settled_bucket = self.rules[rule].counts && self.rules[rule].entry.short == "TB";
        let lends = !is_settled_bucket && rng.bool();
        let want = if lends { 1 << rng.u8(0..20) } else { 0 };
        // In a trip it is always the same, and where nothing is leased that matters.
        let whole = self.rules[rule].entry.short == "LB" || rng.bool();
        let unit_cost = if whole { quota.cost } else { 1 };
        let shadow = rng.u8(0..6) == 0;
        let soon = if rng.bool() { 0 } else { rng.u64(0..=want) };
        let tentative = rng.u8(0..3) == 0;
        let plain = self.rules[rule].charge(caller, cost, want);
        let keys = [1, 2, 100][rng.usize(0..3)];
        let mut charge = Charge { unit_cost, soon, shadow, tentative, keys, ..plain };
        if charge.counted.is_some() && rng.u8(0..4) == 0 {
            charge.counted = Some(rng.u64(0..=quota.rpu.clamp(1, MOST)));
        }
        let counted = charge.counted;
        let plain =
            Asked { rule, caller, cost, unit_cost, want, soon, counted, ..Asked::default() };
        let mut asked = Asked { shadow, tentative, keys, ..plain };
        if rng.u8(0..8) == 0 {
            (charge.checks, asked.what) = (true, CHECKS);
            (charge.tentative, asked.tentative) = (false, false);
        }
        let holds = quota.max_delay.is_some_and(|delay| delay > 0);
        if rng.u8(0..12) == 0 && !holds && self.rules[rule].entry.short != "LB" {
            let lifts = rng.bool();
            let nothing = self.rules[rule].charge(caller, 0, 0);
            let back = if lifts { Back::Lifts } else { Back::Looks };
            let counted = nothing.counted;
            let what = if lifts { LIFTS } else { LOOKS };
            let asked = Asked { rule, caller, unit_cost, keys, counted, what, ..Asked::default() };
            self.lifted += usize::from(lifts);
            return (Charge { unit_cost, keys, back, ..nothing }, asked);
        }
        let mine = |held: &Held| held.rule == rule && held.caller == caller;
        if rng.bool()
            && let Some(place) = self.held.iter().rposition(mine)
        {
            let held = self.held[place].clone();
            // The cost of a request, or a lease.
            if held.block == 0 || held.cost > 0 && rng.u8(0..3) == 0 {
                let term = if held.tentative { held.term } else { 0 };
                (asked.receipt, asked.block) = (held.own.cost, 0);
                self.held[place].cost = 0;
                if self.can_settle(rule) && self.rng.u8(0..4) == 0 {
                    self.owe(&mut charge, &mut asked, held.receipts.cost);
                } else {
                    let (receipt, permits) = (held.receipts.cost, held.cost);
                    charge.back = Back::Cost { receipt, term, permits };
                    (asked.term, asked.left) = (term, held.cost);
                }
            } else {
                let left = rng.u64(0..=held.block);
                let Held { block, term, .. } = held;
                charge.back = Back::Block { receipt: held.receipts.lease, term, block, left };
                (asked.receipt, asked.block, asked.left) = (held.own.lease, held.block, left);
                asked.term = term;
                self.held[place].block = 0;
            }
            if self.held[place].cost + self.held[place].block == 0 {
                self.held.remove(place);
            }
            self.given_back += 1;
        } else if self.can_settle(rule) && self.rng.u8(0..4) == 0 {
            self.owe(&mut charge, &mut asked, 0);
        }
        (charge, asked)
    }

    /// More was used than was charged under `receipt`.
    fn owe(&mut self, charge: &mut Charge, asked: &mut Asked, receipt: u64) {
        let quota = self.rules[asked.rule].case.quota;
        let permits = self.rng.u64(1..=2 * quota.rpu.clamp(1, MOST));
        asked.debt = permits;
        charge.back = Back::Debt { receipt, permits };
        charge.counted = charge.counted.map(|counted| counted.max(permits));
        asked.counted = charge.counted;
        (charge.tentative, asked.tentative) = (false, false);
        (charge.checks, asked.what) = (false, 0);
        self.owed += 1;
    }
}
