//! Capabilities of the host, one trait each.

mod ending;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use crate::Metric;
use crate::time::{Micros, Now};

pub use ending::Ending;

/// The clocks of the host.
pub trait Clock {
    /// Both clocks at one instant.
    fn now(&self) -> Now;
}

/// A header's values as the host returns them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values<'a> {
    /// The header is absent.
    None,
    /// It occurs once. The value may be empty and need not be UTF-8.
    One(&'a [u8]),
    /// It occurs more than once. The list is empty if the host cannot separate the values.
    Many(Vec<&'a [u8]>),
}

impl<'a> Values<'a> {
    /// The values with one more.
    #[must_use]
    pub fn and(self, value: &'a [u8]) -> Values<'a> {
        match self {
            Values::None => Values::One(value),
            Values::One(first) => Values::Many(vec![first, value]),
            Values::Many(mut values) => {
                values.push(value);
                Values::Many(values)
            }
        }
    }
}

/// A property of the request or its connection. Its path is encoded once, in the form of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property(Box<[u8]>);

impl Property {
    /// Encodes a path such as `["source", "address"]`.
    pub fn new<S: AsRef<str>>(path: &[S]) -> Property {
        let segments: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
        Property(segments.join("\0").into_bytes().into())
    }

    /// The path in the form of the host: segments separated by NUL.
    #[must_use]
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }
}

/// The parts of a request line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pseudo {
    /// `:path`, query included.
    Path,
    /// `:method`.
    Method,
    /// `:authority`.
    Authority,
}

/// The current request. A call may take about a microsecond, so values are read only if a rule
/// needs them, and once.
pub trait Request {
    /// A pseudo header.
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>>;

    /// All values of a header, by its name in lower case.
    fn header(&self, name: &str) -> Values<'_>;

    /// The first value of a header, by its name in lower case. Cheaper where no other one is read.
    fn first(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        match self.header(name) {
            Values::None => None,
            Values::One(value) => Some(Cow::Borrowed(value)),
            Values::Many(values) => values.first().copied().map(Cow::Borrowed),
        }
    }

    /// The client address, IPv4-mapped IPv6 as IPv4. `None` if it is not an IP address.
    fn client(&self) -> Option<IpAddr>;

    /// Returns true if the client address was read and is unknown.
    fn lacks_client(&self) -> bool {
        self.client().is_none()
    }

    /// The name of the route by which the host would forward the request now. `None` if there is no
    /// such route; empty if it has no name. Read from the host once.
    fn route(&self) -> Option<Cow<'_, [u8]>>;

    /// A property's bytes. `None` if the request has no such property.
    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>>;
}

/// Data that all workers of a gateway share. The host never frees keys, so they come from a fixed
/// set.
pub trait SharedData {
    /// A value, and its version for [`SharedData::swap`].
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)>;

    /// Writes a value if the key still has the version `number`, or is absent and `number` is
    /// `None`. Returns true if it was written.
    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool;
}

/// The environment of the VM.
pub trait Environment {
    /// The value of a variable. `None` if it is absent or not text.
    fn variable(&self, name: &str) -> Option<String>;

    /// The id of the host's node in its control plane. `None` if it is not known.
    fn node(&self) -> Option<String> {
        None
    }

    /// Returns true if the host has secrets.
    fn has_secrets(&self) -> bool {
        false
    }

    /// The password of Redis that the host has in its secret for the document. `None` until the
    /// host has received it.
    fn password(&self) -> Option<String> {
        None
    }
}

/// The destination of a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// A cluster of the host, by its name. The call is an HTTP request.
    Cluster(String),
    /// A listener of the host, by the path of its socket. `@` begins an abstract name. The call is a
    /// connection without HTTP: the body is sent, and the reply is all bytes until its end.
    Pipe(String),
}

impl Destination {
    /// The name of the cluster, or the path.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Destination::Cluster(name) | Destination::Pipe(name) => name,
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Cluster(name) => write!(f, "cluster `{name}`"),
            Destination::Pipe(path) => write!(f, "pipe `{path}`"),
        }
    }
}

/// A call of the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Where it goes.
    pub destination: Destination,
    /// All headers, pseudo headers first. Empty without HTTP.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Timeout in ticks.
    pub timeout: Micros,
}

/// Calls to other services. The host delivers replies later.
pub trait Callout {
    /// Sends a call. Returns the number of its reply.
    ///
    /// # Errors
    /// The problem with the destination.
    fn send(&self, call: &Call) -> Result<u32, &'static str>;

    /// The context that makes the calls. The host drops replies to a context that has ended.
    fn caller(&self) -> u32;
}

/// The reply to a call.
pub struct Answer<'a> {
    /// `None` if the connection broke off or the body exceeds the host's limit. The host also
    /// generates replies: 503 if it cannot connect, 504 after a timeout.
    pub status: Option<u16>,
    /// Bytes of the body.
    pub size: usize,
    /// Reads the body, if the host still has it.
    pub body: &'a dyn Fn() -> Option<Vec<u8>>,
    /// Reads the value of one of [`ANSWER_HEADERS`], if the reply has it.
    pub header: &'a dyn Fn(&str) -> Option<Vec<u8>>,
}

/// The header of a reply with the server's name for its document.
pub const TAG: &str = "etag";

/// The header of a reply with the number of gateways that share the limits of the fleet.
pub const GATEWAYS: &str = "x-diana-gateways";

/// The headers of a reply that are read.
pub const ANSWER_HEADERS: [&str; 2] = [TAG, GATEWAYS];

/// Destination of metrics. Each call has the values of the metric's labels.
pub trait Metrics {
    /// Adds to a counter, or moves a gauge.
    fn add(&self, metric: Metric, labels: &[&str], change: i64);

    /// Sets a gauge that all workers compute alike.
    fn set(&self, metric: Metric, labels: &[&str], value: u64);

    /// Adds values to a histogram.
    fn record(&self, metric: Metric, labels: &[&str], values: &[u64]);
}
