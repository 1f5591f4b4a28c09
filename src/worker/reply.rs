//! Replies to operators.

use diana_policy::json;
use serde_json::json;

/// Status and body of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminReply {
    /// Its status.
    pub status: u16,
    /// Its body in JSON.
    pub body: String,
    /// The allowed method, if the request has another one.
    allow: &'static str,
}

impl AdminReply {
    /// Its headers: type and caching, the retry delay of a temporary failure, and the allowed
    /// method.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let more = match self.status {
            405 => Some(("allow", self.allow)),
            503 => Some(("retry-after", "1")),
            _ => None,
        };
        let common = [("content-type", "application/json"), ("cache-control", "no-store")];
        common.into_iter().chain(more)
    }

    pub(crate) fn problem(status: u16, why: &str) -> AdminReply {
        let body = json::ascii(&json!({"error": why}));
        AdminReply { status, body, allow: "" }
    }

    /// The reply to a request with a wrong method.
    pub(crate) fn wrong_method(allow: &'static str) -> AdminReply {
        let why = format!("the method must be {allow}");
        AdminReply { allow, ..AdminReply::problem(405, &why) }
    }

    /// The reply for an unknown path, or for a request without a valid token.
    pub(crate) fn not_found() -> AdminReply {
        AdminReply::problem(404, "not found")
    }

    pub(crate) fn ok(body: String) -> AdminReply {
        AdminReply { status: 200, body, allow: "" }
    }
}
