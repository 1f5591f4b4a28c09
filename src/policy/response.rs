//! The response to a refused request.

use std::sync::Arc;

use crate::time::Micros;

/// The response to a refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// 400 ..= 599.
    pub status: u16,
    /// The body in pieces. It has no trailing newline, since gRPC clients receive it as
    /// `grpc-message`.
    pub body: Vec<BodyPiece>,
    /// The media type of the body.
    pub content_type: String,
    /// Additional headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Whether the response is a problem of RFC 9457. The body is then its detail.
    pub is_problem: bool,
    /// Maximum random addition to the retry delay in ticks.
    pub jitter: Micros,
    /// The fields with the limits.
    pub fields: LimitFields,
    /// The gRPC status of a refusal by a limit: 8 or 14. Without its store a rule refuses with 14.
    pub grpc_status: u8,
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPiece {
    /// A fixed text. Most bodies are one, which their responses share.
    Text(Arc<str>),
    /// The name of the refusing rule, if it is exposed.
    Rule,
    /// The retry delay in seconds, if a retry can succeed.
    RetryAfter,
    /// The limit of that rule.
    Limit,
    /// Its remaining permits.
    Remaining,
    /// The id of the request, if it has a valid one.
    Id,
}

/// The headers of [`FieldForm::XRateLimit`] and of [`FieldForm::Legacy`].
pub const SINGLE_FIELDS: [[&str; 3]; 2] = [
    ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
    ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"],
];

/// Response fields with the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitFields {
    /// Their names.
    pub form: FieldForm,
    /// Whether the reset is a Unix time, and not a number of seconds.
    pub is_unix: bool,
}

/// The form of the fields with the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldForm {
    /// `ratelimit` and `ratelimit-policy` of the IETF draft, for all rules.
    #[default]
    Ietf,
    /// `x-ratelimit-limit` and related fields, for one rule.
    XRateLimit,
    /// `ratelimit-limit` and related fields, of the draft's first versions, for one rule.
    Legacy,
}

impl FieldForm {
    /// The names of the fields for one rule: its limit, the remaining permits, and the reset.
    #[must_use]
    pub fn single(self) -> Option<[&'static str; 3]> {
        let [x_rate_limit, legacy] = SINGLE_FIELDS;
        match self {
            FieldForm::Ietf => None,
            FieldForm::XRateLimit => Some(x_rate_limit),
            FieldForm::Legacy => Some(legacy),
        }
    }
}
