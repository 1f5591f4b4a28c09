//! Replies to RPC clients, which do not read errors from an HTTP status and its body: gRPC,
//! [gRPC-Web] and [Connect].
//!
//! [gRPC-Web]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md
//! [Connect]: https://connectrpc.com/docs/protocol

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Serialize;

use super::{LocalReply, Refusal};
use diana_policy::json;
use diana_policy::number::push_decimal;
use diana_policy::port::{Pseudo, Request, Values};
use diana_policy::time::{Micros, SECOND};

/// The protocol of a request, with the media type that its reply repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol<'r> {
    /// HTTP without a protocol above it.
    Http,
    /// gRPC: without a body, the response's headers are its trailers.
    Grpc,
    /// gRPC-Web in binary: the body ends with the trailers.
    GrpcWeb(&'r str),
    /// gRPC-Web in base64.
    GrpcWebText(&'r str),
    /// A unary call of Connect: an error is JSON, with the HTTP status of its code.
    ConnectUnary,
    /// A stream of Connect: an error ends the body of a response with status 200.
    ConnectStream(&'r str),
}

impl<'r> Protocol<'r> {
    /// The protocol of a request with this `content-type`. Only a POST is a call. A client that
    /// sends such a media type with another method reads the HTTP status, and so do caches.
    pub fn of(content_type: &'r [u8], request: &dyn Request) -> Protocol<'r> {
        let protocol = Protocol::of_call(content_type, request);
        let is_call = protocol != Protocol::Http
            && request.pseudo(Pseudo::Method).is_some_and(|method| *method == *b"POST");
        if is_call { protocol } else { Protocol::Http }
    }

    /// The protocol of a call. A `connect-protocol-version` distinguishes Connect from other uses
    /// of a media type.
    fn of_call(content_type: &'r [u8], request: &dyn Request) -> Protocol<'r> {
        let Some(media_type) = media_type(content_type) else { return Protocol::Http };
        let Some(kind) = after(media_type, "application/") else { return Protocol::Http };
        let has_codec = |rest: &str| rest.is_empty() || rest.starts_with('+');
        let is = |name| after(kind, name).is_some_and(has_codec);
        if is("grpc") {
            Protocol::Grpc
        } else if is("grpc-web") {
            Protocol::GrpcWeb(media_type)
        } else if is("grpc-web-text") {
            Protocol::GrpcWebText(media_type)
        } else if after(kind, "connect+").is_some() {
            Protocol::ConnectStream(media_type)
        } else if kind.eq_ignore_ascii_case("proto")
            || request.first("connect-protocol-version").is_some()
        {
            Protocol::ConnectUnary
        } else {
            Protocol::Http
        }
    }
}

/// Returns true if Envoy takes a request with this content type for gRPC.
#[must_use]
pub fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"+"))
}

/// The media type without its parameters, if it can be repeated in a header.
fn media_type(content_type: &[u8]) -> Option<&str> {
    let media_type = content_type.split(|byte| *byte == b';').next()?.trim_ascii();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/+-._".contains(byte);
    let text = str::from_utf8(media_type).ok()?;
    media_type.iter().all(is_plain).then_some(text)
}

/// The rest of a text that begins with `prefix`, in capitals or not.
fn after<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// An error code, as each protocol names it.
#[derive(Clone, Copy)]
struct Code {
    grpc: u8,
    connect: &'static str,
    /// The HTTP status for this code in Connect.
    status: u16,
}

const MILLISECOND: Micros = SECOND / 1000;

const RESOURCE_EXHAUSTED: Code = Code { grpc: 8, connect: "resource_exhausted", status: 429 };
const UNAVAILABLE: Code = Code { grpc: 14, connect: "unavailable", status: 503 };

#[derive(Serialize)]
struct ConnectError<'a> {
    code: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct EndOfStream<'a> {
    error: ConnectError<'a>,
}

impl Code {
    fn error(self, message: &str) -> ConnectError<'_> {
        ConnectError { code: self.connect, message }
    }
}

