//! What requests turned out to use.

use super::RedisStore;
use crate::permit::Unsettled;
use crate::redis::handle::Handle;
use crate::redis::protocol::{Back, Charge};
use crate::settlement::Settlement;
use crate::time::Now;

impl RedisStore {
    /// As [`Store::settle`](crate::store::Store::settle).
    pub fn settle(&mut self, charge: &Unsettled, now: Now, handle: &mut Handle) -> bool {
        let (key, settlement) = (charge.key, charge.settlement());
        if charge.is_alone {
            return self.share.last().settle(key, &settlement, now);
        }
        let Settlement { receipt, used, .. } = settlement;
        if self.is_held {
            handle.ledgers.free(handle.parts.of(key), self.nothing(key), receipt);
            return true;
        }
        self.share.note(key, used, now);
        let counted = self.terms.spec.keeps_used.then_some(used);
        if settlement.is_even() && counted.unwrap_or(0) == 0 {
            return true;
        }
        let back = match settlement.debt() {
            0 => Back::Cost { receipt, term: 0, permits: settlement.back() },
            permits => Back::Debt { receipt, permits },
        };
        let charge = Charge { back, counted, ..self.nothing(key) };
        handle.ledgers.add(handle.parts.of(key), charge);
        true
    }
}
