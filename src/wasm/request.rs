//! The request of a stream.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::IpAddr;

use proxy_wasm::hostcalls;
use proxy_wasm::types::MapType;

use super::{pairs, raw};
use diana_policy::address;
use diana_policy::port::{Property, Pseudo, Request, Values};

/// The first value of a header of the request that the host calls about.
///
/// Only for a request that has not been resumed: afterwards the host has no headers, and the SDK panics.
pub(super) fn first_value(name: &str) -> Option<Vec<u8>> {
    hostcalls::get_map_value_bytes(MapType::HttpRequestHeaders, name).ok().flatten()
}

/// The request of the stream that the host is calling about.
pub(super) struct HostRequest {
    reads_headers: bool,
    /// All headers, still serialised, once one was asked for. The host's look-up by name costs
    /// almost as much as all of them, and hides all values but the first.
    headers: OnceCell<Option<Vec<u8>>>,
    /// The path, where headers are not read.
    path: OnceCell<Option<Vec<u8>>>,
    /// The client's address, for which several exemptions and actors may ask.
    client: OnceCell<Option<IpAddr>>,
}

impl HostRequest {
    /// `reads_headers` says whether more of them is going to be asked for than the path.
    pub(super) fn new(reads_headers: bool) -> HostRequest {
        HostRequest {
            reads_headers,
            headers: OnceCell::new(),
            path: OnceCell::new(),
            client: OnceCell::new(),
        }
    }

    /// Takes a header off that may be there.
    #[inline(never)]
    pub(super) fn take_off(&mut self, name: &str) {
        // Where headers are not read, this costs the least.
        let is_there = match self.reads_headers {
            true => self.values(name) != Some(Values::None),
            false => first_value(name).is_some(),
        };
        if is_there {
            _ = hostcalls::remove_map_value(MapType::HttpRequestHeaders, name);
            // What was read is out of date.
            self.headers.take();
        }
    }

    /// The values of a header; nothing if the host does not hand out the headers.
    fn values(&self, name: &str) -> Option<Values<'_>> {
        let headers = self.headers.get_or_init(|| raw::headers(MapType::HttpRequestHeaders));
        pairs::values(headers.as_ref()?, name)
    }
}

impl Request for HostRequest {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let name = match which {
            Pseudo::Path => ":path",
            Pseudo::Method => ":method",
            Pseudo::Authority => ":authority",
        };
        let values = if self.reads_headers { self.values(name) } else { None };
        match values {
            Some(Values::None) => None,
            Some(Values::One(value)) => Some(Cow::Borrowed(value)),
            // The first is the one that the host goes by.
            Some(Values::Many(values)) => values.first().copied().map(Cow::Borrowed),
            None if which == Pseudo::Path => {
                let path = self.path.get_or_init(|| first_value(name));
                path.as_deref().map(Cow::Borrowed)
            }
            None => first_value(name).map(Cow::Owned),
        }
    }

    fn header(&self, name: &str) -> Values<'_> {
        self.values(name).unwrap_or(Values::Many(Vec::new()))
    }

    fn client(&self) -> Option<IpAddr> {
        *self.client.get_or_init(|| address::parse(&raw::property(b"source\0address")?))
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        raw::property(property.encoded()).map(Cow::Owned)
    }
}
