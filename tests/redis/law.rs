//! The law of outstanding permits: several holders get permits, spend them and return them early,
//! late or never. A final refusal is correct only if the spent permits alone exceed the limit with
//! the request.

use diana_algorithm::REGISTRY;
use diana_policy::Quota;
use diana_policy::decision::{Decision, Retry};
use diana_policy::time::{SECOND, Unit};
use diana_redis::protocol::{Charge, Effect, RuleReply};
use fastrand::Rng;

use kit::model::rule::Rule;
use kit::model::{LONG, TERM};
use kit::rules::{at, block, left, pipeline, today};
use kit::seed;
use kit::server::Server;

/// Turns of one case.
const TURNS: usize = 60;

/// Held permits: a block, or a tentative charge.
struct Held {
    effect: Effect,
    at: u64,
    /// The interval for spending them.
    from: u64,
    until: u64,
    /// When a holder without failures has returned them, including pauses.
    due: u64,
}

struct Play<'s> {
    server: &'s Server,
    rule: Rule,
    rng: Rng,
    now: u64,
    held: Vec<Held>,
    /// Instants and numbers of spent permits. Tentative charges count at the instant of the charge.
    spent: Vec<(u64, u64)>,
    /// Whether returns may be lost or late.
    careless: bool,
    refused: [usize; 2],
}

impl Play<'_> {
    fn random<'s>(server: &'s Server, short: &str, seed: u64, careless: bool) -> Play<'s> {
        let mut rng = Rng::with_seed(seed);
        let unit = [Unit::Second, Unit::Minute, Unit::Day][rng.usize(0..3)];
        let entry = REGISTRY.iter().find(|entry| entry.short == short).unwrap();
        let quota = Quota::new(unit, rng.u64(1..40));
        let algorithm = (entry.build)(&quota).unwrap();
        let case = kit::laws::case::Case { quota, algorithm };
        let rule = Rule::of(entry, case).unwrap();
        let now = today(&mut rng);
        let (held, spent) = (Vec::new(), Vec::new());
        Play { server, rule, rng, now, held, spent, careless, refused: [0; 2] }
    }

    fn decide(&mut self, charge: Charge) -> RuleReply {
        let decided = self.server.decide(&pipeline(Some(self.now), vec![charge]));
        assert_eq!(decided.corrupt, 0);
        decided.asks[0].rules[0]
    }

    /// The state of a single counter with the spent permits. Panics if they exceed the limit.
    fn true_state(&self) -> Vec<u64> {
        let mut state = vec![0; self.rule.case.algorithm.properties().words];
        for (when, cost) in &self.spent {
            let old = state.clone();
            let step = self.rule.case.algorithm.step(&old, at(*when), 0, *cost, &mut state);
            assert!(step.is_admitted(), "too much is let through at {when}: {:?}", self.spent);
        }
        state
    }

    /// Ticks for which the spent permits refuse a request.
    fn keeps_out(&self) -> u64 {
        let (old, algorithm) = (self.true_state(), &self.rule.case.algorithm);
        match algorithm.step(&old, at(self.now), 0, 1, &mut old.clone()) {
            Decision::Refuse { retry: Retry::After(ticks) } => ticks,
            Decision::Refuse { .. } => panic!("it costs one permit"),
            Decision::Admit { .. } => 0,
        }
    }

    fn spends(&mut self, cost: u64, when: u64) {
        let place = self.spent.partition_point(|(then, _)| *then <= when);
        self.spent.insert(place, (when, cost));
    }

    fn take_permits(&mut self) {
        let want = if self.rng.bool() { 0 } else { self.rng.u64(1..16) };
        let tentative = want == 0 && self.rng.u8(0..3) == 0;
        let plain = self.rule.charge(1, 1, want);
        let reply = self.decide(Charge { tentative, ..plain });
        let RuleReply { receipt, term, lease, block, .. } = reply;
        match reply.retry {
            None if tentative => {
                let effect = Effect::ReturnCost { receipt, term, permits: 1 };
                let (from, until) = (self.now, self.now + 20_000);
                self.holds(effect, from, until);
            }
            None => self.spends(1, self.now),
            Some(Retry::Soon | Retry::Never) => panic!("it costs one permit"),
            Some(Retry::After(ticks)) => {
                self.refused[usize::from(reply.is_outstanding)] += 1;
                // A lost permit is a used one. A bucket does not drain below its outstanding
                // permits.
                if !reply.is_outstanding && !self.careless && self.rule.entry.short != "TB" {
                    let out = self.keeps_out();
                    assert!(
                        out >= ticks,
                        "{reply:?}, although {out} ticks follow from the spent permits"
                    );
                }
            }
        }
        if block > 0 {
            let effect = Effect::ReturnBlock { receipt: lease, term, block, left: block };
            let (from, until) = (self.now, self.now + reply.spend);
            self.holds(effect, from, until);
        }
    }

    fn holds(&mut self, effect: Effect, from: u64, until: u64) {
        let counts = if block(effect) == 0 { TERM } else { LONG };
        let due = self.rng.u64(until..self.now + counts);
        self.held.push(Held { effect, at: self.now, from, until, due });
    }

    /// A holder spends or returns permits, or is too late.
    fn spend_or_return(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let place = self.rng.usize(0..self.held.len());
        let Held { effect, at, from, until, .. } = &mut self.held[place];
        let (certain, left) = (block(*effect) == 0, left(effect).expect("it holds something"));
        if (*from..*until).contains(&self.now) && *left > 0 && self.rng.u8(0..3) > 0 {
            let permits = self.rng.u64(1..=*left);
            *left -= permits;
            let charged = *at;
            self.spends(permits, if certain { charged } else { self.now });
            if certain {
                self.held.swap_remove(place);
            }
        } else if !self.careless || self.rng.u8(0..4) == 0 {
            self.gives_back(place);
        } else if self.rng.u8(0..4) == 0 {
            self.held.swap_remove(place);
        }
    }

    fn gives_back(&mut self, place: usize) {
        let Held { effect, .. } = self.held.swap_remove(place);
        let plain = self.rule.charge(1, 0, 0);
        self.decide(Charge { effect, ..plain });
    }

    /// Advances the clock. Holders without failures return expired permits while these still count
    /// as outstanding.
    fn passes(&mut self) {
        let longest = [1, 2_000, 30_000, 200_000, 2 * SECOND];
        let longest = longest[self.rng.usize(0..5)];
        let ticks = self.rng.u64(0..=longest);
        let mut then = self.now + ticks;
        if self.rng.bool()
            && let Some(held) = self.rng.choice(&self.held)
        {
            // While its unspent permits are being returned.
            then = self.rng.u64(held.until..=held.due).max(self.now);
        }
        while !self.careless
            && let Some(place) = (0..self.held.len()).min_by_key(|place| self.held[*place].due)
            && self.held[place].due <= then
        {
            self.now = self.now.max(self.held[place].due);
            self.gives_back(place);
        }
        self.now = then.max(self.now);
    }
}

