//! One rule of a question.

use std::sync::Arc;

use diana_algorithm::Algorithm;
use diana_policy::Quota;
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;
use diana_redis::protocol::RuleReply;

use super::bucket::Bucket;
use super::rule::Rule;
use super::slices::Slices;
use super::{Asked, CHECKS, FAR, LEASE, READ_USAGE, Receipts, State};
use crate::laws::case::Case;

/// An empty reply.
pub const NOTHING: RuleReply = RuleReply {
    retry: None,
    is_outstanding: false,
    remaining: 0,
    receipt: 0,
    term: 0,
    block: 0,
    lease: 0,
    charged: 0,
    spend: 0,
    overflow: false,
};

pub struct Look {
    pub(super) short: &'static str,
    pub(super) algorithm: Arc<dyn Algorithm>,
    pub(super) quota: Quota,
    /// Whether the rule holds requests.
    pub(super) holds: bool,
    /// Of a token bucket.
    pub(super) burst: Option<u64>,
    /// Of a sliding window.
    pub(super) slices: Option<Slices>,
    pub asked: Asked,
    pub(super) state: State,
    pub(super) new: Vec<u64>,
    decision: Decision,
    /// The delay by another rule, beyond the request's own turn.
    pub(super) put_off: Option<u64>,
    pub(super) changed: bool,
}

impl Look {
    pub fn new(rules: &[Rule], state: Option<&State>, asked: &Asked, now: Now) -> Look {
        let Rule { entry, case: Case { quota, algorithm }, .. } = &rules[asked.rule];
        let (quota, algorithm) = (*quota, algorithm.clone());
        let holds = entry.short == "LB" || quota.max_delay.is_some_and(|delay| delay > 0);
        let burst = (entry.short == "TB").then(|| quota.burst.unwrap_or(quota.rpu));
        let slices = (entry.short == "SW").then(|| Slices::new(&quota));
        let zeros = vec![0; algorithm.properties().words];
        let used = asked.counted.map(|_| zeros.clone());
        let nobody = || State { words: zeros, used, ..State::default() };
        let state = state.cloned().unwrap_or_else(nobody);
        let (new, decision) = (state.words.clone(), Decision::NOW);
        let changed = asked.block + asked.left + asked.debt + asked.counted.unwrap_or(0) > 0;
        let put_off = None;
        let asked = asked.clone();
        let mut look = Look {
            short: entry.short,
            algorithm,
            quota,
            holds,
            burst,
            slices,
            asked,
            state,
            new,
            decision,
            put_off,
            changed,
        };
        let cost = look.asked.cost;
        look.open(now);
        look.owe(now, look.asked.debt);
        look.asked.arrears = look.asked.arrears.min(look.most_owed(now));
        look.owe(now, look.asked.arrears);
        look.count(now);
        look.reset(now);
        if cost > 0 {
            look.decision = look.reserve(now, 0);
        }
        look
    }

    /// Returns true if the rule admits the request.
    pub fn agrees(&self) -> bool {
        self.asked.shadow || self.decision.is_admitted()
    }

    /// The delay by this rule.
    pub fn turn(&self) -> u64 {
        match self.decision {
            Decision::Admit { wait } if !self.asked.shadow => wait,
            _ => 0,
        }
    }

    /// Another rule holds the request.
    pub fn put_off(&mut self, now: Now, delay: u64) {
        if self.asked.cost > 0 && !self.asked.shadow && self.turn() < delay {
            self.put_off = Some(delay);
            self.decision = self.reserve(now, delay);
        }
    }

    /// Charges the request if all rules admit it, for a departure after `delay`.
    pub fn conclude(&mut self, now: Now, delay: Option<u64>) -> (RuleReply, Receipts) {
        if self.asked.what >= READ_USAGE {
            return self.usage(now);
        }
        let mut refusal = self.decision;
        let mut block = 0;
        let mut charged = false;
        let delay = delay.filter(|_| self.asked.what != CHECKS);
        let mut wanted = self.asked.cost;
        if let (Some(delay), Decision::Admit { wait }) = (delay, self.decision) {
            if self.asked.cost > 0 {
                assert!(self.reserve(now, self.put_off.unwrap_or(0)).is_admitted());
                self.keep();
            }
            if (if self.asked.shadow { wait } else { delay }) == 0 {
                block = self.lend(now);
            }
            let tentative = if self.asked.tentative { self.asked.cost } else { 0 };
            self.state.terms.goes_out(block, tentative);
            charged = self.asked.cost + block > 0;
            self.changed |= charged;
            if !charged && self.asked.want > 0 {
                wanted = self.asked.unit_cost;
                refusal = self.fits(now, 0, wanted);
            }
        }
        let retry = match refusal {
            Decision::Admit { .. } => None,
            Decision::Refuse { retry: Retry::After(ticks) } => Some(Retry::After(ticks.min(FAR))),
            Decision::Refuse { retry } => Some(retry),
        };
        let is_outstanding = matches!(retry, Some(Retry::After(_))) && self.state.terms.out() > 0;
        let retry = match is_outstanding {
            true => retry,
            false => retry.map(|retry| self.unless_reserved(now, wanted, retry)),
        };
        let words = &self.state.words;
        let spend = match self.algorithm.spend_by(words, now) {
            Some(until) if charged => until.min(now.mono + LEASE),
            None if charged => now.mono + LEASE,
            _ => now.mono,
        };
        let spend = spend - now.mono;
        let term = if charged { self.state.terms.term } else { 0 };
        let remaining = self.left(now);
        let own = match self.refills() {
            true => now.mono,
            false if self.holds => self.turn_of(words),
            false => self.algorithm.receipt(words),
        };
        let reply = RuleReply { retry, is_outstanding, remaining, term, block, spend, ..NOTHING };
        (reply, Receipts { cost: own, lease: own })
    }

