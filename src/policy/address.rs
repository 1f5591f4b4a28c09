//! The client address as the host reports it.

use std::net::{IpAddr, SocketAddr};

/// Parses an address with or without port. IPv4-mapped IPv6 becomes IPv4. `None` if the text is not
/// an address.
#[must_use]
pub fn parse(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let address = text.parse::<SocketAddr>().map(|socket| socket.ip());
    Some(address.or_else(|_| text.parse::<IpAddr>()).ok()?.to_canonical())
}
