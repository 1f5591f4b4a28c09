//! What an operator is answered.

use diana_core::json::object::JsonObject;

/// Status and body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminReply {
    /// Its status.
    pub status: u16,
    /// Its body, which is JSON.
    pub body: String,
}

impl AdminReply {
    pub(crate) fn problem(status: u16, why: &str) -> AdminReply {
        AdminReply { status, body: JsonObject::default().text("error", why).finish() }
    }

    /// What is told of what is not there, or of nobody's business.
    pub(crate) fn nothing() -> AdminReply {
        AdminReply::problem(404, "not found")
    }

    pub(crate) fn ok(body: String) -> AdminReply {
        AdminReply { status: 200, body }
    }
}