fn play(short: &str, careless: bool) {
    let server = Server::start();
    let start = seed::next();
    let mut refused = [0; 2];
    for number in 0..32 {
        server.command(&["FLUSHALL"]);
        let mut play = Play::random(&server, short, start.wrapping_add(number), careless);
        println!("{short} seed {start} + {number}: {:?}", play.rule.case.quota);
        for _ in 0..TURNS {
            play.take_permits();
            play.spend_or_return();
            play.passes();
        }
        refused = [refused[0] + play.refused[0], refused[1] + play.refused[1]];
        play.true_state();
        while !careless && !play.held.is_empty() {
            play.gives_back(0);
        }
        if !careless {
            play.is_true();
        }
    }
    println!("{short}: {refused:?} refused for good and for what is outstanding");
    assert!(refused.iter().all(|count| *count > 20), "too tame");
}

impl Play<'_> {
    /// Without outstanding permits, the remaining ones are the limit minus the spent ones.
    fn is_true(&mut self) {
        let charge = self.rule.charge(1, 0, 0);
        let left = self.decide(charge).remaining;
        let true_state =
            self.rule.case.algorithm.balance(&self.true_state(), at(self.now)).remaining;
        match self.rule.entry.short {
            "TB" => {
                let most_out = self.rule.case.algorithm.properties().most_out;
                assert!(
                    left <= true_state && true_state <= left + most_out + 1,
                    "{left} of {true_state}"
                );
            }
            _ => assert_eq!(left, true_state),
        }
    }
}

#[test]
fn fixed_window_refuses_finally_only_for_usage() {
    play("W", false);
}

#[test]
fn sliding_window_refuses_finally_only_for_usage() {
    play("SW", false);
}

#[test]
fn token_bucket_refuses_finally_only_for_usage() {
    play("TB", false);
}

#[test]
fn late_or_missing_returns_break_no_bound() {
    for short in ["W", "SW", "TB"] {
        play(short, true);
    }
}
