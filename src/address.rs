//! The address of the client as the host reports it.

use std::net::{IpAddr, SocketAddr};

use crate::port::{Property, Request};

/// Reads client addresses; holds the property's path so that it is encoded once.
#[derive(Debug, Clone)]
pub struct ClientAddress(Property);

impl Default for ClientAddress {
    fn default() -> Self {
        ClientAddress(Property::new(&["source", "address"]))
    }
}

impl ClientAddress {
    /// The address, IPv4-mapped IPv6 as IPv4; nothing if the client has no IP address.
    #[must_use]
    pub fn of(&self, request: &dyn Request) -> Option<IpAddr> {
        let text = request.property(&self.0)?;
        let text = std::str::from_utf8(&text).ok()?;
        let address = text.parse::<SocketAddr>().map(|socket| socket.ip());
        Some(address.or_else(|_| text.parse::<IpAddr>()).ok()?.to_canonical())
    }
}
