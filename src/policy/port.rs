//! What the core needs of its host, one trait per capability.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::time::{Micros, Now};

/// The clocks of the host.
pub trait Clock {
    /// Both clocks at one instant.
    fn now(&self) -> Now;
}

/// A header's values as the host has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values<'a> {
    /// The header is absent.
    None,
    /// It occurs once. The value may be empty and need not be UTF-8.
    One(&'a [u8]),
    /// It occurs more than once; without any values if nobody can tell which are its own.
    Many(Vec<&'a [u8]>),
}

impl<'a> Values<'a> {
    /// With one more value.
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

/// A property of the request or its connection, its segments encoded once as the host wants them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property(Box<[u8]>);

impl Property {
    /// Encodes a path such as `["source", "address"]`.
    pub fn new<S: AsRef<str>>(path: &[S]) -> Property {
        let segments: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
        Property(segments.join("\0").into_bytes().into())
    }

    /// The path as the host wants it: segments with a NUL between them.
    #[must_use]
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }
}

/// What a request says of itself outside its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pseudo {
    /// `:path`, query included.
    Path,
    /// `:method`.
    Method,
    /// `:authority`.
    Authority,
}

/// The request being judged. Every call may cost about a microsecond: callers ask only for what
/// a rule needs, and once.
pub trait Request {
    /// A pseudo header.
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>>;

    /// All values of a header, by its name in lower case.
    fn header(&self, name: &str) -> Values<'_>;

    /// The address of the client, IPv4-mapped IPv6 as IPv4; nothing if it has no IP address.
    fn client(&self) -> Option<IpAddr>;

    /// A property's bytes, or nothing if the request has no such property.
    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>>;
}

/// The response to a request, and how its stream ended.
pub trait Ending {
    /// All values of a header of the response, by its name in lower case. To be asked for only when it has just come.
    fn header(&self, name: &str) -> Values<'_>;

    /// The response's status; nothing if there was none.
    fn status(&self) -> Option<u16>;

    /// Whether the response came from the upstream, and is whole if the stream has ended.
    fn is_from_upstream(&self) -> bool;

    /// Whether the host follows the response itself, by a stream of its own.
    fn is_followed(&self) -> bool;

    /// What the host calls the reason for the response, or for its end.
    fn details(&self) -> Option<Cow<'_, [u8]>>;

    /// Whether the upstream could not be reached, or did not answer.
    fn upstream_failed(&self) -> bool;

    /// Whether the client has left.
    fn client_left(&self) -> bool;

    /// A property's bytes, or nothing if the stream has no such property.
    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>>;
}

/// Data that all workers of a gateway share. Keys are never freed, so they come from a fixed set.
pub trait SharedData {
    /// A value, and the number that [`SharedData::swap`] compares.
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)>;

    /// Writes a value if it is still the one that was got under `number`, or if there is none and
    /// no `number` is given. Whether it was written.
    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool;
}

/// The environment of the VM.
pub trait Environment {
    /// The value of a variable, if it is there and text.
    fn variable(&self, name: &str) -> Option<String>;
}

/// A request over HTTP that the filter makes itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Call {
    /// Whom it goes to, by the host's name for them.
    pub cluster: String,
    /// All headers, those that begin with a colon first.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Ticks that the answer may take.
    pub timeout: Micros,
}

/// Calls over HTTP. The host hands the answer over later.
pub trait Callout {
    /// Makes a call. The number that its answer comes under, or why it cannot be made.
    ///
    /// # Errors
    /// What is wrong with the cluster.
    fn send(&self, call: &Call) -> Result<u32, &'static str>;

    /// Who makes the calls: the host tells nobody of their answers once it has ended.
    fn caller(&self) -> u32;
}

/// What came back on a call.
pub struct Answer<'a> {
    /// Nothing if the connection broke off or the body is larger than the host takes. The host also
    /// makes answers up: 503 if it cannot connect, 504 when time is over.
    pub status: Option<u16>,
    /// Bytes of the body.
    pub size: usize,
    /// Fetches the body, if the host still has it.
    pub body: &'a dyn Fn() -> Option<Vec<u8>>,
}

/// Where counts go.
pub trait Metrics {
    /// Adds `amount`, which is more than zero, to a counter.
    fn count(&self, name: &str, amount: u64);

    /// Moves a gauge by `change`.
    fn gauge(&self, name: &str, change: i64);

    /// Sets a gauge that all workers know the value of.
    fn set(&self, name: &str, value: u64);

    /// Adds a value to a histogram.
    fn record(&self, name: &str, value: u64);
}
