//! Replies to RPC clients, which do not read errors from an HTTP status and its body: gRPC,
//! [gRPC-Web] and [Connect].
//!
//! [gRPC-Web]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md
//! [Connect]: https://connectrpc.com/docs/protocol

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Serialize;

use super::Refusal;
use diana_policy::json;
use diana_policy::port::{Pseudo, Request};
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
    message: Cow<'a, str>,
}

#[derive(Serialize)]
struct EndOfStream<'a> {
    error: ConnectError<'a>,
}

/// The trailer by which a server delays or forbids a retry.
pub const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Flag of the message that ends a stream of Connect.
const END_STREAM: u8 = 2;

/// Flag of the trailers that end a body of gRPC-Web.
const TRAILERS: u8 = 0x80;

/// The reply to a refused request, without the headers that are the same in every protocol.
#[derive(Debug, PartialEq, Eq)]
pub struct RefusalReply<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The body's media type.
    pub content_type: &'a str,
    /// The gRPC status.
    pub grpc_status: u8,
    /// The milliseconds after which a gRPC client may retry; negative if it must not. `None` if the
    /// headers contain no `grpc-status`.
    pub grpc_pushback: Option<i32>,
    /// Percent-encoded; `None` if the headers contain no `grpc-status`.
    pub grpc_message: Option<String>,
    /// Empty in gRPC.
    pub body: Cow<'a, [u8]>,
}

impl Refusal {
    /// The reply in the request's protocol, for a request with this id.
    #[must_use]
    pub fn reply<'a>(&'a self, protocol: Protocol<'a>, id: &[u8]) -> RefusalReply<'a> {
        let Code { grpc, connect, status } =
            match self.is_unavailable() || self.response.grpc_status == UNAVAILABLE.grpc {
                true => UNAVAILABLE,
                false => RESOURCE_EXHAUSTED,
            };
        let error = || ConnectError { code: connect, message: self.detail(id) };
        let mut reply = RefusalReply {
            status: 200,
            content_type: "application/json",
            grpc_status: grpc,
            grpc_message: None,
            grpc_pushback: None,
            body: Cow::Borrowed(&[]),
        };
        match protocol {
            Protocol::Http => {
                reply.status = self.status();
                reply.content_type = self.content_type();
                reply.body = match self.body(id) {
                    Cow::Borrowed(body) => Cow::Borrowed(body.as_bytes()),
                    Cow::Owned(body) => Cow::Owned(body.into_bytes()),
                };
            }
            Protocol::Grpc => {
                reply.content_type = "application/grpc";
                reply.grpc_message = Some(percent_encoded(&self.detail(id)));
                reply.grpc_pushback = Some(self.pushback());
            }
            // Not in headers: Envoy removes `content-type` from a reply without a body, which
            // clients check, and scripts of other origins read only the headers that CORS exposes.
            Protocol::GrpcWeb(media_type) => {
                reply.content_type = media_type;
                reply.body = Cow::Owned(self.trailers(grpc, id));
            }
            Protocol::GrpcWebText(media_type) => {
                reply.content_type = media_type;
                reply.body = Cow::Owned(STANDARD.encode(self.trailers(grpc, id)).into_bytes());
            }
            Protocol::ConnectUnary => {
                reply.status = status;
                reply.body = Cow::Owned(json::ascii(&error()).into_bytes());
            }
            Protocol::ConnectStream(media_type) => {
                reply.content_type = media_type;
                let end = json::ascii(&EndOfStream { error: error() });
                reply.body = Cow::Owned(envelope(END_STREAM, &end));
            }
        }
        reply
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
