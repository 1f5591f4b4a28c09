//! The response of a stream, and the end of the stream.

use std::borrow::Cow;

use diana_policy::port::{Ending, Property, Values};

use crate::abi::{self, Attribute, Call, Map};
use crate::{property, request};

/// Envoy's response flags for clients: the client disconnected, violated the protocol, or reset its
/// stream. Envoy sets none of them for some resets before the response.
const CLIENT_LEFT: u64 = 1 << 14 | 1 << 18 | 1 << 28;

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

/// The stream of a hook. Without a call the stream has ended, and the host has dropped its data.
pub(crate) struct HostEnding<'c, 'h> {
    call: Option<&'c Call<'h>>,
}

impl<'c, 'h> HostEnding<'c, 'h> {
    pub(crate) fn new(call: Option<&'c Call<'h>>) -> HostEnding<'c, 'h> {
        HostEnding { call }
    }

    fn details_now(&self) -> Option<&[u8]> {
        self.call.filter(|_| abi::reports_ends())?.text(Attribute::ResponseCodeDetails)
    }

    fn flags(&self) -> u64 {
        let call = self.call.filter(|_| abi::reports_ends());
        call.and_then(|call| call.number(Attribute::ResponseFlags)).unwrap_or(0)
    }
}

impl Ending for HostEnding<'_, '_> {
    fn header(&self, name: &str) -> Values<'_> {
        self.call.map_or(Values::None, |call| request::values(call, Map::Response, name))
    }

    fn status(&self) -> Option<u16> {
        let status = self.call?.number(Attribute::ResponseCode)?;
        u16::try_from(status).ok().filter(|status| *status > 0)
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
        self.status().is_none() || self.flags() & CLIENT_LEFT != 0
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        property::read(self.call?, property)
    }
}
