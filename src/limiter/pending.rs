//! Requests, and orders of operators, that wait for replies of an authority.

use crate::check::{InProgress, Waiter};
use crate::order::{OrderResult, PendingOrder};

/// A request or an order that waits.
pub(crate) struct Pending {
    /// Whether its client is gone.
    pub(crate) is_cancelled: bool,
    pub(crate) waiting: Waiting,
}

/// A pending request or order.
pub(crate) enum Waiting {
    Request(InProgress),
    Order(PendingOrder),
}

/// A request or an order that has its replies.
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

/// A request that has its replies.
pub struct ReadyRequest {
    /// Its number, its stream, and since when it waited.
    pub waiter: Waiter,
    pub(crate) progress: InProgress,
}
