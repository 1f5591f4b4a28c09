//! Endings of streams.

use std::borrow::Cow;

use diana_policy::port::{Ending, Property, Values};

/// The ending of a stream.
#[derive(Debug, Clone, Default)]
pub struct FakeEnding {
    pub status: Option<u16>,
    pub details: &'static str,
    pub client_left: bool,
    pub has_body: bool,
    pub headers: Vec<(String, Vec<u8>)>,
    properties: Vec<(Property, Vec<u8>)>,
}

impl FakeEnding {
    /// The upstream responded with a status.
    pub fn answered(status: u16) -> FakeEnding {
        FakeEnding { status: Some(status), details: "via_upstream", ..FakeEnding::default() }
    }

    /// A filter before the upstream responded, for this reason.
    pub fn denied(status: u16, details: &'static str) -> FakeEnding {
        FakeEnding { details, ..FakeEnding::answered(status) }
    }

    /// The client left, before or after the status.
    pub fn left(status: Option<u16>) -> FakeEnding {
        let details = "downstream_remote_disconnect";
        FakeEnding { status, details, client_left: true, ..FakeEnding::default() }
    }

    /// The proxy closed the connection before the response.
    pub fn closed() -> FakeEnding {
        FakeEnding { details: "downstream_local_disconnect", ..FakeEnding::default() }
    }

    /// The upstream was unreachable.
    pub fn unreachable() -> FakeEnding {
        let details = "upstream_reset_before_response_started{connection_failure}";
        let status = Some(503);
        FakeEnding { status, details, ..FakeEnding::default() }
    }

    /// The upstream aborted the response.
    pub fn cut() -> FakeEnding {
        let details = "upstream_reset_after_response_started{remote reset}";
        let status = Some(200);
        FakeEnding { status, details, ..FakeEnding::default() }
    }

    /// The response has a body, or trailers.
    #[must_use]
    pub fn with_body(mut self) -> FakeEnding {
        self.has_body = true;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> FakeEnding {
        self.headers.push((name.into(), value.as_ref().into()));
        self
    }

    /// Adds a property.
    #[must_use]
    pub fn property(mut self, path: &[&str], value: impl AsRef<[u8]>) -> FakeEnding {
        self.properties.push((Property::new(path), value.as_ref().into()));
        self
    }
}

impl Ending for FakeEnding {
    fn header(&self, name: &str) -> Values<'_> {
        let own = self.headers.iter().filter(|(own, _)| own == name);
        own.fold(Values::None, |values, (_, value)| values.and(value))
    }

    fn ends_with_headers(&self) -> bool {
        !self.has_body
    }

    fn status(&self) -> Option<u16> {
        self.status
    }

    fn details(&self) -> Option<Cow<'_, [u8]>> {
        Some(Cow::Borrowed(self.details.as_bytes()))
    }

    fn flags(&self) -> u64 {
        u64::from(self.client_left) << 14
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        let found = self.properties.iter().find(|(own, _)| own == property);
        found.map(|(_, value)| Cow::Borrowed(value.as_slice()))
    }
}
