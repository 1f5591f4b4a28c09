//! Responses of this filter.

use diana_limiter::{Protocol, Refusal};
use diana_policy::OnFault;
use diana_policy::headers::Headers;
use diana_policy::port::{Request, Values};
use diana_worker::AdminReply;

use crate::abi::{Call, Map};

/// The gRPC status of responses to operators.
const UNKNOWN: u8 = 2;

/// A response, to be sent after the worker's call.
pub(crate) struct Response {
    status: u16,
    headers: Headers,
    body: Vec<u8>,
    /// The gRPC status, if Envoy may take the request for gRPC.
    grpc_status: Option<u8>,
    details: &'static str,
}

impl Response {
    /// The response to a refused request.
    pub(crate) fn refusal(refusal: &Refusal, request: &dyn Request) -> Response {
        let content_type = request.first("content-type").unwrap_or_default();
        let protocol = Protocol::of(&content_type, request);
        let id = refusal.contains_id().then(|| request.header("x-request-id"));
        let id = if let Some(Values::One(id)) = id { id } else { &[] };
        let reply = refusal.reply(protocol, id);
        Response {
            status: reply.status,
            headers: refusal.headers_of(&reply),
            body: reply.body.into_owned(),
            grpc_status: is_grpc(&content_type).then_some(reply.grpc_status),
            details: "diana_refused",
        }
    }

    /// The response to an operator.
    pub(crate) fn admin(reply: &AdminReply) -> Response {
        Response {
            status: reply.status,
            headers: reply.headers().collect(),
            body: reply.body.as_bytes().into(),
            grpc_status: Some(UNKNOWN),
            details: "diana_admin",
        }
    }

    /// The response to a request after a panic, unless it passes.
    pub(crate) fn of_fault(on_fault: OnFault) -> Option<Response> {
        const UNAVAILABLE: u8 = 14;
        (on_fault == OnFault::Refuse).then(|| Response {
            status: 503,
            headers: [("retry-after", "1")].into_iter().collect(),
            body: Vec::new(),
            grpc_status: Some(UNAVAILABLE),
            details: "diana_fault",
        })
    }

    /// Sends it. The stream may end within.
    pub(crate) fn send(mut self, call: Call<'_>) {
        // Envoy encodes such a response for gRPC, for any method, and with status 0.
        if let Some(status) = self.grpc_status
            && call.header(Map::Request, "content-type", 0).is_some_and(|(kind, _)| is_grpc(kind))
            && self.headers.get("grpc-status").is_none()
        {
            self.headers.push("grpc-status", &status.to_string());
        }
        call.respond(self.status, &self.headers, &self.body, self.details);
    }
}

/// Returns true if Envoy takes a request with this content type for gRPC.
fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"+"))
}
