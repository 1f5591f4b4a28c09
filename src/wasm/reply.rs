//! The response to a refused request.

use super::pairs::serialized;
use super::raw;
use diana_limiter::{Protocol, Refusal};
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
    let headers = serialized(&refusal.headers_of(&reply));
    raw::reply(status, "diana_refused", &reply.body, &headers, grpc_status);
}
