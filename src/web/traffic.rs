//! The parts of simulated requests.

use std::net::{IpAddr, Ipv4Addr};

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
    /// The name of its route. Empty without one.
    #[serde(default)]
    pub route: String,
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
            route: self.route.clone(),
        }
    }
}

/// The address of a caller: one of 198.18.0.0/15, which is reserved for network tests.
pub fn address(caller: u32) -> IpAddr {
    let [_, high, middle, low] = (caller + 1).to_be_bytes();
    Ipv4Addr::new(198, 18 + (high & 1), middle, low).into()
}
