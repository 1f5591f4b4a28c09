//! The response to a refused request.

use super::pairs::serialized;
use super::raw;
use diana_limiter::{PUSHBACK, Protocol, Refusal, RefusalReply};
use diana_policy::headers::Headers;
use diana_policy::port::{Request, Values};
use diana_worker::host::{Level, Log, Streams};

/// Responds to the request of the host's current call.
pub(super) fn answer(refusal: &Refusal, request: &dyn Request, host: &(impl Log + Streams)) {
    let state = refusal.by.state();
    host.set_filter_state(state.as_bytes());
    if refusal.is_logged {
        host.log(Level::Warn, &state);
    }
    let content_type = request.first("content-type").unwrap_or_default();
    let protocol = Protocol::of(&content_type, request);
    match refusal.contains_id().then(|| request.header("x-request-id")) {
        Some(Values::One(id)) => reply(refusal, protocol, id),
        _ => reply(refusal, protocol, &[]),
    }
}

fn reply(refusal: &Refusal, protocol: Protocol<'_>, id: &[u8]) {
    let reply = refusal.reply(protocol, id);
    let (status, grpc_status) = (reply.status.into(), reply.grpc_status.into());
    let headers = serialized(&headers(refusal, &reply));
    raw::reply(status, "diana_refused", &reply.body, &headers, grpc_status);
}

fn headers(refusal: &Refusal, reply: &RefusalReply<'_>) -> Headers {
    let mut headers = refusal.headers();
    for (name, value) in &refusal.response.headers {
        headers.push(name, value);
    }
    // Envoy adds this type to a body without one, for a fraction of the cost of a header here.
    if reply.content_type != "text/plain" {
        headers.push("content-type", reply.content_type);
    }
    // Envoy adds these only if the client sent gRPC, not if a preceding filter converted the
    // request to gRPC.
    if let Some(message) = &reply.grpc_message {
        headers.push("grpc-status", &reply.grpc_status.to_string());
        headers.push("grpc-message", message);
        if let Some(ms) = reply.grpc_pushback {
            headers.push(PUSHBACK, &ms.to_string());
        }
    }
    headers
}
