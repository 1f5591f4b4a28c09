//! Which requests rules are for. What it means for a request to match stands in `matching`.

use std::net::Ipv6Addr;

use ipnet::IpNet;

/// A configured path; it covers whole segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// In normal form, in lower case if case is ignored.
    pub(crate) path: Box<[u8]>,
    pub(crate) ignore_case: bool,
}

/// Conditions of an entry beyond its path; all must hold, an empty list always does.
#[derive(Debug, Default)]
pub struct Match {
    /// Methods, upper case; one of them.
    pub methods: Vec<String>,
    /// Hosts; one of them.
    pub hosts: Vec<Host>,
    /// Header conditions; all of them.
    pub headers: Vec<Condition>,
}

impl Match {
    /// Whether nothing needs to hold.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.hosts.is_empty() && self.headers.is_empty()
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

/// What one header must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The header, in lower case.
    pub name: String,
    /// What its value must be.
    pub test: Test,
}

/// A test of a header's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// The value is this.
    Exact(String),
    /// The value begins with this.
    Prefix(String),
    /// The value ends with this.
    Suffix(String),
    /// The header is there, or is not.
    Present(bool),
    /// No value is this; an absent header has none.
    Not(String),
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
