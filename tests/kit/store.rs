//! Stores of several workers, and rules for them.

pub mod gateway;
pub mod rule;

use std::cell::RefCell;
use std::rc::Rc;

use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;
use diana_redis::outbox::Outbox;
use diana_redis::protocol::Question;
use diana_redis::shard::Shards;
use diana_request::settling::{GrpcOutcome, HeaderUsage};
use diana_store::permit::OpenCharge;
use diana_store::refusal::Reason;
use diana_store::replies::{QuestionResult, Replies};
use diana_store::usage::{Order, OrderError, Usage};
use diana_store::{Account, Reservation, Store};

/// The outbox of a `global` store, with an available Redis of one shard.
pub fn together() -> Rc<RefCell<Outbox>> {
    Rc::new(RefCell::new(Outbox::new(OnFailure::Gateway, Shards::ONE)))
}

/// The result of a question.
pub fn answer(question: Question, result: QuestionResult) -> Replies {
    let mut replies = Replies::default();
    replies.add([(question, result)]);
    replies
}

/// A caller under a plan.
pub fn account(key: Key, plan: usize) -> Account {
    Account { key, plan: plan as u64 }
}

/// The charge of a request that has ended.
pub fn ended(account: impl Into<Account>, settlement: &Settlement) -> OpenCharge {
    let Account { key, plan } = account.into();
    let Settlement { receipt, since, reserved, used } = *settlement;
    let (header_usage, grpc) = (HeaderUsage::default(), GrpcOutcome::default());
    let (is_identified, is_degraded) = (true, false);
    OpenCharge {
        key,
        receipt,
        since,
        reserved,
        used,
        rule: 0,
        plan,
        header_usage,
        grpc,
        is_identified,
        is_degraded,
    }
}

/// The charge of a request that left before its turn.
pub fn left(key: Key, receipt: u64, cost: u64) -> OpenCharge {
    ended(key, &Settlement { receipt, since: 0, reserved: cost, used: 0 })
}

/// The decision of a check.
pub trait Decided {
    /// The decision. Admitted if an authority must reply first.
    fn decision(&self) -> Decision;

    /// Returns true if it is refused while other workers hold leases of the caller.
    fn is_outstanding(&self) -> bool;
}

impl Decided for Reservation {
    fn decision(&self) -> Decision {
        let refused = self.refused().map(|refused| Decision::Refuse { retry: refused.retry });
        refused.unwrap_or(Decision::Admit { wait: self.wait() })
    }

    fn is_outstanding(&self) -> bool {
        self.refused().is_some_and(|refused| refused.reason == Reason::Outstanding)
    }
}

/// Requests under a single rule, and orders about its callers.
pub trait Take {
    /// Checks a request.
    fn checked(&mut self, account: Account, cost: u64, now: Now) -> Reservation;

    /// Charges a request that leaves `delay` ticks after its check. Returns the decision.
    fn charged(&mut self, reservation: &mut Reservation, delay: u64) -> Decision;

    /// A caller's usage, after a reset if it `resets`.
    fn usage(&mut self, account: Account, resets: bool, now: Now) -> Result<Usage, OrderError>;

    /// Checks a request. Charges it if it may leave at once and its caller has a separate state,
    /// and then returns `None`. Never charges a request that Redis decides about.
    fn take(&mut self, account: impl Into<Account>, cost: u64, now: Now) -> Option<Reservation>;
}

impl<S: Store + ?Sized> Take for S {
    fn checked(&mut self, account: Account, cost: u64, now: Now) -> Reservation {
        let mut reservation = Reservation::new(account, cost, now);
        self.check(&mut reservation, Replies::none());
        reservation
    }

    fn charged(&mut self, reservation: &mut Reservation, delay: u64) -> Decision {
        self.charge(reservation, delay);
        if reservation.is_charged() {
            return Decision::Admit { wait: delay };
        }
        reservation.decision()
    }

    fn usage(&mut self, account: Account, resets: bool, now: Now) -> Result<Usage, OrderError> {
        let order = if resets { Order::Reset } else { Order::Look };
        self.inquire(account, order, Replies::none(), now)
    }

    fn take(&mut self, account: impl Into<Account>, cost: u64, now: Now) -> Option<Reservation> {
        let mut found = self.checked(account.into(), cost, now);
        let is_charged = !found.is_pending()
            && found.decision() == Decision::NOW
            && !found.is_overflow
            && self.charged(&mut found, 0).is_admitted();
        (!is_charged).then_some(found)
    }
}
