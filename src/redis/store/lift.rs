//! Reads and resets a caller's usage in the fleet.

use super::RedisStore;
use crate::protocol::{Back, Charge, Question, Reply, RuleReply};
use crate::settled::Settled;
use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_store::usage::{Cannot, Order, Usage};

impl RedisStore {
    /// Adds the question of an order. Returns its number.
    pub(super) fn ask_usage(&mut self, key: Key, order: Order) -> Result<usize, Cannot> {
        let back = match order {
            Order::Reset => Back::Lifts,
            Order::Look | Order::Ban(_) | Order::Unban => Back::Looks,
        };
        if order == Order::Reset {
            self.can_reset()?;
        }
        let mut handle = self.handle.borrow_mut();
        if handle.is_alone(key) {
            return Err(Cannot::Away);
        }
        Ok(handle.ask(Question::Rule(Charge { back, ..self.nothing(key) })))
    }

    /// The usage after an order, by the result of its question.
    pub(super) fn usage(
        &mut self,
        key: Key,
        order: Order,
        question: usize,
    ) -> Result<Usage, Cannot> {
        let reply = match self.handle.borrow_mut().take_result(question) {
            Some(Settled::Decided { reply: Reply::Rule(reply), .. }) => reply,
            Some(Settled::Again) => return Err(Cannot::Lost),
            _ => return Err(Cannot::Unheard),
        };
        if order == Order::Reset {
            if reply.overflow {
                return Err(Cannot::Shared);
            }
            if let Some(lease) = self.leases.find(key) {
                lease.forget_refusal();
            }
        }
        Ok(self.read_usage(&reply))
    }

    /// Checks whether usage can be reset.
    fn can_reset(&self) -> Result<(), Cannot> {
        let nobody = vec![0; self.terms.spec.algorithm.properties().words];
        let mut new = nobody.clone();
        match self.terms.spec.daily {
            Some(_) => Err(Cannot::Quota),
            None if self.terms.spec.algorithm.reset(&nobody, Now::default(), 0, &mut new) => Ok(()),
            None => Err(Cannot::Line),
        }
    }

    /// A caller's usage, by the reply of Redis.
    fn read_usage(&self, reply: &RuleReply) -> Usage {
        // Such a reply has these values in place of receipts.
        let RuleReply { remaining, receipt: lent, block: reserved, lease: ends, .. } = *reply;
        let charged = reply.charged;
        Usage {
            used: charged.saturating_sub(lent).saturating_sub(reserved),
            reserved,
            lent,
            remaining,
            ends,
            in_flight: self.is_held.then_some(charged),
            is_shared: reply.overflow,
            ban: None,
        }
    }
}
