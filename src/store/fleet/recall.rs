//! What is decided without asking Redis: by a lease, by a refusal that lasts, or not yet.

use super::{Fleet, Source};
use crate::decision::Decision;
use crate::store::lease::{RECHECK, Refusal};

impl Fleet {
    /// Decides without asking Redis, if that can be done.
    pub(super) fn recall(&mut self, alone: bool) -> Option<Decision> {
        let (key, now, cost) = (self.key, self.now, self.meter.cost);
        let lease = self.leases.find(key)?;
        lease.demand.see(now);
        let before = lease.turn(cost, now);
        let lease = *lease;
        before.into_iter().for_each(|(block, left)| self.give_back_block(key, block, left));
        if lease.has(cost, now) {
            self.source = Source::Lease;
            return Some(Decision::NOW);
        }
        if alone {
            return None;
        }
        let pressing = self.lends && lease.is_pressing(now);
        if let Some(refusal) = lease.refusal.at(now) {
            if pressing && refusal.loan == 0 && refusal.retry <= self.ahead {
                self.ask_for_more();
            }
            return Some(self.refused(refusal));
        }
        if !pressing {
            return None;
        }
        if self.gather > 0 && lease.is_crowded(now) {
            self.ask_for_more();
            let refusal = Refusal { retry: self.patience, ..Refusal::default() };
            return Some(self.refused(refusal));
        }
        // More is asked for once for all that wait, and its answer is what they wait for.
        let pause = lease.pause(self.gather, now).map(|(rest, _)| rest);
        if pause.is_none() && !lease.asking {
            self.ask_for_more();
        }
        let ticks = pause.unwrap_or(RECHECK);
        Some(self.refused(Refusal { retry: ticks, loan: ticks, left: 0 }))
    }

    fn refused(&mut self, refusal: Refusal) -> Decision {
        self.refusal = refusal;
        Decision::retry(refusal.retry)
    }
}
