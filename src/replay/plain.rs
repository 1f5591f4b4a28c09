//! A request that is described by its parts, and not by the line of a log.

use std::borrow::Cow;
use std::net::IpAddr;

use diana_policy::port::{Ending, Property, Pseudo, Request, Values};
use diana_policy::time::Micros;

use crate::Arrival;

/// A request, and how its stream ends.
#[derive(Debug)]
pub struct PlainRequest {
    /// When the request arrives, in microseconds since the epoch.
    pub at: Micros,
    /// Microseconds from its admission to the end of its stream.
    pub took: Micros,
    /// Status of its response, which comes from the upstream and has no headers.
    pub status: u16,
    /// The address of its client, if it is known.
    pub address: Option<IpAddr>,
    /// Its host, if it is known.
    pub host: Option<String>,
    /// Its method.
    pub method: String,
    /// Its path, with its query.
    pub path: String,
    /// Its headers, by their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The name of its route, if it is known.
    pub route: Option<String>,
}

impl Request for PlainRequest {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let text = match which {
            Pseudo::Path => Some(&self.path),
            Pseudo::Method => Some(&self.method),
            Pseudo::Authority => self.host.as_ref(),
        };
        text.map(|text| text.as_bytes().into())
    }

    fn header(&self, name: &str) -> Values<'_> {
        let values = self.headers.iter().filter(|(own, _)| own == name);
        values.fold(Values::None, |values, (_, value)| values.and(value.as_bytes()))
    }

    fn client(&self) -> Option<IpAddr> {
        self.address
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        self.route.as_ref().map(|name| name.as_bytes().into())
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}

impl Ending for PlainRequest {
    fn header(&self, _: &str) -> Values<'_> {
        Values::None
    }

    fn ends_with_headers(&self) -> bool {
        true
    }

    fn status(&self) -> Option<u16> {
        Some(self.status)
    }

    fn details(&self) -> Option<Cow<'_, [u8]>> {
        Some(b"via_upstream".into())
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}

impl Arrival for PlainRequest {
    fn at(&self) -> Micros {
        self.at
    }

    fn took(&self) -> Micros {
        self.took
    }
}
