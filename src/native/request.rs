//! The request of a stream.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::net::IpAddr;

use diana_policy::port::{Property, Pseudo, Request, Values};
use diana_policy::spelling;
use diana_worker::HostStream;

use crate::abi::{HeaderList, HeaderMemory, Map, StreamAttribute, StreamCall};
use crate::property;

/// The request of the stream of a hook.
pub(crate) struct HostRequest<'c, 'h> {
    call: &'c StreamCall<'h>,
    /// All headers, after the first access: Envoy's lookup by name takes more than reading all of them.
    headers: OnceCell<HeaderList<'c>>,
    /// The memory for the headers of the next request.
    memory: &'c Cell<HeaderMemory>,
    /// The client address, for several exemptions and actors.
    client: OnceCell<Option<IpAddr>>,
    /// The name of the route, for several conditions.
    route: OnceCell<Option<&'c [u8]>>,
}

impl<'c, 'h> HostRequest<'c, 'h> {
    pub(crate) fn new(
        call: &'c StreamCall<'h>,
        memory: &'c Cell<HeaderMemory>,
    ) -> HostRequest<'c, 'h> {
        let (headers, client, route) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        HostRequest { call, headers, memory, client, route }
    }

    /// The values of a header.
    fn values(&self, name: &str) -> impl Iterator<Item = &'c [u8]> {
        let read = || self.call.headers(Map::Request, self.memory.take());
        self.headers.get_or_init(read).values(name)
    }
}

impl Drop for HostRequest<'_, '_> {
    fn drop(&mut self) {
        if let Some(headers) = self.headers.take() {
            self.memory.set(headers.into_memory());
        }
    }
}

/// Removes a header that only this filter may set, unless an earlier one in the chain has set it.
pub(crate) fn remove_forged(call: &mut StreamCall<'_>, name: &str) {
    let is_there = call.header(Map::Request, name, 0).is_some();
    if is_there && !diana_worker::is_marked(name, call) {
        HostStream::remove_header(call, name);
    }
}

/// All values of a header.
pub(crate) fn values<'v>(call: &'v StreamCall<'_>, map: Map, name: &str) -> Values<'v> {
    let Some((first, total)) = call.header(map, name, 0) else { return Values::None };
    match total {
        0 => Values::None,
        1 => Values::One(first),
        _ => {
            let rest = (1..total).filter_map(|index| Some(call.header(map, name, index)?.0));
            Values::Many(std::iter::once(first).chain(rest).collect())
        }
    }
}

impl Request for HostRequest<'_, '_> {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let (attribute, name) = match which {
            Pseudo::Path => (StreamAttribute::RequestPath, ":path"),
            Pseudo::Method => (StreamAttribute::RequestMethod, ":method"),
            Pseudo::Authority => (StreamAttribute::RequestHost, ":authority"),
        };
        match self.headers.get() {
            // Only the attribute is cheaper than all headers.
            None => self.call.text(attribute).map(Cow::Borrowed),
            Some(_) => self.first(name),
        }
    }

    fn first(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        // The host uses the first value.
        self.values(name).next().map(Cow::Borrowed)
    }

    fn header(&self, name: &str) -> Values<'_> {
        self.values(name).fold(Values::None, Values::and)
    }

    fn client(&self) -> Option<IpAddr> {
        *self
            .client
            .get_or_init(|| spelling::address(self.call.text(StreamAttribute::SourceAddress)?))
    }

    fn lacks_client(&self) -> bool {
        matches!(self.client.get(), Some(None))
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        self.route.get_or_init(|| self.call.route()).map(Cow::Borrowed)
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        property::read(self.call, property)
    }
}
