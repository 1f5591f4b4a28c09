//! One rule of an ask.

use diana::algorithm::Algorithm;
use diana::decision::{Decision, Retry};
use diana::fleet::script::Opinion;
use diana::quota::Quota;
use diana::time::{Now, SECOND};

use super::{Asked, FAR, IDLE, Receipts, SOON, State, TERM};
use crate::case::Case;
use crate::rules::Rule;

pub struct Look<'m> {
    algorithm: &'m dyn Algorithm,
    quota: &'m Quota,
    /// Whether it holds requests.
    holds: bool,
    pub asked: &'m Asked,
    state: State,
    new: Vec<u64>,
    decision: Decision,
    /// For how long another rule holds the request, beyond its own turn.
    put_off: Option<u64>,
    changed: bool,
}

impl<'m> Look<'m> {
    pub fn new(rules: &'m [Rule], state: Option<&State>, asked: &'m Asked, now: Now) -> Look<'m> {
        let Rule { entry, case: Case { quota, algorithm }, .. } = &rules[asked.rule];
        let algorithm = &**algorithm;
        let holds = entry.short == "LB" || quota.max_delay.is_some_and(|delay| delay > 0);
        let nobody = || State { words: vec![0; algorithm.words()], term: 0, out: [0, 0] };
        let state = state.cloned().unwrap_or_else(nobody);
        let (new, decision) = (state.words.clone(), Decision::NOW);
        let changed = asked.block + asked.left > 0;
        let put_off = None;
        let mut look =
            Look { algorithm, quota, holds, asked, state, new, decision, put_off, changed };
        look.settle(now.mono);
        look.take_back();
        if asked.cost > 0 {
            look.decision = look.reserve(now, 0);
        }
        look
    }

    /// Whether it lets the ask go on.
    pub fn agrees(&self) -> bool {
        self.asked.shadow || self.decision.is_admitted()
    }

    /// Until when it holds the ask.
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

    /// Charges it if all agreed, to leave `delay` later.
    pub fn conclude(&mut self, now: Now, delay: Option<u64>) -> (Opinion, Receipts) {
        let mut refusal = self.decision;
        let mut block = 0;
        let mut charged = false;
        if let (Some(delay), Decision::Admit { wait }) = (delay, self.decision) {
            if self.asked.cost > 0 {
                assert!(self.reserve(now, self.put_off.unwrap_or(0)).is_admitted());
                self.keep();
            }
            if (if self.asked.shadow { wait } else { delay }) == 0 {
                block = self.lend(now);
            }
            charged = self.asked.cost + block > 0;
            self.changed |= charged;
            if !charged && self.asked.want > 0 {
                let (words, grain) = (&self.state.words, self.asked.grain);
                refusal = self.algorithm.reserve(words, now, 0, grain, &mut self.new);
            }
        }
        let retry = match refusal {
            Decision::Admit { .. } => None,
            Decision::Refuse { retry: Retry::After(ticks) } => Some(Retry::After(ticks.min(FAR))),
            Decision::Refuse { retry: Retry::Never } => Some(Retry::Never),
        };
        let words = &self.state.words;
        let spend = match self.algorithm.spend_by(words, now) {
            Some(u64::MAX) => (self.state.term + 2) * TERM,
            Some(until) if charged => until,
            _ => now.mono,
        };
        let spend = (spend - now.mono).min(SECOND);
        let remaining = self.algorithm.remaining(words, now);
        let own = if self.holds { self.turn_of(words) } else { self.algorithm.receipt(words) };
        let receipts = if self.refills() {
            Receipts { cost: now.mono, lease: self.state.term }
        } else {
            Receipts { cost: own, lease: own }
        };
        (Opinion { retry, remaining, receipt: 0, block, lease: 0, starts: 0, spend }, receipts)
    }

    /// What is written, if anything is: a state, or nothing.
    pub fn written(&self, now: Now) -> Option<Option<State>> {
        let expires = self.algorithm.expires(&self.state.words, now);
        let lives = expires > now.mono || self.out() > 0;
        self.changed.then(|| lives.then(|| self.state.clone()))
    }

    /// A token bucket that holds no requests.
    fn refills(&self) -> bool {
        let nobody = vec![0; self.state.words.len()];
        self.algorithm.spend_by(&nobody, Now::default()) == Some(u64::MAX)
    }

    fn out(&self) -> u64 {
        self.state.out.iter().sum()
    }

    fn settle(&mut self, now: u64) {
        while self.out() > 0 {
            let (ends, out) = ((self.state.term + 1) * TERM, self.out());
            self.algorithm.hold_back(&self.state.words, out, ends.min(now), &mut self.new);
            self.keep();
            if now < ends {
                return;
            }
            self.state.term += 1;
            self.state.out = [self.state.out[1], 0];
        }
        self.state.term = self.state.term.max(now / TERM);
    }

    fn take_back(&mut self) {
        let Asked { receipt, block, left, .. } = *self.asked;
        let words = &self.state.words;
        if self.refills() && block > 0 {
            let age = self.state.term.checked_sub(receipt).filter(|age| *age < 2);
            let Some(age) = age else { return };
            let out = &mut self.state.out[1 - age as usize];
            let Some(rest) = out.checked_sub(block) else { return };
            *out = rest;
            self.algorithm.refund(words, 0, left, &mut self.new);
        } else if self.refills() {
            self.algorithm.take_back(words, 0, left, receipt, &mut self.new);
        } else if self.holds {
            let back = if self.turn_of(words) == receipt { left } else { 0 };
            self.algorithm.refund(words, self.algorithm.receipt(words), back, &mut self.new);
        } else {
            self.algorithm.refund(words, receipt, left, &mut self.new);
        }
        self.keep();
    }

    /// The end of the queue in whole permits. Nobody who was charged since leaves it the same, though
    /// one may have been put off by others and have gone.
    fn turn_of(&self, words: &[u64]) -> u64 {
        let [low, high, at] = *words else { panic!("no debt: {words:?}") };
        let amount = u128::from(high) << 64 | u128::from(low);
        let end = u128::from(at) * u128::from(self.quota.rpu) + amount;
        u64::try_from(end / u128::from(self.quota.period())).unwrap()
    }

    fn lend(&mut self, now: Now) -> u64 {
        if self.algorithm.spend_by(&self.state.words, now).is_none() {
            return 0;
        }
        let Asked { want, soon, grain, .. } = *self.asked;
        let left = self.algorithm.remaining(&self.state.words, now);
        // Whether there is room for a permit or not, it would have to be spent by then.
        let life = match self.algorithm.step(&self.state.words, now, 1, &mut self.new) {
            Decision::Admit { .. } => self.algorithm.spend_by(&self.new, now),
            Decision::Refuse { .. } => return 0,
        };
        let life = life.map_or(0, |until| until - now.mono).min(SECOND);
        let part = |permits: u64, span| match life {
            _ if life < span => (permits * life).div_ceil(span),
            _ => permits,
        };
        let soon = part(soon, SOON);
        let want = part(want, IDLE).max(soon);
        let left = (left / 8).max(soon.min(left));
        let room = self.algorithm.most_out().saturating_sub(self.out());
        let block = want.min(left).min(room).min(1 << 16) / grain * grain;
        if block > 0 {
            let step = self.algorithm.step(&self.state.words, now, block, &mut self.new);
            assert_eq!(step, Decision::NOW);
            self.keep();
            if self.refills() {
                self.state.out[1] += block;
            }
        }
        block
    }

    fn reserve(&mut self, now: Now, delay: u64) -> Decision {
        let (old, cost) = (&self.state.words, self.asked.cost);
        self.algorithm.reserve(old, now, delay, cost, &mut self.new)
    }

    fn keep(&mut self) {
        std::mem::swap(&mut self.state.words, &mut self.new);
    }
}
