//! Replies to operators.

use diana_limiter::LocalReply;
use diana_policy::json;
use serde_json::json;

/// The gRPC status, if an operator sends gRPC.
const UNKNOWN: u8 = 2;

/// A reply in JSON.
pub(crate) fn ok(body: String) -> LocalReply {
    reply(200, body)
}

/// A reply that names a problem. A temporary one may be tried again.
pub(crate) fn problem(status: u16, why: &str) -> LocalReply {
    let mut reply = reply(status, json::ascii(&json!({"error": why})));
    if status == 503 {
        reply.headers.push("retry-after", "1");
    }
    reply
}

/// The reply to a request with a wrong method.
pub(crate) fn wrong_method(allow: &'static str) -> LocalReply {
    let mut reply = problem(405, &format!("the method must be {allow}"));
    reply.headers.push("allow", allow);
    reply
}

/// The reply for an unknown path, or for a request without a valid token.
pub(crate) fn not_found() -> LocalReply {
    problem(404, "not found")
}

/// The reply to a request with a forged mark.
pub(crate) fn forged() -> LocalReply {
    const INVALID_ARGUMENT: u8 = 3;
    LocalReply {
        details: "diana_forged_mark",
        grpc_status: INVALID_ARGUMENT,
        ..problem(400, "the request has a header that only the gateway may set")
    }
}

fn reply(status: u16, body: String) -> LocalReply {
    let common = [("content-type", "application/json"), ("cache-control", "no-store")];
    LocalReply {
        status,
        headers: common.into_iter().collect(),
        body: body.into_bytes().into(),
        details: "diana_admin",
        log: String::new(),
        grpc_status: UNKNOWN,
        may_be_grpc: true,
    }
}
