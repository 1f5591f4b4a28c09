//! The bans of a rule in Redis, which counts the refusals of all gateways.

use std::cell::RefCell;
use std::rc::Rc;

use super::outbox::{Operation, Outbox};
use super::protocol::{Numbers, Refusals};
use super::store::spread;
use diana_policy::Ban;
use diana_policy::key::Key;
use diana_store::CounterSpec;
use diana_store::backend::BanAuthority;

/// The bans of one rule in Redis.
pub struct RedisBans {
    outbox: Rc<RefCell<Outbox>>,
    /// The number of the rule in its limiter.
    number: usize,
    /// A question without a caller.
    question: Refusals,
}

impl RedisBans {
    /// The bans of the rule with this number, fingerprint and parameters.
    #[must_use]
    pub fn new(
        number: usize,
        fingerprint: u64,
        ban: &Ban,
        spec: &CounterSpec,
        outbox: Rc<RefCell<Outbox>>,
    ) -> RedisBans {
        let fingerprint = ban.fingerprint(fingerprint);
        let keys = spread(spec, &outbox.borrow()).share(spec.keys as u64);
        let question = Refusals {
            fingerprint,
            caller: Key::ALL,
            numbers: Numbers::of_ban(ban),
            refusals: 0,
            keys,
            sets: None,
            shadow: ban.is_shadow,
        };
        RedisBans { outbox, number, question }
    }
}

impl BanAuthority for RedisBans {
    fn question(&self, caller: Key) -> Refusals {
        Refusals { caller, ..self.question }
    }

    fn count(&self, caller: Key, refusals: u64) -> bool {
        let mut outbox = self.outbox.borrow_mut();
        if outbox.is_degraded(caller) {
            return false;
        }
        let question = Refusals { refusals, ..self.question(caller) };
        outbox.add(Operation::Ban(self.number, question));
        true
    }
}
