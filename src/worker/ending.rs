//! Envoy's reports on the end of a stream, as both forms of the module read them.

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

/// The details of a request that Envoy follows to another place.
const FOLLOWED: &[u8] = b"internal_redirect";

/// Returns true if response headers with these details came from the upstream.
#[must_use]
pub fn is_from_upstream(details: Option<&[u8]>) -> bool {
    [Some(WHOLE), Some(NO_WEBSOCKET)].contains(&details)
}

/// Returns true if these details are those of a complete response of the upstream.
#[must_use]
pub fn is_complete(details: Option<&[u8]>) -> bool {
    details == Some(WHOLE)
}

/// Returns true if the host follows an internal redirect with a new stream.
#[must_use]
pub fn is_followed(details: Option<&[u8]>) -> bool {
    details == Some(FOLLOWED)
}

/// Returns true if the client ended the stream. The flags are read only if they decide.
pub fn client_left(
    details: Option<&[u8]>,
    status: Option<u16>,
    flags: impl FnOnce() -> u64,
) -> bool {
    let details = details.unwrap_or_default();
    if details.starts_with(CLOSED) {
        return details == VANISHED;
    }
    // Every other end without a response is the client's.
    status.is_none() || flags() & CLIENT_LEFT != 0
}
