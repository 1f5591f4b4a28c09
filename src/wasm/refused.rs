//! The response to a refused request.

use super::pairs::serialized;
use super::raw;
use super::request::{HostRequest, first_value};
use diana_limiter::{Protocol, Refusal, RefusalReply};
use diana_policy::port::{Request, Values};
use diana_worker::host::{Level, Log, Streams};

/// Responds to the request of the host's current call.
pub(super) fn answer(refusal: &Refusal, host: &(impl Log + Streams)) {
    let state = refusal.by.state();
    host.set_filter_state(state.as_bytes());
    if refusal.is_logged {
        host.log(Level::Warn, &state);
    }
    let content_type = first_value("content-type");
    let protocol = content_type
        .as_ref()
        .map_or(Protocol::Http, |content_type| Protocol::of(content_type, first_value));
    if refusal.contains_id() {
        let request = HostRequest::new(true);
        let id = match request.header("x-request-id") {
            Values::One(id) => id,
            _ => &[],
        };
        reply(refusal, protocol, id);
    } else {
        reply(refusal, protocol, &[]);
    }
}

fn reply(refusal: &Refusal, protocol: Protocol<'_>, id: &[u8]) {
    let reply = refusal.reply(protocol, id);
    let (status, grpc_status) = (reply.status.into(), reply.grpc_status.into());
    let headers = headers(refusal, &reply);
    raw::reply(status, "diana_refused", &reply.body, &headers, grpc_status);
}

fn headers(refusal: &Refusal, reply: &RefusalReply<'_>) -> Vec<u8> {
    let (own, grpc_status) = (refusal.headers(), reply.grpc_status.to_string());
    let own = own.iter().map(|(name, value)| (*name, value.as_str()));
    let configured = refusal.response.headers.iter();
    let mut headers: Vec<(&str, &str)> =
        own.chain(configured.map(|(name, value)| (name.as_str(), value.as_str()))).collect();
    headers.push(("content-type", reply.content_type));
    // Envoy adds these only if the client sent gRPC, not if a preceding filter converted the
    // request to gRPC.
    if let Some(message) = &reply.grpc_message {
        headers.extend([("grpc-status", grpc_status.as_str()), ("grpc-message", message)]);
    }
    serialized(&headers)
}
