//! The response of a stream, and the end of the stream.

use std::borrow::Cow;

use diana_policy::port::{Ending, Property, Values};

use crate::abi::{self, Map, StreamAttribute, StreamCall};
use crate::{property, request};

/// The stream of a hook. Without a call the stream has ended, and the host has dropped its data.
pub(crate) struct HostEnding<'c, 'h> {
    call: Option<&'c StreamCall<'h>>,
    request_bytes: Option<u64>,
    /// What arrives in this hook.
    map: Map,
    /// Whether the headers end the response.
    are_last: bool,
}

impl<'c, 'h> HostEnding<'c, 'h> {
    /// With the bytes of the request's body, if they were counted.
    pub(crate) fn new(
        call: Option<&'c StreamCall<'h>>,
        request_bytes: Option<u64>,
    ) -> HostEnding<'c, 'h> {
        HostEnding { call, request_bytes, map: Map::Response, are_last: false }
    }

    /// As [`HostEnding::new`] while the headers arrive.
    pub(crate) fn of_headers(
        call: &'c StreamCall<'h>,
        request_bytes: Option<u64>,
        are_last: bool,
    ) -> HostEnding<'c, 'h> {
        HostEnding { are_last, ..HostEnding::new(Some(call), request_bytes) }
    }

    /// While the trailers arrive.
    pub(crate) fn of_trailers(call: &'c StreamCall<'h>) -> HostEnding<'c, 'h> {
        HostEnding { map: Map::Trailers, ..HostEnding::new(Some(call), None) }
    }
}

impl Ending for HostEnding<'_, '_> {
    fn header(&self, name: &str) -> Values<'_> {
        self.call.map_or(Values::None, |call| request::values(call, self.map, name))
    }

    fn ends_with_headers(&self) -> bool {
        self.are_last
    }

    fn status(&self) -> Option<u16> {
        let status = self.call?.number(StreamAttribute::ResponseCode)?;
        u16::try_from(status).ok().filter(|status| *status > 0)
    }

    fn details(&self) -> Option<Cow<'_, [u8]>> {
        let call = self.call.filter(|_| abi::reports_ends());
        call?.text(StreamAttribute::ResponseCodeDetails).map(Cow::Borrowed)
    }

    fn flags(&self) -> u64 {
        let call = self.call.filter(|_| abi::reports_ends());
        call.and_then(|call| call.number(StreamAttribute::ResponseFlags)).unwrap_or(0)
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        let bytes = match property.encoded() {
            // Envoy 1.39 does not report it.
            b"request\0total_size" => self.request_bytes,
            // That of its attribute `response.total_size` includes headers, which the wasm host no longer has at the end.
            b"response\0total_size" => self.call?.number(StreamAttribute::ResponseSize),
            _ => return property::read(self.call?, property),
        };
        bytes.map(|bytes| Cow::Owned(bytes.to_le_bytes().into()))
    }
}
