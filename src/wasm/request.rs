//! The request of a stream.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::IpAddr;

use proxy_wasm::hostcalls;
use proxy_wasm::types::MapType;

use super::step::CurrentStream;
use super::{pairs, raw};
use diana_policy::port::{Property, Pseudo, Request, Values};
use diana_policy::spelling;

/// The first value of a header in the request of the host's current call.
///
/// Only for a request that has not been resumed. After that the host has no headers, and the SDK
/// panics.
pub(super) fn first_value(name: &str) -> Option<Vec<u8>> {
    hostcalls::get_map_value_bytes(MapType::HttpRequestHeaders, name).ok().flatten()
}

/// The request of the host's current call.
pub(super) struct HostRequest {
    reads_headers: bool,
    /// All headers in encoded form, after the first access. The host's lookup by name costs almost
    /// as much, and returns only the first value.
    headers: OnceCell<Option<Vec<u8>>>,
    /// The path, if headers are not read.
    path: OnceCell<Option<Vec<u8>>>,
    /// The client address, for several exemptions and actors.
    client: OnceCell<Option<IpAddr>>,
    /// The name of the route, for several conditions.
    route: OnceCell<Option<Vec<u8>>>,
}

impl HostRequest {
    /// `reads_headers` is true if headers other than the path will be read.
    pub(super) fn new(reads_headers: bool) -> HostRequest {
        HostRequest {
            reads_headers,
            headers: OnceCell::new(),
            path: OnceCell::new(),
            client: OnceCell::new(),
            route: OnceCell::new(),
        }
    }

    /// Removes a header that only this filter may set, unless an earlier one in the chain has set it.
    /// Returns true if it was removed.
    #[inline(never)]
    pub(super) fn remove_forged(&mut self, name: &str) -> bool {
        // The cheapest test if headers are not read.
        let is_there = match self.reads_headers {
            true => self.values(name) != Some(Values::None),
            false => first_value(name).is_some(),
        };
        let is_forged = is_there && !diana_worker::is_marked(name, &CurrentStream);
        if is_forged {
            _ = hostcalls::remove_map_value(MapType::HttpRequestHeaders, name);
            // The cached headers are outdated.
            self.headers.take();
        }
        is_forged
    }

    /// The values of a header. `None` if the host does not return the headers.
    fn values(&self, name: &str) -> Option<Values<'_>> {
        let headers = self.headers.get_or_init(|| raw::headers(MapType::HttpRequestHeaders));
        pairs::values(headers.as_ref()?, name)
    }
}

impl Request for HostRequest {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        match which {
            Pseudo::Path if !self.reads_headers => {
                let path = self.path.get_or_init(|| first_value(":path"));
                path.as_deref().map(Cow::Borrowed)
            }
            Pseudo::Path => self.first(":path"),
            Pseudo::Method => self.first(":method"),
            Pseudo::Authority => self.first(":authority"),
        }
    }

    fn first(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let values = if self.reads_headers { self.values(name) } else { None };
        match values {
            Some(Values::None) => None,
            Some(Values::One(value)) => Some(Cow::Borrowed(value)),
            // The host uses the first value.
            Some(Values::Many(values)) => values.first().copied().map(Cow::Borrowed),
            None => first_value(name).map(Cow::Owned),
        }
    }

    fn header(&self, name: &str) -> Values<'_> {
        self.values(name).unwrap_or(Values::Many(Vec::new()))
    }

    fn client(&self) -> Option<IpAddr> {
        *self.client.get_or_init(|| spelling::address(&raw::property(b"source\0address")?))
    }

    fn lacks_client(&self) -> bool {
        matches!(self.client.get(), Some(None))
    }

    // After a change of headers this is still the former route, until another filter asks for the
    // present one: envoyproxy/envoy#20157.
    fn route(&self) -> Option<Cow<'_, [u8]>> {
        let read = || raw::property(b"xds\0route_name");
        self.route.get_or_init(read).as_deref().map(Cow::Borrowed)
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        raw::property(property.encoded()).map(Cow::Owned)
    }
}
