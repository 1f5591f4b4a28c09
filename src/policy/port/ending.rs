//! The response to a request and the end of its stream, in Envoy's words.

use std::borrow::Cow;

use super::{Property, Values};

/// Envoy's response flags for clients: the client disconnected, violated the protocol, or reset its
/// stream. Envoy sets none of them for some resets before the response.
const CLIENT_LEFT: u64 = 1 << 14 | 1 << 18 | 1 << 28;

/// The start of Envoy's response code details for connections that Envoy closed, such as at the end
/// of a drain. They have the flag of a client that disconnected.
const CLOSED: &[u8] = b"downstream_local_disconnect";

/// The details of connections that Envoy closed since the client had vanished.
const VANISHED: &[u8] = b"downstream_local_disconnect(http2_ping_timeout)";

/// The details of a complete response of the upstream.
const WHOLE: &[u8] = b"via_upstream";

/// The details of a response of the upstream that did not accept a WebSocket. Envoy passes its
/// headers on, without its body.
const NO_WEBSOCKET: &[u8] = b"websocket_handshake_unsuccessful";

/// The details of a request that Envoy follows to another place.
const FOLLOWED: &[u8] = b"internal_redirect";

/// The response to a request, and the end of its stream.
pub trait Ending {
    /// All values of a response header, by its name in lower case. Valid only while the headers
    /// arrive. While the trailers arrive, all values of a trailer.
    fn header(&self, name: &str) -> Values<'_>;

    /// Returns true if the response has a header with this name in lower case. Valid only while the
    /// headers arrive.
    fn has_header(&self, name: &str) -> bool {
        self.header(name) != Values::None
    }

    /// Returns true if the headers end the response. Valid only while they arrive.
    fn ends_with_headers(&self) -> bool;

    /// The response status. `None` if there was no response.
    fn status(&self) -> Option<u16>;

    /// The host's reason for the response, or for its end.
    fn details(&self) -> Option<Cow<'_, [u8]>>;

    /// Envoy's response flags, as a set of bits.
    fn flags(&self) -> u64 {
        0
    }

    /// A property's bytes. `None` if the stream has no such property.
    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>>;

    /// Returns true if the headers came from the upstream. Valid only while they arrive.
    fn is_from_upstream(&self) -> bool {
        [Some(WHOLE), Some(NO_WEBSOCKET)].contains(&self.details().as_deref())
    }

    /// Returns true if the response came from the upstream, and is complete. Valid at the end of
    /// the stream.
    fn is_complete(&self) -> bool {
        self.details().as_deref() == Some(WHOLE)
    }

    /// Returns true if the host follows an internal redirect with a new stream.
    fn is_followed(&self) -> bool {
        self.details().as_deref() == Some(FOLLOWED)
    }

    /// Returns true if the client ended the stream: it disconnected, reset the stream, or violated
    /// the protocol. Flags are read only if they decide.
    fn client_left(&self) -> bool {
        match self.details().as_deref() {
            Some(details) if details.starts_with(CLOSED) => details == VANISHED,
            // Every other end without a response is the client's.
            _ => self.status().is_none() || self.flags() & CLIENT_LEFT != 0,
        }
    }
}