/// The trailer by which a server delays or forbids a retry.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Flag of the message that ends a stream of Connect.
const END_STREAM: u8 = 2;

/// Flag of the trailers that end a body of gRPC-Web.
const TRAILERS: u8 = 0x80;

impl Refusal {
    /// The response to this request, in its protocol, with this entry for the access log.
    #[must_use]
    pub fn reply(&self, log: String, request: &dyn Request) -> Box<LocalReply> {
        let content_type = request.first("content-type").unwrap_or_default();
        let protocol = Protocol::of(&content_type, request);
        let id = self.contains_id().then(|| request.header("x-request-id"));
        let id = if let Some(Values::One(id)) = id { id } else { &[] };
        let code = match self.is_unavailable() || self.response.grpc_status == UNAVAILABLE.grpc {
            true => UNAVAILABLE,
            false => RESOURCE_EXHAUSTED,
        };
        let (status, media_type, body): (u16, &str, Arc<[u8]>) = match protocol {
            Protocol::Http => (self.status(), self.content_type(), self.body(id).into()),
            Protocol::Grpc => (200, "application/grpc", Arc::default()),
            // Not in headers: Envoy removes `content-type` from a reply without a body, which
            // clients check, and scripts of other origins read only the headers that CORS exposes.
            Protocol::GrpcWeb(media_type) => (200, media_type, self.trailers(code.grpc, id).into()),
            Protocol::GrpcWebText(media_type) => {
                (200, media_type, STANDARD.encode(self.trailers(code.grpc, id)).into_bytes().into())
            }
            Protocol::ConnectUnary => {
                let error = json::ascii(&code.error(&self.detail(id)));
                (code.status, "application/json", error.into_bytes().into())
            }
            Protocol::ConnectStream(media_type) => {
                let end = json::ascii(&EndOfStream { error: code.error(&self.detail(id)) });
                (200, media_type, envelope(END_STREAM, &end).into())
            }
        };
        let mut headers = self.headers();
        for (name, value) in &self.response.headers {
            headers.push(name, value);
        }
        // Envoy adds this type to a body without one, for a fraction of the cost of a header here.
        if media_type != "text/plain" {
            headers.push("content-type", media_type);
        }
        // Envoy adds these only if the client sent gRPC, not if a preceding filter converted the
        // request to gRPC.
        if protocol == Protocol::Grpc {
            headers.write("grpc-status", |text| push_decimal(text, code.grpc.into()));
            headers.push("grpc-message", &percent_encoded(&self.detail(id)));
            headers.push(PUSHBACK, &self.pushback().to_string());
        }
        Box::new(LocalReply {
            status,
            headers,
            body,
            details: "diana_refused",
            log,
            grpc_status: code.grpc,
            may_be_grpc: is_grpc(&content_type),
        })
    }

    /// The trailers as a message of gRPC-Web.
    fn trailers(&self, status: u8, id: &[u8]) -> Vec<u8> {
        let (message, pushback) = (percent_encoded(&self.detail(id)), self.pushback());
        let trailers =
            format!("grpc-status:{status}\r\ngrpc-message:{message}\r\n{PUSHBACK}:{pushback}\r\n");
        envelope(TRAILERS, &trailers)
    }

    /// The milliseconds after which a gRPC client may retry. Negative if no retry can succeed, so that
    /// clients with a retry policy do not try.
    fn pushback(&self) -> i32 {
        let ms = self.delay().map(|ticks| ticks.div_ceil(MILLISECOND));
        ms.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX))
    }
}

/// A message of a stream: its flags, its length and its content.
fn envelope(flags: u8, message: &str) -> Vec<u8> {
    // A body has 8 KiB at most.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[flags], length.as_slice(), message.as_bytes()].concat()
}

/// Encodes a `grpc-message`.
fn percent_encoded(text: &str) -> String {
    const ENCODED: &AsciiSet = &CONTROLS.add(b'%');
    utf8_percent_encode(text, ENCODED).to_string()
}