    /// The written state, if there is a write. The inner `None` deletes the state.
    pub fn written(&self, now: Now) -> Option<Option<State>> {
        let expires = self.algorithm.expires(&self.state.words, now);
        let lives = match self.slices {
            Some(slices) => slices.used(&self.state.words, now.mono) > 0,
            None => expires > now.mono || self.refills() && self.state.terms.leased() > 0,
        };
        let mut state = self.state.clone();
        if !lives && self.is_window() {
            state.words.fill(0);
        }
        self.changed.then(|| (lives || self.has_used(now)).then_some(state))
    }

    /// Returns true for a token bucket that does not hold requests.
    pub(super) fn refills(&self) -> bool {
        let nobody = vec![0; self.state.words.len()];
        self.algorithm.spend_by(&nobody, Now::default()) == Some(u64::MAX)
    }

    pub(super) fn bucket(&self) -> Option<Bucket> {
        let (algorithm, unit) = (self.algorithm.clone(), self.quota.period());
        self.refills().then_some(Bucket { algorithm, unit })
    }

    /// Returns true for a window that is aligned to the clock.
    pub(super) fn is_window(&self) -> bool {
        !self.holds && !self.refills() && self.slices.is_none()
    }

    /// Advances the state to `now`, and applies returns.
    fn open(&mut self, now: Now) {
        if let Some(slices) = self.slices {
            slices.charge(&mut self.state.words, 0, now.mono);
        }
        let bucket = self.bucket();
        bucket.iter().for_each(|bucket| bucket.settle(&mut self.state, now.mono));
        self.state.terms.age(now.mono);
        if self.asked.block + self.asked.left > 0 {
            self.take_back(now.mono);
        }
        if self.is_window() && self.algorithm.expires(&self.state.words, now) <= now.mono {
            self.state.terms.nothing_is_out();
        }
    }

    /// Charges permits that were already used.
    fn owe(&mut self, now: Now, debt: u64) {
        self.changed |= debt > 0;
        match self.slices {
            Some(slices) if debt > 0 => {
                slices.charge(&mut self.state.words, debt, now.mono);
            }
            _ if debt > 0 => {
                let debit = Settlement::debit(debt);
                self.algorithm.settle(&self.state.words, now, &debit, &mut self.new);
                self.keep();
            }
            _ => {}
        }
    }

    /// The remaining permits.
    pub(super) fn left(&self, now: Now) -> u64 {
        self.algorithm.balance(&self.state.words, now).remaining
    }

    /// The most arrears to charge: in a sliding window all that the newest slice has room for, since they must count until
    /// they expire; in a bucket its permits and a debt.
    fn most_owed(&self, now: Now) -> u64 {
        match self.slices {
            Some(slices) => {
                self.quota.rpu.saturating_sub(slices.newest(&self.state.words, now.mono))
            }
            None if self.refills() => {
                let charged = self.algorithm.balance(&self.state.words, now).charged;
                (self.burst.unwrap_or(0) + self.asked.overdraft).saturating_sub(charged)
            }
            None => self.left(now),
        }
    }

    fn reserve(&mut self, now: Now, delay: u64) -> Decision {
        self.fits(now, delay, self.asked.cost)
    }

    /// The decision about `cost` permits.
    pub(super) fn fits(&mut self, now: Now, delay: u64, cost: u64) -> Decision {
        self.algorithm.step(&self.state.words, now, delay, cost, &mut self.new)
    }

    pub(super) fn keep(&mut self) {
        std::mem::swap(&mut self.state.words, &mut self.new);
    }
}
