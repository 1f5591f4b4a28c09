//! One request, simulated or from a log.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use diana_player::Arrival;
use diana_policy::port::{Ending, Property, Pseudo, Request, Values};
use diana_policy::time::{Micros, SECOND};
use serde::Deserialize;

/// Most requests of an experiment.
pub const MOST: usize = 100_000;

/// The start of experiments: Monday, 2026-06-01, 12:00 UTC.
pub const START: Micros = 1_780_315_200 * SECOND;

/// The contents of a request.
#[derive(Debug, Clone, Deserialize)]
pub struct Contents {
    /// Its method.
    pub method: String,
    /// Its path, with its query.
    pub path: String,
    /// Its headers. Names are in lower case.
    pub headers: Vec<(String, String)>,
}

impl Contents {
    /// The same request from a caller: `{n}` is replaced by the number of the caller.
    pub fn by(&self, caller: u32) -> Contents {
        let number = (caller + 1).to_string();
        let by = |text: &str| text.replace("{n}", &number);
        let headers = self.headers.iter();
        Contents {
            method: self.method.clone(),
            path: by(&self.path),
            headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), by(value))).collect(),
        }
    }
}

/// A request and its response.
#[derive(Debug)]
pub struct Visit {
    /// When it arrives.
    pub at: Micros,
    /// How long the response takes.
    pub took: Micros,
    /// Status of its response.
    pub status: u16,
    /// The caller's address, if it is known.
    pub address: Option<IpAddr>,
    /// The host it is for.
    pub host: String,
    /// Its contents.
    pub contents: Contents,
}

/// The address of a caller: one of 198.18.0.0/15, which is reserved for network tests.
pub fn address(caller: u32) -> IpAddr {
    let [_, high, middle, low] = (caller + 1).to_be_bytes();
    Ipv4Addr::new(198, 18 + (high & 1), middle, low).into()
}

impl Request for Visit {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        match which {
            Pseudo::Path => Some(self.contents.path.as_bytes().into()),
            Pseudo::Method => Some(self.contents.method.as_bytes().into()),
            Pseudo::Authority => Some(self.host.as_bytes().into()),
        }
    }

    fn header(&self, name: &str) -> Values<'_> {
        let own = self.contents.headers.iter().filter(|(own, _)| own == name);
        own.fold(Values::None, |values, (_, value)| values.and(value.as_bytes()))
    }

    fn client(&self) -> Option<IpAddr> {
        self.address
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}

impl Ending for Visit {
    /// Simulated responses have no headers.
    fn header(&self, _: &str) -> Values<'_> {
        Values::None
    }

    fn status(&self) -> Option<u16> {
        Some(self.status)
    }

    fn is_from_upstream(&self) -> bool {
        true
    }

    fn is_followed(&self) -> bool {
        false
    }

    fn details(&self) -> Option<Cow<'_, [u8]>> {
        Some(b"via_upstream".into())
    }

    fn upstream_failed(&self) -> bool {
        false
    }

    fn client_left(&self) -> bool {
        false
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}

impl Arrival for Visit {
    fn at(&self) -> Micros {
        self.at
    }

    fn took(&self) -> Micros {
        self.took
    }
}
