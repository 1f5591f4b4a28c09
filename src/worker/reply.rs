//! What an operator is answered.

use diana_policy::json;
use serde_json::json;

/// Status and body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminReply {
    /// Its status.
    pub status: u16,
    /// Its body, which is JSON.
    pub body: String,
    /// The method that is allowed, if another one is the mistake.
    allow: &'static str,
}

impl AdminReply {
    /// Its headers: when to ask again, where nobody was in the wrong, and which method is allowed.
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

    /// Another method than the one that is allowed.
    pub(crate) fn method(allow: &'static str) -> AdminReply {
        let why = format!("the method has to be {allow}");
        AdminReply { allow, ..AdminReply::problem(405, &why) }
    }

    /// What is told of what is not there, or of nobody's business.
    pub(crate) fn nothing() -> AdminReply {
        AdminReply::problem(404, "not found")
    }

    pub(crate) fn ok(body: String) -> AdminReply {
        AdminReply { status: 200, body, allow: "" }
    }
}
