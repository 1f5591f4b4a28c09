//! The result of a question to Redis.

use super::protocol::Reply;
use diana_policy::time::{Micros, Now};

/// The result of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionResult {
    /// Redis decided.
    Decided {
        /// The reply.
        reply: Reply,
        /// Ticks until the request may proceed by all questions of this ask; `None` if it was refused, without a charge.
        wait: Option<Micros>,
        /// When it was asked.
        sent: Now,
        /// When it decided, on this gateway's monotonic clock.
        at: Micros,
    },
    /// Redis is unavailable, so that the gateway decides.
    Degraded,
    /// The question was lost: callers are hashed with another secret from now on, or the root of the call has ended. The
    /// request must be decided again.
    Repeat,
}
