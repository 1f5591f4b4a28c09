//! One request, which was made up or stood in a log.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use diana_player::Arrival;
use diana_policy::port::{Ending, Property, Pseudo, Request, Values};
use diana_policy::time::{Micros, SECOND};
use serde::Deserialize;

/// Most requests of an experiment.
pub const MOST: usize = 100_000;

/// When experiments begin: noon of a Monday, 2026-06-01, UTC.
pub const START: Micros = 1_780_315_200 * SECOND;

/// What a request says.
#[derive(Debug, Clone, Deserialize)]
pub struct Told {
    /// Its method.
    pub method: String,
    /// Its path, with its query.
    pub path: String,
    /// Its headers, by their names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Told {
    /// The same by a caller.
    pub fn by(&self, caller: u32) -> Told {
        let number = (caller + 1).to_string();
        let by = |text: &str| text.replace("{n}", &number);
        let headers = self.headers.iter();
        Told {
            method: self.method.clone(),
            path: by(&self.path),
            headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), by(value))).collect(),
        }
    }
}

/// A request, and how it ends.
#[derive(Debug)]
pub struct Visit {
    /// When it comes.
    pub at: Micros,
    /// How long it takes.
    pub took: Micros,
    /// Status of its response.
    pub status: u16,
    /// The caller's address, if it is known.
    pub address: Option<IpAddr>,
    /// Whom it asks.
    pub host: String,
    /// What it says.
    pub told: Told,
}

/// The address of a caller by its number, of those that are reserved for tests of networks, 198.18.0.0/15.
pub fn address(caller: u32) -> IpAddr {
    let [_, high, middle, low] = (caller + 1).to_be_bytes();
    Ipv4Addr::new(198, 18 + (high & 1), middle, low).into()
}

impl Request for Visit {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        match which {
            Pseudo::Path => Some(self.told.path.as_bytes().into()),
            Pseudo::Method => Some(self.told.method.as_bytes().into()),
            Pseudo::Authority => Some(self.host.as_bytes().into()),
        }
    }

    fn header(&self, name: &str) -> Values<'_> {
        let own = self.told.headers.iter().filter(|(own, _)| own == name);
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
    /// What responses say is not made up.
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
