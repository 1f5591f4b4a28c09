//! Requests, and orders of operators, that wait for replies of Redis.

use crate::check::InProgress;
use crate::operator::{Order, OrderResult};
use diana_policy::key::Key;
use diana_policy::time::Micros;
use diana_redis::settled::Settled;
use diana_redis::target::Target;
use diana_request::identity::named::Named;

/// A request or an order that waits.
pub(crate) struct Pending {
    /// The stream of the request, by the host's number.
    pub(crate) stream: u32,
    /// Whether its client is gone.
    pub(crate) is_cancelled: bool,
    pub(crate) replies: Replies,
    pub(crate) waiting: Waiting,
}

/// What waits.
pub(crate) enum Waiting {
    Request(InProgress),
    Order(PendingOrder),
}

/// An order of an operator.
pub(crate) struct PendingOrder {
    /// The rule's number.
    pub(crate) rule: usize,
    pub(crate) order: Order,
    pub(crate) callers: Vec<Named>,
}

/// A request or an order that Redis has replied to.
pub enum Ready {
    /// [`Limiter::resume`](crate::Limiter::resume) continues the request.
    Request(ReadyRequest),
    /// An order is carried out, or has failed.
    Order {
        /// The stream of its request; none if its client is gone.
        stream: Option<u32>,
        /// The result.
        result: OrderResult,
    },
}

/// A request that Redis has replied to.
pub struct ReadyRequest {
    /// Its number, stream and replies.
    pub resumed: Resumed,
    pub(crate) progress: InProgress,
}

/// The number, the stream and the replies of a request that has waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    /// Its number in the limiter.
    pub id: u64,
    /// Its stream, by the host's number.
    pub stream: u32,
    /// Since when it waited.
    pub since: Micros,
    /// The replies.
    pub replies: Replies,
}

/// The questions of one request or order, which may lie in several parts of Redis, and the replies so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replies {
    questions: Vec<(Target, Key, Option<Settled>)>,
}

impl Replies {
    /// Adds a question about a caller. Returns its number.
    pub fn expect(&mut self, target: Target, caller: Key) -> usize {
        self.questions.push((target, caller, None));
        self.questions.len() - 1
    }

    /// Stores the reply to a question, unless there is one.
    pub fn settle(&mut self, question: usize, settled: Settled) {
        if let Some((_, _, known)) = self.questions.get_mut(question) {
            *known = known.or(Some(settled));
        }
    }

    /// Returns true if no reply is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.questions.iter().all(|(.., settled)| settled.is_some())
    }

    /// Returns true if there is such a question.
    #[must_use]
    pub fn is_about(&self, target: Target, caller: Key) -> bool {
        self.questions.iter().any(|(of, by, _)| (*of, *by) == (target, caller))
    }

    /// The reply to a question, if there are both.
    #[must_use]
    pub fn settled(&self, target: Target, caller: Key) -> Option<Settled> {
        let question = self.questions.iter().find(|(of, by, _)| (*of, *by) == (target, caller));
        question?.2
    }

    /// Returns true if the request must be decided again.
    #[must_use]
    pub fn is_again(&self) -> bool {
        self.questions.iter().any(|(.., settled)| *settled == Some(Settled::Again))
    }
}
