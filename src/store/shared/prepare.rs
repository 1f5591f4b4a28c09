//! What a charge writes: the state after the request, and a block for those that come next.

use super::{Meter, Shared, lent};
use crate::algorithm::Leasing;
use crate::decision::Decision;
use crate::store::lease::Block;
use crate::time::{Micros, SECOND};

/// A block is at most this part of what is left, so that blocks shrink to one as the limit nears; but
/// where permits come back one by one, a caller that wants more of them than there are gets what it needs while
/// more gather, or that part of what may be out.
const SHARE: u64 = 8;

/// How long permits that come back one by one gather for a caller that comes often and was refused:
/// otherwise it would ask, and write, for each of them.
const GATHER: Micros = SECOND / 100;

/// Ticks for which permits gather. No more comes back in that time than a small part of what there is
/// room for, so nothing is lost.
pub(in crate::store) fn gather(meter: &Meter) -> Micros {
    match meter.can().leasing {
        Leasing::Bucket => GATHER.min(meter.algorithm.policy().1 / 32),
        Leasing::Window | Leasing::Never => 0,
    }
}

impl Shared {
    pub(super) fn step(&mut self, permits: u64) -> Decision {
        let (state, now) = (self.view.state(), self.view.now());
        self.meter.algorithm.step(state, now, permits, &mut self.after)
    }

    /// The state after the charge of one request that leaves `delay` later, and of a new block if
    /// the caller is worth one.
    pub(super) fn prepare(&mut self, delay: Micros) -> Result<u64, Decision> {
        let cost = self.meter.cost;
        match self.step(cost) {
            Decision::Admit { wait } if wait > delay => Err(Decision::Admit { wait }),
            // Its own turn is not rounded to a tick, so that nothing adds up.
            Decision::Admit { wait } if wait < delay => {
                let (state, now) = (self.view.state(), self.view.now());
                let algorithm = &self.meter.algorithm;
                match algorithm.reserve(state, now, delay, cost, &mut self.after) {
                    Decision::Admit { .. } => Ok(0),
                    refusal @ Decision::Refuse { .. } => Err(refusal),
                }
            }
            Decision::Admit { .. } if delay > 0 => Ok(0),
            Decision::Admit { .. } => Ok(self.prepare_block()),
            refusal @ Decision::Refuse { .. } => Err(refusal),
        }
    }

    /// Charges a block beside the request, if there is one to be had.
    fn prepare_block(&mut self) -> u64 {
        let (Meter { algorithm, cost, .. }, now) = (&self.meter, self.view.now());
        if self.view.is_overflow() || algorithm.spend_by(&self.after, now).is_none() {
            return 0;
        }
        let Some(lease) = self.leases.claim(self.key) else { return 0 };
        let want = lease.demand.want(*cost, self.now);
        let waits = self.gather > 0 && lease.is_short(self.now);
        let soon = if waits { lease.demand.need(*cost, self.gather, self.now) } else { 0 };
        let left = algorithm.remaining(&self.after, now);
        let lent = self.view.lent();
        let room = algorithm.most_out().saturating_sub(lent.out()).min(lent.room());
        let most = (left / SHARE).max(soon.min(left).min(algorithm.most_out() / SHARE));
        let block = want.min(most).min(room) / cost * cost;
        if block > 0 && self.step(*cost + block) == Decision::NOW { block } else { 0 }
    }

    /// What the caller may spend later and what was charged for him.
    pub(super) fn remember(&mut self, permits: u64) {
        let (algorithm, now) = (&self.meter.algorithm, self.view.now());
        let term = self.view.lent().term();
        let block = Block { permits, term, receipt: algorithm.receipt(&self.after) };
        let until = algorithm.spend_by(&self.after, now).unwrap_or(0);
        let life = until.saturating_sub(now.mono).min(lent::life(self.now.mono));
        if permits > 0 {
            let above = algorithm.remaining(&self.after, now);
            self.leases.find(self.key).into_iter().for_each(|lease| lease.above = above);
        }
        self.leases.renew(self.key, block, life, self.now);
    }
}
