//! Requests, and orders of operators, that wait for replies of an authority.

use crate::check::InProgress;
use crate::operator::{CallerInquiry, CallerQuery, OrderResult};
use diana_policy::time::Micros;
use diana_store::usage::Order;

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

/// An order of an operator.
pub(crate) struct PendingOrder {
    /// The rule's number.
    pub(crate) rule: usize,
    pub(crate) order: Order,
    pub(crate) query: CallerQuery,
    /// The stream of its request, by the host's number.
    pub(crate) stream: u32,
    /// An inquiry for each of its callers.
    pub(crate) callers: Vec<CallerInquiry>,
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

/// A request that waits, or has waited, for replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiter {
    /// Its number in the limiter; 0 if it has not waited.
    pub id: u64,
    /// Its stream, by the host's number.
    pub stream: u32,
    /// Since when it waits for the replies of a round.
    pub since: Micros,
}
