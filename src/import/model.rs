//! Models of other limiters.

use std::fmt::Debug;

use diana_replay::Arrival;

/// The decision of a model about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelDecision {
    /// It passes at once.
    Passes,
    /// It passes after this number of milliseconds.
    Waits(u64),
    /// It is refused.
    Refused,
}

/// The behaviour of the original for one rule, or for one object.
pub trait LimiterModel: Debug {
    /// Forgets all requests.
    fn reset(&mut self);

    /// Decides about a request. Requests arrive in the order of their times.
    fn decide(&mut self, request: &dyn Arrival) -> ModelDecision;
}
