//! Reads and resets a caller's usage in the fleet.

use super::RedisStore;
use crate::protocol::{Charge, Effect, Question, Reply, RuleReply};
use crate::results::QuestionResult;
use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_store::usage::{Order, OrderError, Usage};

impl RedisStore {
    /// Adds the question of an order.
    pub(super) fn query_usage(&mut self, key: Key, order: Order) -> Result<(), OrderError> {
        let effect = match order {
            Order::Reset => Effect::Reset,
            Order::Look | Order::Ban(_) | Order::Unban => Effect::ReadUsage,
        };
        if order == Order::Reset {
            self.can_reset()?;
        }
        let mut outbox = self.outbox.borrow_mut();
        if outbox.is_degraded(key) {
            return Err(OrderError::Unavailable);
        }
        outbox.ask(Question::Rule(Charge { effect, ..self.empty_charge(key) }));
        Ok(())
    }

    /// The usage after an order, by the result of its question.
    pub(super) fn usage(&mut self, key: Key, order: Order) -> Result<Usage, OrderError> {
        let reply = match self.result(key) {
            Some(QuestionResult::Decided { reply: Reply::Rule(reply), .. }) => reply,
            Some(QuestionResult::Repeat) => return Err(OrderError::Lost),
            _ => return Err(OrderError::Unanswered),
        };
        if order == Order::Reset {
            if reply.overflow {
                return Err(OrderError::Shared);
            }
            if let Some(lease) = self.leases.find(key) {
                lease.forget_refusal();
            }
        }
        Ok(self.read_usage(&reply))
    }

    /// Returns an error if the usage of this rule cannot be reset.
    fn can_reset(&self) -> Result<(), OrderError> {
        let unused = vec![0; self.parameters.spec.algorithm.properties().words];
        let mut new = unused.clone();
        match self.parameters.spec.daily {
            Some(_) => Err(OrderError::Quota),
            None if self.parameters.spec.algorithm.reset(&unused, Now::default(), 0, &mut new) => {
                Ok(())
            }
            None => Err(OrderError::InUse),
        }
    }

    /// A caller's usage, by the reply of Redis.
    fn read_usage(&self, reply: &RuleReply) -> Usage {
        // A reply to `ReadUsage` or `Reset` contains these values in the fields of the receipts.
        let RuleReply { remaining, receipt: leased, block: reserved, lease: ends, .. } = *reply;
        let charged = reply.charged;
        Usage {
            used: charged.saturating_sub(leased).saturating_sub(reserved),
            reserved,
            leased,
            remaining,
            ends,
            in_flight: self.is_in_flight.then_some(charged),
            is_shared: reply.overflow,
            ban: None,
        }
    }
}
