//! What is leased to a caller, and for how long a refusal is one for what is out only.

use diana_core::decision::{Decision, Retry};
use diana_core::redis::protocol::RuleReply;
use diana_core::time::Now;

use super::look::{Look, NOTHING};
use super::slices::Next;
use super::{Asked, IDLE, LEASE, LONG, Receipts, SOON, State};

impl Look {
    pub(super) fn lend(&mut self, now: Now) -> u64 {
        if self.algorithm.spend_by(&self.state.words, now).is_none() {
            return 0;
        }
        // Whether there is room for a permit or not, it would have to be spent by then.
        let life = match self.fits(now, 0, 1) {
            Decision::Admit { .. } => self.algorithm.spend_by(&self.new, now),
            Decision::Refuse { .. } => return 0,
        };
        let life = life.map_or(0, |until| (until - now.mono).min(LEASE));
        let block = self.block_of(self.left(now), life);
        if block > 0 {
            assert_eq!(self.fits(now, 0, block), Decision::NOW);
            self.take(block, now.mono);
        }
        block
    }

    /// A block out of what is left, which can be spent for `life` ticks.
    fn block_of(&self, left: u64, life: u64) -> u64 {
        let Asked { want, soon, unit_cost, .. } = self.asked;
        let part = |permits: u64, span| match life {
            _ if life < span => (permits * life).div_ceil(span),
            _ => permits,
        };
        let soon = part(soon, SOON);
        let want = part(want, IDLE).max(soon);
        let left = (left / 8).max(soon.min(left));
        let room = self.algorithm.most_out().saturating_sub(self.state.terms.leased());
        want.min(left).min(room).min(1 << 16) / unit_cost * unit_cost
    }

    /// A block of the next slice, if only that is asked for and it begins soon.
    pub(super) fn lend_ahead(&mut self, now: u64) -> Option<(RuleReply, Receipts)> {
        let slices = self.slices.filter(|_| self.asked.cost == 0 && self.asked.want > 0)?;
        let rpu = self.quota.rpu;
        let State { words, next, .. } = &mut self.state;
        let Next { begins, ends, left } = slices.next(words, *next, rpu, now)?;
        let ends = ends.min(now + LEASE);
        let block = self.block_of(left, ends - begins);
        if block == 0 {
            return None;
        }
        self.state.next += block;
        self.state.terms.goes_out(block, 0);
        self.changed = true;
        let lease = slices.at(now) + 1;
        let remaining = self.left(Now { mono: now, wall: now });
        let starts = begins - now;
        let (term, spend) = (self.state.terms.term, ends - now);
        let opinion = RuleReply { remaining, term, block, starts, spend, ..NOTHING };
        Some((opinion, Receipts { cost: 0, lease }))
    }

    /// How long the refusal lasts, and ticks until what is out is over, if nothing else refuses the request.
    pub(super) fn loan(&mut self, now: Now, cost: u64, retry: u64) -> (u64, u64) {
        let (out, slack) = (self.state.terms.out(), self.state.slack);
        match self.without(now, cost, out) {
            Decision::Admit { .. } => (retry, retry.min(self.state.terms.over() - now.mono)),
            Decision::Refuse { retry: Retry::After(ticks) } if ticks <= slack => {
                (retry, retry.min(2 * LONG))
            }
            Decision::Refuse { retry: Retry::After(ticks) } => (retry.min(ticks - slack), 0),
            Decision::Refuse { retry: Retry::Soon | Retry::Never } => (retry, 0),
        }
    }

    /// The decision if so many permits came back.
    fn without(&mut self, now: Now, cost: u64, permits: u64) -> Decision {
        let State { words, next, .. } = &self.state;
        if let Some(slices) = self.slices {
            // More may be out than is charged, where a reset came between.
            let used = slices.used(words, *next, now.mono) + cost;
            let over = used.saturating_sub(self.quota.rpu + permits);
            return slices.without(words, over, now.mono);
        }
        let (mut less, receipt) = (vec![0; words.len()], self.algorithm.receipt(words));
        self.algorithm.refund(words, receipt, permits, &mut less);
        let delay = self.put_off.unwrap_or(0);
        self.algorithm.reserve(&less, now, delay, cost, &mut self.new)
    }
}
