//! Responses of this filter.

use std::borrow::Cow;

use diana_limiter::{Protocol, Refusal};
use diana_policy::port::{Request, Values};
use diana_worker::AdminReply;

use crate::abi::Call;

/// A response, to be sent after the worker's call.
pub(crate) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
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
        let mut headers: Vec<(&str, Cow<'_, str>)> = refusal.headers();
        let configured = refusal.response.headers.iter();
        headers.extend(configured.map(|(name, value)| (name.as_str(), value.into())));
        // Envoy adds this type to a body without one.
        if reply.content_type != "text/plain" {
            headers.push(("content-type", reply.content_type.into()));
        }
        if let Some(message) = &reply.grpc_message {
            let status = reply.grpc_status.to_string().into();
            headers.extend([("grpc-status", status), ("grpc-message", message.into())]);
        }
        let headers = headers.into_iter().map(|(name, value)| (name.into(), value.into()));
        Response {
            status: reply.status,
            headers: headers.collect(),
            body: reply.body.into_owned(),
            details: "diana_refused",
        }
    }

    /// The response to an operator.
    pub(crate) fn admin(reply: &AdminReply) -> Response {
        Response {
            status: reply.status,
            headers: reply.headers().map(|(name, value)| (name.into(), value.into())).collect(),
            body: reply.body.as_bytes().into(),
            details: "diana_admin",
        }
    }

    /// Sends it. The stream may end within.
    pub(crate) fn send(self, call: Call<'_>) {
        call.respond(self.status, &self.headers, &self.body, self.details);
    }
}
