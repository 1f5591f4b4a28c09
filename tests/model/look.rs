//! One rule of an ask.

use diana::algorithm::Algorithm;
use diana::decision::{Decision, Retry};
use diana::fleet::script::Opinion;
use diana::quota::Quota;
use diana::time::{Now, SECOND};

use super::rule::Rule;
use super::slices::{Next, Slices};
use super::{Asked, FAR, IDLE, Receipts, SOON, State, TERM};
use crate::case::Case;

pub struct Look<'m> {
    algorithm: &'m dyn Algorithm,
    quota: &'m Quota,
    /// Whether it holds requests.
    holds: bool,
    /// Those of a sliding window.
    slices: Option<Slices>,
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
        let slices = (entry.short == "SW").then(|| Slices::new(quota));
        let nobody = || State { words: vec![0; algorithm.words()], ..State::default() };
        let state = state.cloned().unwrap_or_else(nobody);
        let (new, decision) = (state.words.clone(), Decision::NOW);
        let changed = asked.block + asked.left > 0;
        let put_off = None;
        let mut look =
            Look { algorithm, quota, holds, slices, asked, state, new, decision, put_off, changed };
        look.settle(now.mono);
        look.take_back(now.mono);
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
        if let Some(ahead) = delay.and_then(|_| self.lend_ahead(now.mono)) {
            return ahead;
        }
        if let (Some(delay), Decision::Admit { wait }) = (delay, self.decision) {
            if self.asked.cost > 0 {
                assert!(self.reserve(now, self.put_off.unwrap_or(0)).is_admitted());
                self.take(self.asked.cost, now.mono);
            }
            if (if self.asked.shadow { wait } else { delay }) == 0 {
                block = self.lend(now);
            }
            charged = self.asked.cost + block > 0;
            self.changed |= charged;
            if !charged && self.asked.want > 0 {
                refusal = self.fits(now, 0, self.asked.grain);
            }
        }
        let retry = match refusal {
            Decision::Admit { .. } => None,
            Decision::Refuse { retry: Retry::After(ticks) } => Some(Retry::After(ticks.min(FAR))),
            Decision::Refuse { retry: Retry::Never } => Some(Retry::Never),
        };
        let words = &self.state.words;
        let spend = match self.algorithm.spend_by(words, now) {
            Some(u64::MAX) | None => (self.state.term + 2) * TERM,
            Some(until) if charged => until,
            _ => now.mono,
        };
        let spend = (spend - now.mono).min(SECOND);
        let remaining = self.left(now);
        let own = if self.holds { self.turn_of(words) } else { self.algorithm.receipt(words) };
        let receipts = if self.refills() {
            Receipts { cost: now.mono, lease: self.state.term }
        } else {
            Receipts { cost: own, lease: if self.holds { self.state.term } else { own } }
        };
        (Opinion { retry, remaining, receipt: 0, block, lease: 0, starts: 0, spend }, receipts)
    }

    /// What is written, if anything is: a state, or nothing.
    pub fn written(&self, now: Now) -> Option<Option<State>> {
        let expires = self.algorithm.expires(&self.state.words, now);
        let lives = expires > now.mono || self.out() > 0 || self.state.next > 0;
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
        if let Some(slices) = self.slices {
            slices.turn(&mut self.state.words, &mut self.state.next, now);
        }
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

    /// Permits left.
    fn left(&self, now: Now) -> u64 {
        self.algorithm.remaining(&self.state.words, now).saturating_sub(self.state.next)
    }

    fn take_back(&mut self, now: u64) {
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
        } else if self.slices.is_some_and(|slices| receipt > slices.at(now)) {
            self.state.next = self.state.next.saturating_sub(left);
            return;
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
        let turn = end / u128::from(self.quota.period());
        (turn % (u128::from(self.quota.rpu.max(1)) << 22)) as u64
    }

    fn lend(&mut self, now: Now) -> u64 {
        if self.algorithm.spend_by(&self.state.words, now).is_none() {
            return 0;
        }
        // Whether there is room for a permit or not, it would have to be spent by then.
        let life = match self.fits(now, 0, 1) {
            Decision::Admit { .. } => self.algorithm.spend_by(&self.new, now),
            Decision::Refuse { .. } => return 0,
        };
        let life = life.map_or(0, |until| until - now.mono).min(SECOND);
        let block = self.block_of(self.left(now), life);
        if block > 0 {
            assert_eq!(self.fits(now, 0, block), Decision::NOW);
            self.take(block, now.mono);
            if self.refills() {
                self.state.out[1] += block;
            }
        }
        block
    }

    /// A block out of what is left, which can be spent for `life` ticks.
    fn block_of(&self, left: u64, life: u64) -> u64 {
        let Asked { want, soon, grain, .. } = *self.asked;
        let part = |permits: u64, span| match life {
            _ if life < span => (permits * life).div_ceil(span),
            _ => permits,
        };
        let soon = part(soon, SOON);
        let want = part(want, IDLE).max(soon);
        let left = (left / 8).max(soon.min(left));
        let room = self.algorithm.most_out().saturating_sub(self.out());
        want.min(left).min(room).min(1 << 16) / grain * grain
    }

    /// A block of the next slice, if only that is asked for and it begins soon.
    fn lend_ahead(&mut self, now: u64) -> Option<(Opinion, Receipts)> {
        let slices = self.slices.filter(|_| self.asked.cost == 0 && self.asked.want > 0)?;
        let State { words, next, .. } = &mut self.state;
        let Next { begins, ends, left } = slices.next(words, *next, self.quota.rpu, now)?;
        let block = self.block_of(left, ends - begins);
        let fits = block <= self.left(Now { mono: now, wall: now });
        if block == 0 {
            return None;
        }
        self.state.next += block;
        self.changed = true;
        let lease = slices.at(now) + 1;
        let remaining = self.left(Now { mono: now, wall: now });
        // What fits in the slice in force may be spent at once.
        let starts = if fits { 1 } else { begins - now };
        let spend = ends - now;
        let opinion =
            Opinion { retry: None, remaining, receipt: 0, block, lease: 0, starts, spend };
        Some((opinion, Receipts { cost: 0, lease }))
    }

    fn reserve(&mut self, now: Now, delay: u64) -> Decision {
        self.fits(now, delay, self.asked.cost)
    }

    /// The decision about `cost` permits.
    fn fits(&mut self, now: Now, delay: u64, cost: u64) -> Decision {
        let (next, rpu) = (self.state.next, self.quota.rpu);
        match self.slices {
            Some(slices) if cost <= rpu && cost + next > rpu => slices.wait(now.mono),
            _ => {
                let (old, new) = (&self.state.words, &mut self.new);
                self.algorithm.reserve(old, now, delay, cost + next, new)
            }
        }
    }

    /// Charges what fits.
    fn take(&mut self, cost: u64, now: u64) {
        match self.slices {
            Some(slices) if self.state.next > 0 => {
                slices.charge(&mut self.state.words, cost, now);
            }
            _ => self.keep(),
        }
    }

    fn keep(&mut self) {
        std::mem::swap(&mut self.state.words, &mut self.new);
    }
}
