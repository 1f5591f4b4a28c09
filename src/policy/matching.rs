//! Which requests rules are for. What it means for a request to match stands in `matching`.

use std::net::Ipv6Addr;

use ipnet::IpNet;

use crate::port::Property;

/// A configured path; it covers whole segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// In normal form, in lower case if case is ignored.
    pub(crate) path: Box<[u8]>,
    pub(crate) ignore_case: bool,
}

/// Which requests an entry is for, beyond its path.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// One of them must hold, in any way that the request can be read; an empty list always does.
    pub any: Vec<Block>,
    /// None of them may hold in all ways that the request can be read.
    pub unless: Vec<Block>,
}

impl Match {
    /// Whether nothing needs to hold.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.unless.is_empty()
    }

    /// Whether headers are looked at.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.any.iter().chain(&self.unless).any(Block::reads_headers)
    }
}

/// Conditions that must all hold; an empty list always does.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Methods, upper case; one of them.
    pub methods: Vec<String>,
    /// Hosts; one of them.
    pub hosts: Vec<Host>,
    /// Client addresses, IPv4-mapped IPv6 written as IPv4; one of them.
    pub addresses: Vec<IpNet>,
    /// Values; all of them.
    pub values: Vec<Condition>,
}

impl Block {
    fn reads_headers(&self) -> bool {
        let by_value = |condition: &Condition| !matches!(condition.field, Field::Property(_));
        !self.methods.is_empty() || !self.hosts.is_empty() || self.values.iter().any(by_value)
    }
}

/// A host name, or all names below one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Lower case; with a leading dot if it stands for all names below.
    pub(crate) name: Box<[u8]>,
    /// What it means if it is an IPv6 address, of which there are many spellings.
    pub(crate) address: Option<Ipv6Addr>,
}

/// What one value must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Where it stands.
    pub field: Field,
    /// What it must be.
    pub test: Test,
}

/// Where a request has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// In a header, whose name is in lower case.
    Header(String),
    /// In a parameter of the query.
    Query(String),
    /// In a cookie.
    Cookie(String),
    /// In what another filter left.
    Property(Property),
}

/// A test of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// The value is this.
    Exact(String),
    /// The value begins with this.
    Prefix(String),
    /// The value ends with this.
    Suffix(String),
    /// The value has this somewhere.
    Contains(String),
    /// The value is one of these, which are sorted.
    In(Vec<String>),
    /// The value is there, or is not.
    Present(bool),
    /// No value is this; nor is one that is absent.
    Not(String),
}

impl Test {
    /// Whether a value passes it.
    #[must_use]
    pub fn accepts(&self, value: &[u8]) -> bool {
        match self {
            Test::Exact(text) => value == text.as_bytes(),
            Test::Prefix(text) => value.starts_with(text.as_bytes()),
            Test::Suffix(text) => value.ends_with(text.as_bytes()),
            Test::Contains(text) => {
                value.windows(text.len().max(1)).any(|at| at == text.as_bytes())
            }
            Test::In(texts) => texts.binary_search_by(|text| text.as_bytes().cmp(value)).is_ok(),
            Test::Present(wanted) => *wanted != value.is_empty(),
            Test::Not(text) => value != text.as_bytes(),
        }
    }
}

/// A list of exemptions; any one of them exempts a request.
#[derive(Debug, Clone, Default)]
pub struct Except {
    /// Client addresses, IPv4-mapped IPv6 written as IPv4.
    pub addresses: Vec<IpNet>,
    /// Paths.
    pub paths: Vec<Prefix>,
    /// Header conditions.
    pub headers: Vec<Condition>,
}

impl Except {
    /// Whether nothing is exempt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.paths.is_empty() && self.headers.is_empty()
    }

    /// Whether headers are looked at.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        !self.headers.is_empty()
    }
}
