//! The response of a stream, and the end of the stream.

use std::borrow::Cow;
use std::cell::OnceCell;

use proxy_wasm::hostcalls;
use proxy_wasm::types::MapType;

use super::{pairs, raw};
use diana_policy::port::{Ending, Property, Values};

/// The stream of the host's current call.
pub(super) struct HostEnding {
    /// The headers that the host can read during this call.
    map: MapType,
    /// Whether the headers end the response.
    are_last: bool,
    details: OnceCell<Option<Vec<u8>>>,
    flags: OnceCell<u64>,
    headers: OnceCell<Option<Vec<u8>>>,
}

impl HostEnding {
    pub(super) fn new(map: MapType, are_last: bool) -> HostEnding {
        let (details, flags, headers) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        HostEnding { map, are_last, details, flags, headers }
    }
}

impl Ending for HostEnding {
    fn header(&self, name: &str) -> Values<'_> {
        let headers = self.headers.get_or_init(|| raw::headers(self.map));
        let values = headers.as_deref().and_then(|headers| pairs::values(headers, name));
        values.unwrap_or(Values::None)
    }

    // The host's lookup of an absent header takes a sixth of a call for all headers.
    fn has_header(&self, name: &str) -> bool {
        let value = hostcalls::get_map_value_bytes(self.map, name);
        matches!(value, Ok(Some(_)))
    }

    fn ends_with_headers(&self) -> bool {
        self.are_last
    }

    fn status(&self) -> Option<u16> {
        u16::try_from(number(b"response\0code")?).ok()
    }

    fn details(&self) -> Option<Cow<'_, [u8]>> {
        let read = || raw::property(b"response\0code_details");
        self.details.get_or_init(read).as_deref().map(Cow::Borrowed)
    }

    fn flags(&self) -> u64 {
        *self.flags.get_or_init(|| number(b"response\0flags").unwrap_or(0))
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        raw::property(property.encoded()).map(Cow::Owned)
    }
}

/// A property that is a whole number, little-endian.
fn number(property: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(raw::property(property)?.try_into().ok()?))
}
