//! The answer to a refused request.

use crate::time::Micros;

/// The answer to a refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// 400 ..= 599.
    pub status: u16,
    /// The body, piece by piece; without a newline at its end, since gRPC clients get it as `grpc-message`.
    pub body: Vec<BodyPiece>,
    /// The body's media type.
    pub content_type: String,
    /// Headers to add, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Whether it is a problem of RFC 9457, which the body then is the detail of.
    pub is_problem: bool,
    /// Most ticks that are added to when to come back.
    pub jitter: Micros,
    /// In which fields it tells the limits.
    pub fields: LimitFields,
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPiece {
    /// This text.
    Text(String),
    /// The name of the rule that refuses, if it shows.
    Rule,
    /// Seconds until it makes sense to come back, if it ever does.
    RetryAfter,
    /// The limit of that rule.
    Limit,
    /// Permits that it has left.
    Remaining,
    /// The request's own id, if it has one that looks like one.
    Id,
}

/// Fields of a response that tell the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitFields {
    /// `ratelimit` and `ratelimit-policy` of the IETF's draft, of all rules.
    #[default]
    Ietf,
    /// `x-ratelimit-limit` and its like, of one rule.
    XRateLimit,
}
