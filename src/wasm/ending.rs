//! The response of a stream, and the end of the stream.

use std::borrow::Cow;
use std::cell::OnceCell;

use proxy_wasm::hostcalls;
use proxy_wasm::types::MapType;

use super::{pairs, raw};
use diana_policy::port::{Ending, Property, Values};

/// Envoy's response flags for clients: the client disconnected, violated the protocol, or reset its
/// stream. Envoy sets none of them for some resets before the response.
const CLIENT_LEFT: u64 = flags(&[14, 18, 28]);

/// The start of Envoy's response code details for connections that Envoy closed, such as at the end
/// of a drain. They have the flag of a client that disconnected.
const CLOSED: &[u8] = b"downstream_local_disconnect";

/// The details of connections that Envoy closed since the client had vanished.
const VANISHED: &[u8] = b"downstream_local_disconnect(http2_ping_timeout)";

/// Envoy's response code details for a complete response of the upstream.
const WHOLE: &[u8] = b"via_upstream";

/// The details of a response of the upstream that did not accept a WebSocket. Envoy passes its
/// headers on, without its body.
const NO_WEBSOCKET: &[u8] = b"websocket_handshake_unsuccessful";

const fn flags(bits: &[u32]) -> u64 {
    let mut flags = 0;
    let mut rest = bits;
    while let [bit, more @ ..] = rest {
        flags |= 1 << *bit;
        rest = more;
    }
    flags
}

/// The stream of the host's current call.
#[derive(Default)]
pub(super) struct HostEnding {
    details: OnceCell<Option<Vec<u8>>>,
    flags: OnceCell<u64>,
    headers: OnceCell<Option<Vec<u8>>>,
}

impl HostEnding {
    fn details_now(&self) -> Option<&[u8]> {
        self.details.get_or_init(|| raw::property(b"response\0code_details")).as_deref()
    }

    fn has(&self, flags: u64) -> bool {
        let read = || number(b"response\0flags").unwrap_or(0);
        self.flags.get_or_init(read) & flags != 0
    }
}

impl Ending for HostEnding {
    fn header(&self, name: &str) -> Values<'_> {
        let headers = self.headers.get_or_init(|| raw::headers(MapType::HttpResponseHeaders));
        let values = headers.as_deref().and_then(|headers| pairs::values(headers, name));
        values.unwrap_or(Values::None)
    }

    // The host's lookup of an absent header takes a sixth of a call for all headers.
    fn has_header(&self, name: &str) -> bool {
        let value = hostcalls::get_map_value_bytes(MapType::HttpResponseHeaders, name);
        matches!(value, Ok(Some(_)))
    }

    fn status(&self) -> Option<u16> {
        u16::try_from(number(b"response\0code")?).ok()
    }

    fn is_from_upstream(&self) -> bool {
        [Some(WHOLE), Some(NO_WEBSOCKET)].contains(&self.details_now())
    }

    fn is_complete(&self) -> bool {
        self.details_now() == Some(WHOLE)
    }

    fn is_followed(&self) -> bool {
        self.details_now() == Some(b"internal_redirect")
    }

    fn details(&self) -> Option<Cow<'_, [u8]>> {
        self.details_now().map(Cow::Borrowed)
    }

    fn client_left(&self) -> bool {
        let details = self.details_now().unwrap_or_default();
        if details.starts_with(CLOSED) {
            return details == VANISHED;
        }
        // Every other end without a response is the client's.
        self.status().is_none() || self.has(CLIENT_LEFT)
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        raw::property(property.encoded()).map(Cow::Owned)
    }
}

/// A property that is a whole number, little-endian.
fn number(property: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(raw::property(property)?.try_into().ok()?))
}
