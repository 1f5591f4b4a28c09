//! Rules, questions and batches for tests.

use diana_algorithm::{Entry, REGISTRY};
use diana_policy::Quota;
use diana_policy::key::{Key, Seed};
use diana_policy::time::{Micros, Now, SECOND};
use diana_redis::protocol::{
    Ask, Charge, Effect, Numbers, Pipeline, Question, Refusals, Script, ScriptCall,
};
use diana_redis::shard::{Shard, Shards, Tags};
use fastrand::Rng;

use crate::laws::case::Case;
pub use crate::model::rule::Rule;
use crate::oracle::oracle;

/// The initial wall clock of tests, in microseconds of Unix time: the middle of an hour.
pub const START: Micros = 1_790_001_200 * SECOND;

/// The time in which a leased block is spent.
pub const AHEAD: Micros = SECOND / 50;

/// An algorithm by which Redis counts, by any number.
pub fn counted_in_redis(number: usize) -> &'static Entry {
    let counted: Vec<_> = REGISTRY.iter().filter(|entry| entry.codec.is_some()).collect();
    counted[number % counted.len()]
}

impl Rule {
    pub fn random(entry: &'static Entry, rng: &mut Rng) -> Rule {
        loop {
            if let Some(rule) = Rule::of(entry, Case::random(entry, rng)) {
                return rule;
            }
        }
    }

    /// Another rule of any kind, often at about the same rate.
    pub fn beside(&self, rng: &mut Rng) -> Rule {
        let entry = counted_in_redis(rng.usize(0..REGISTRY.len()));
        let case = if rng.bool() { self.case.beside(entry, rng) } else { None };
        case.and_then(|case| Rule::of(entry, case)).unwrap_or_else(|| Rule::random(entry, rng))
    }

    /// Changes the quota as a new configuration may, without changing the meaning of the state.
    pub fn change(&mut self, rng: &mut Rng) {
        let Quota { slices, zone, starts, max_delay, is_wide, .. } = self.case.quota;
        let next = (0..20).find_map(|_| {
            let mut next = self.case.beside(self.entry, rng)?;
            (next.quota.slices, next.quota.zone, next.quota.starts) = (slices, zone, starts);
            let fits = is_wide || !next.quota.is_wide;
            next.quota.is_wide = is_wide;
            next.algorithm = (self.entry.build)(&next.quota).ok()?;
            // Charges are returned differently depending on whether the rule holds requests.
            let same = next.quota.max_delay.is_some() == max_delay.is_some();
            Rule::of(self.entry, next).filter(|_| same && fits)
        });
        if let Some(next) = next {
            *self = Rule { fingerprint: self.fingerprint, counts: self.counts, ..next };
        }
    }

    /// Plans for the rule that are compatible with each other, its own quota first.
    pub fn plans(&self, rng: &mut Rng) -> Vec<Quota> {
        let mut plans = vec![self.case.quota];
        let mut plan = Rule::new(self.entry.short, self.case.quota);
        while plans.len() < 4 {
            plan.change(rng);
            plans.push(plan.case.quota);
        }
        let rates = || plans.iter().map(|quota| quota.rpu);
        let (slowest, fastest) = (rates().filter(|rpu| *rpu > 0).min(), rates().max());
        if oracle(self.entry.short).drains()
            && let Some(rpu) = slowest
        {
            let most =
                plans.iter().map(|quota| quota.burst.unwrap_or(quota.rpu).max(quota.cost)).max();
            let longest = most.unwrap_or(0).saturating_mul(plans[0].period()) / rpu;
            let common = |quota| Quota { slowest, fastest, longest: longest.min(1 << 50), ..quota };
            plans = plans.into_iter().map(common).collect();
        }
        plans
    }

    /// Applies one of the plans.
    pub fn use_plan(&mut self, plan: Quota) {
        let Rule { fingerprint, counts, .. } = *self;
        *self = Rule { fingerprint, counts, ..Rule::new(self.entry.short, plan) };
    }

    /// The question of one request.
    pub fn charge(&self, caller: u64, cost: u64, want: u64) -> Charge {
        let caller = Key { hash: caller, second_hash: !caller };
        Charge {
            cost,
            unit_cost: self.case.quota.cost,
            want,
            ahead: AHEAD,
            keys: 1_000_000,
            counted: self.counts.then_some(0),
            ..charge(self.fingerprint, caller, self.numbers)
        }
    }
}

/// The charge of one permit. It returns and settles no others.
pub fn charge(fingerprint: u64, caller: Key, numbers: Numbers) -> Charge {
    Charge {
        fingerprint,
        caller,
        numbers,
        cost: 1,
        unit_cost: 1,
        want: 0,
        ahead: 0,
        shadow: false,
        tentative: false,
        checks: false,
        keys: 100_000,
        effect: Effect::default(),
        counted: None,
        arrears: None,
        overdraft: 0,
    }
}

/// A batch of questions about one rule each.
pub fn pipeline(now: Option<u64>, charges: Vec<Charge>) -> Pipeline {
    pipeline_of_asks(now, charges.into_iter().map(|one| ask_of(0, vec![one])).collect())
}

/// A question about rules, with a delay by other rules.
pub fn ask_of(delay: u64, charges: Vec<Charge>) -> Ask {
    let questions = charges.into_iter().map(Question::Rule).collect();
    Ask { delay, questions, ..Ask::default() }
}

/// A batch of one call.
pub fn pipeline_of_asks(now: Option<u64>, asks: Vec<Ask>) -> Pipeline {
    pipeline_of_calls(now, vec![asks])
}

/// A batch with one call for each list of questions.
pub fn pipeline_of_calls(now: Option<u64>, calls: Vec<Vec<Ask>>) -> Pipeline {
    let call =
        |asks| ScriptCall { shard: Shard::FIRST, script: Script::Digest, asks, settles: None };
    let calls = calls.into_iter().map(call).collect();
    Pipeline {
        tags: Tags::new("test", Shards::ONE),
        seed: Seed { k0: 1, k1: 2 },
        gateway: 1,
        wall: now.unwrap_or(START),
        now,
        number: None,
        calls,
        rules: None,
        ordinal: None,
    }
}

/// The batch with another reference to the script.
pub fn by(script: Script, pipeline: &Pipeline) -> Pipeline {
    let mut pipeline = pipeline.clone();
    pipeline.calls.iter_mut().for_each(|call| call.script = script);
    pipeline
}

/// A batch with one question about a ban.
pub fn ban_pipeline(now: Option<u64>, refusals: Refusals) -> Pipeline {
    pipeline_of_asks(now, vec![Ask { questions: vec![Question::Ban(refusals)], ..Ask::default() }])
}

/// The unspent permits of a return.
pub fn left(effect: &mut Effect) -> Option<&mut u64> {
    match effect {
        Effect::None
        | Effect::ChargeDebt { .. }
        | Effect::Report { .. }
        | Effect::HoldSlots { .. }
        | Effect::FreeSlots { .. }
        | Effect::Heartbeat
        | Effect::ReadUsage
        | Effect::Reset => None,
        Effect::ReturnCost { permits, .. } => Some(permits),
        Effect::ReturnBlock { left, .. } => Some(left),
    }
}

/// The permits of a returned block.
pub fn block(effect: Effect) -> u64 {
    match effect {
        Effect::ReturnBlock { block, .. } => block,
        _ => 0,
    }
}

/// Redis has one clock.
pub fn at(now: u64) -> Now {
    Now { mono: now, wall: now }
}

/// A random instant of this century.
pub fn today(rng: &mut Rng) -> u64 {
    rng.u64(1_600_000_000_000_000..1_900_000_000_000_000)
}
