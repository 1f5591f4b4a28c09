//! A worker that leases, as simply as it can be done.

use diana_core::decision::Retry;
use diana_core::time::SECOND;

use kit::model::Outcome;
use kit::model::{Asked, Model, Receipts};
use kit::rules::Rule;

/// A caller who comes again within this time is worth a lease; one who does not has its back.
const IDLE: u64 = SECOND / 20;

/// How long before a lease is over it is spent no more, so that what is left can be given back.
const NOTICE: u64 = SECOND / 100;

#[derive(Default)]
pub struct Worker {
    /// Permits of the block, and those left of it.
    block: u64,
    left: u64,
    receipt: u64,
    term: u64,
    /// When it was asked for, and when it must be spent by.
    taken: u64,
    until: u64,
    used: u64,
    /// Permits to ask for the next time.
    want: u64,
    /// Until when a refusal is remembered.
    refused: u64,
    /// Requests that wait for an answer, and those that wait for the next call.
    asked: Vec<(Outcome, Vec<Receipts>)>,
    waiting: u64,
    /// All that had to wait.
    pub waited: u64,
}

impl Worker {
    /// How many requests are admitted at once, of one.
    pub fn request(&mut self, now: u64) -> u64 {
        if now < self.refused {
            return 0;
        }
        if self.left > 0 && now < self.until {
            self.left -= 1;
            self.used = now;
            return 1;
        }
        self.waiting += 1;
        0
    }

    /// Takes the answer to the last call, and makes the next. How many requests are admitted.
    pub fn step(&mut self, now: u64, redis: &mut Model, rules: &[Rule]) -> u64 {
        let mut admitted = self.answer(now);
        for _ in 0..std::mem::take(&mut self.waiting) {
            admitted += self.request(now);
        }
        let is_idle = now >= self.until || now >= self.used + IDLE;
        if self.waiting > 0 || self.block > 0 && is_idle {
            self.ask(now, redis, rules);
        }
        admitted
    }

    fn answer(&mut self, now: u64) -> u64 {
        let mut admitted = 0;
        for (outcome, receipts) in std::mem::take(&mut self.asked) {
            let opinion = outcome.rules[0];
            match opinion.retry {
                Some(Retry::After(ticks)) => self.refused = now + ticks.min(SECOND),
                Some(Retry::Soon | Retry::Never) => panic!("it costs one permit"),
                None => admitted += 1,
            }
            if opinion.block > 0 {
                (self.block, self.left) = (opinion.block, opinion.block);
                (self.receipt, self.term) = (receipts[0].lease, opinion.term);
                self.until = self.taken + opinion.spend - NOTICE.min(opinion.spend);
                self.used = now;
            }
        }
        admitted
    }

    fn ask(&mut self, now: u64, redis: &mut Model, rules: &[Rule]) {
        if now >= self.used.max(self.taken) + IDLE {
            self.want = 0;
        } else if now < self.taken + IDLE {
            self.want = (self.want * 2).clamp(1, 1 << 16);
        }
        self.waited += self.waiting;
        let mut asks =
            vec![Asked { unit_cost: 1, keys: 1, ..Asked::default() }; self.waiting.max(1) as usize];
        let cost = self.waiting.min(1);
        asks.iter_mut().for_each(|ask| ask.cost = cost);
        (asks[0].receipt, asks[0].block, asks[0].left) = (self.receipt, self.block, self.left);
        asks[0].term = self.term;
        if cost > 0 {
            asks.last_mut().unwrap().want = self.want;
            self.taken = now;
        }
        (self.block, self.left, self.waiting) = (0, 0, 0);
        let now = redis.at(now);
        self.asked = asks
            .into_iter()
            .map(|ask| redis.ask(rules, now, 0, std::slice::from_ref(&ask)))
            .collect();
        if cost == 0 {
            self.asked.clear();
        }
    }
}
