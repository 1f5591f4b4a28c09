//! Changes and responses of the filter, after the worker's call.

use std::borrow::Cow;
use std::sync::Arc;

use diana_limiter::{LocalReply, is_grpc};
use diana_policy::OnFault;
use diana_worker::{HostStream, Next};

use crate::abi::{self, Map, StreamCall};

impl HostStream for StreamCall<'_> {
    fn remove_header(&mut self, name: &str) {
        StreamCall::remove_header(self, name);
        self.clear_route_cache();
    }

    fn add_header(&mut self, name: &str, value: &str) {
        StreamCall::add_header(self, Map::Request, name, value.as_bytes());
        self.clear_route_cache();
    }

    fn filter_state(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        StreamCall::filter_state(self, name.as_bytes()).map(Cow::Borrowed)
    }

    fn set_filter_state(&mut self, name: &str, value: &[u8]) {
        // Envoy 1.38 writes each entry once, and otherwise reports a bug in Envoy.
        if abi::has_config_metrics() || StreamCall::filter_state(self, name.as_bytes()).is_none() {
            StreamCall::set_filter_state(self, name, value);
        }
    }
}

/// What happens to a request after a panic.
pub(crate) fn of_fault(on_fault: OnFault) -> Next {
    const UNAVAILABLE: u8 = 14;
    match on_fault {
        OnFault::Pass => Next::Continue,
        OnFault::Refuse => Next::Reply(Box::new(LocalReply {
            status: 503,
            headers: [("retry-after", "1")].into_iter().collect(),
            body: Arc::default(),
            details: "diana_fault",
            log: String::new(),
            grpc_status: UNAVAILABLE,
            may_be_grpc: true,
        })),
    }
}

/// Sends a response. The stream may end within.
pub(crate) fn send(mut reply: LocalReply, call: StreamCall<'_>) {
    // Envoy encodes such a response for gRPC, for any method, and with status 0.
    if reply.may_be_grpc
        && call.header(Map::Request, "content-type", 0).is_some_and(|(kind, _)| is_grpc(kind))
        && reply.headers.get("grpc-status").is_none()
    {
        reply.headers.push("grpc-status", &reply.grpc_status.to_string());
    }
    call.respond(reply.status, &reply.headers, &reply.body, reply.details);
}
