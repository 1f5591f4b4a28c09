//! Random questions: charges, and returns of earlier ones.

use diana_policy::time::SECOND;
use diana_redis::protocol::{Ask, Charge, Effect};
use diana_store::slots::arrears::Arrears;

use super::{Held, MOST, Play};
use crate::model::{Asked, CHECKS, READ_USAGE, REPORT, RESET};
use crate::rules::{Rule, ask_of};

impl Play {
    /// A random question.
    pub(super) fn ask(&mut self, delay: u64, cost: u64) -> (Ask, Vec<Asked>) {
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
        (entry.capabilities)(&case.quota).settles
    }

    fn charge(&mut self, rule: usize, cost: u64) -> (Charge, Asked) {
        let rng = &mut self.rng;
        // Two of them have the same overflow bucket.
        let caller = [0, 1, 1024][rng.usize(0..3)];
        let quota = self.rules[rule].case.quota;
        let cost = match rng.u8(0..6) {
            0 => 0,
            1..=3 => quota.cost,
            _ => cost,
        };
        let want = if rng.bool() { 1 << rng.u8(0..20) } else { 0 };
        // All questions of a batch have the same unit cost. It matters only where leases are
        // impossible.
        let queues = (self.rules[rule].entry.capabilities)(&quota).queues;
        let whole = queues || rng.bool();
        let unit_cost = if whole { quota.cost } else { 1 };
        let shadow = rng.u8(0..6) == 0;
        let tentative = rng.u8(0..3) == 0;
        let plain = self.rules[rule].charge(caller, cost, want);
        let keys = [1, 2, 100][rng.usize(0..3)];
        let ahead = (SECOND / 50) << rng.u8(0..5);
        let mut charge = Charge { unit_cost, ahead, shadow, tentative, keys, ..plain };
        if charge.counted.is_some() && rng.u8(0..4) == 0 {
            charge.counted = Some(rng.u64(0..=quota.rpu.clamp(1, MOST)));
        }
        let counted = charge.counted;
        let plain =
            Asked { rule, caller, cost, unit_cost, want, ahead, counted, ..Asked::default() };
        let mut asked = Asked { shadow, tentative, keys, ..plain };
        if rng.u8(0..8) == 0 {
            (charge.checks, asked.what) = (true, CHECKS);
            (charge.tentative, asked.tentative) = (false, false);
        }
        let holds = quota.max_delay.is_some_and(|delay| delay > 0);
        if rng.u8(0..12) == 0 && !holds && !queues {
            let nothing = self.rules[rule].charge(caller, 0, 0);
            let permits = rng.u64(0..=2 * quota.rpu.clamp(1, MOST));
            let report = Effect::Report { rule, plan: 0, term: 0, permits };
            let (effect, what, debt) = match rng.u8(0..3) {
                0 => (Effect::Reset, RESET, 0),
                1 => (Effect::ReadUsage, READ_USAGE, 0),
                _ => (report, REPORT, permits),
            };
            let counted = nothing.counted;
            let asked = Asked { rule, caller, unit_cost, keys, counted, what, ..Asked::default() };
            let asked = Asked { debt, ..asked };
            self.resets += usize::from(what == RESET);
            return (Charge { unit_cost, keys, effect, ..nothing }, asked);
        }
        let mine = |held: &Held| held.rule == rule && held.caller == caller;
        if rng.bool()
            && let Some(place) = self.held.iter().rposition(mine)
        {
            let held = self.held[place].clone();
            // Either the cost of a request, or a lease.
            if held.block == 0 || held.cost > 0 && rng.u8(0..3) == 0 {
                let term = if held.tentative { held.term } else { 0 };
                (asked.receipt, asked.block) = (held.own.cost, 0);
                self.held[place].cost = 0;
                if self.can_settle(rule) && self.rng.u8(0..4) == 0 {
                    self.owe(&mut charge, &mut asked, held.receipts.cost);
                } else {
                    let (receipt, permits) = (held.receipts.cost, held.cost);
                    charge.effect = Effect::ReturnCost { receipt, term, permits };
                    (asked.term, asked.left) = (term, held.cost);
                }
            } else {
                let left = rng.u64(0..=held.block);
                let Held { block, term, .. } = held;
                charge.effect =
                    Effect::ReturnBlock { receipt: held.receipts.lease, term, block, left };
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
        // Queue positions are not charged afterwards.
        if !holds && !queues && self.rng.u8(0..8) == 0 {
            self.add_arrears(&mut charge, &mut asked);
        }
        (charge, asked)
    }

    /// The gateway has arrears of the caller: more than in the latest question, as many, or a new total. Or a late question has
    /// those before.
    fn add_arrears(&mut self, charge: &mut Charge, asked: &mut Asked) {
        let rpu = self.rules[asked.rule].case.quota.rpu.clamp(1, MOST);
        let new = if self.rng.bool() { self.rng.u64(1..=rpu) } else { 0 };
        let [former, arrears] = self.arrears.entry((asked.rule, asked.caller)).or_default();
        charge.overdraft = self.rng.u64(0..=rpu);
        asked.overdraft = charge.overdraft;
        if former.total > 0 && self.rng.u8(0..6) == 0 {
            charge.arrears = Some(*former);
            return;
        }
        if self.rng.u8(0..3) == 0 {
            *former = *arrears;
            *arrears = Arrears { total: 0, since: arrears.since + self.rng.u64(1..9) };
        }
        arrears.total += new;
        if arrears.total > 0 {
            (charge.arrears, asked.arrears) = (Some(*arrears), new);
            self.in_arrears += usize::from(new > 0);
        }
    }

    /// More permits were used than were charged under `receipt`.
    fn owe(&mut self, charge: &mut Charge, asked: &mut Asked, receipt: u64) {
        let quota = self.rules[asked.rule].case.quota;
        let permits = self.rng.u64(1..=2 * quota.rpu.clamp(1, MOST));
        asked.debt = permits;
        charge.effect = Effect::ChargeDebt { receipt, permits };
        charge.counted = charge.counted.map(|counted| counted.max(permits));
        asked.counted = charge.counted;
        (charge.tentative, asked.tentative) = (false, false);
        (charge.checks, asked.what) = (false, 0);
        self.owed += 1;
    }
}
