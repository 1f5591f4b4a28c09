//! What is settled when the stream of a request ends, and what requests give back that did not go on.

use crate::limiter::Limiter;
use diana_policy::port::Ending;
use diana_policy::time::Now;
use diana_store::permit::{Permit, Unsettled};

impl Limiter {
    /// Notes what the headers of the response say to the request of a permit, which have just come.
    pub fn hear_response(&self, permit: &mut Permit, ending: &dyn Ending) {
        permit.each(|charge| {
            let judge = self.rules.get(charge.rule as usize);
            if let Some(settler) = judge.and_then(|judge| judge.settler.as_ref()) {
                let (heard, used) = settler.hear(ending);
                *charge = Unsettled { heard, ..charge.with_used(used) };
            }
        });
    }

    /// Settles what was reserved for a request whose stream has ended.
    pub fn settle(&mut self, permit: Permit, ending: &dyn Ending, now: Now) {
        permit.settle(|charge| {
            let reserved = charge.reserved.into();
            let Some(judge) = self.rules.get_mut(charge.rule as usize) else { return reserved };
            let Some(settler) = &judge.settler else { return reserved };
            if settler.is_place() {
                return 0;
            }
            let (used, untold) = settler.used(reserved, (charge.heard, charge.used.into()), ending);
            judge.counts.settle(reserved, used, untold);
            if let Some(bans) = judge.bans.as_mut().filter(|_| settler.bans())
                && used > 0
                && charge.is_own
            {
                bans.refused(charge.key, now.mono);
            }
            used
        });
        self.take_back(now);
    }

    /// Takes back what requests no longer need. It is done before any other request is decided about, and sooner
    /// where others count by the same state.
    #[inline(never)]
    pub fn take_back(&mut self, now: Now) {
        let mut charges = self.freed.take();
        charges.retain(|charge| !self.settle_one(charge, now));
        if !charges.is_empty() {
            self.freed.add(charges);
        }
    }

    /// Settles a charge. Whether that is done.
    fn settle_one(&mut self, charge: &Unsettled, now: Now) -> bool {
        let Some(judge) = self.rules.get_mut(charge.rule as usize) else { return true };
        let is_done = judge.store.settle(charge, now);
        if is_done && judge.settler.as_ref().is_some_and(|settler| settler.is_place()) {
            judge.counts.in_flight -= 1;
        }
        is_done
    }
}
