//! What the core needs of its host, one trait per capability. `fake` serves tests.

pub mod fake;

use std::borrow::Cow;

use crate::time::Now;

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
    One(Cow<'a, [u8]>),
    /// It occurs more than once.
    Many(Vec<Vec<u8>>),
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

/// A header to ask for, with its property encoded once as the host wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderName {
    name: String,
    property: Property,
}

impl HeaderName {
    /// A header by its name in lower case.
    #[must_use]
    pub fn new(name: &str) -> HeaderName {
        HeaderName { name: name.into(), property: Property::new(&["request", "headers", name]) }
    }

    /// The name in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The property under which the host has all values of the header, joined.
    #[must_use]
    pub fn property(&self) -> &Property {
        &self.property
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

    /// All values of a header.
    fn header(&self, name: &HeaderName) -> Values<'_>;

    /// A property's bytes, or nothing if the request has no such property.
    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>>;
}

/// Where counts go.
pub trait Metrics {
    /// Adds `amount`, which is more than zero, to a counter.
    fn count(&mut self, name: &str, amount: u64);

    /// Moves a gauge by `change`.
    fn gauge(&mut self, name: &str, change: i64);
}
