//! Conditions that select requests. Their evaluation is in the module `matching` of the crate
//! `request`.

use std::net::Ipv6Addr;

use ipnet::IpNet;

use crate::number::signed_millionths;
use crate::port::Property;

/// A configured path. It covers whole segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// In normal form, in lower case if case is ignored, with `*` for each wildcard.
    pub(crate) path: Box<[u8]>,
    pub(crate) ignore_case: bool,
    /// The segments that every name fits, in ascending order.
    pub(crate) wildcards: Box<[Wildcard]>,
    /// The name of a wildcard `**` at the end: `rest` in `/files/{rest=**}`, empty in `/files/**`.
    pub(crate) rest: Option<Box<str>>,
}

/// A segment of a configured path that every name fits: `*` or `{name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    /// The number of the segment.
    pub(crate) segment: usize,
    /// Its name, if it has one.
    pub(crate) name: Option<Box<str>>,
}

/// Conditions of an entry, apart from its path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Match {
    /// One of them must hold in at least one reading of the request. An empty list always holds.
    pub any: Vec<ConditionBlock>,
    /// None of them may hold in all readings of the request.
    pub unless: Vec<ConditionBlock>,
}

impl Match {
    /// Returns true if there are no conditions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.unless.is_empty()
    }
}

/// Conditions that must all hold. An empty list always holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConditionBlock {
    /// Methods in upper case. One must match.
    pub methods: Vec<String>,
    /// Hosts. One must match.
    pub hosts: Vec<HostPattern>,
    /// Client addresses, IPv4-mapped IPv6 written as IPv4. One must match.
    pub addresses: Vec<IpNet>,
    /// Conditions on values. All must hold.
    pub values: Vec<Condition>,
    /// Names of routes. One must match.
    pub routes: RouteNames,
}

impl ConditionBlock {
    /// Returns true if a condition reads headers.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        let by_value =
            |condition: &Condition| !matches!(condition.field, ConditionField::Property(_));
        !self.methods.is_empty() || !self.hosts.is_empty() || self.values.iter().any(by_value)
    }

    /// Returns true if it has a condition on the route.
    #[must_use]
    pub fn reads_route(&self) -> bool {
        !self.routes.is_empty()
    }
}

/// Names of routes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteNames {
    /// Whole names, in ascending order, none of them empty.
    pub exact: Vec<String>,
    /// Beginnings of names, none of them empty.
    pub prefixes: Vec<String>,
}

impl RouteNames {
    /// Returns true if there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty()
    }

    /// Returns true if a route with this name is meant. One without a name never is.
    #[must_use]
    pub fn contain(&self, name: &[u8]) -> bool {
        self.exact.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok()
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
    }
}

/// A host name, or all names below a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// In lower case. A leading dot stands for all names below.
    pub(crate) name: Box<[u8]>,
    /// The parsed IPv6 address, since an address has many spellings.
    pub(crate) address: Option<Ipv6Addr>,
}

/// A condition on one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The location of the value.
    pub field: ConditionField,
    /// The test of the value.
    pub test: Test,
    /// Whether the test compares in lower case. Its texts are in lower case then.
    pub ignore_case: bool,
    /// Whether the condition holds where the test does not. Never for `Present` and `Not`.
    pub is_negated: bool,
}

impl Condition {
    /// A condition that holds where the test does, in the case as written.
    #[must_use]
    pub fn new(field: ConditionField, test: Test) -> Condition {
        Condition { field, test, ignore_case: false, is_negated: false }
    }

    /// Returns true if a value passes the test.
    #[must_use]
    pub fn accepts(&self, value: &[u8]) -> bool {
        if self.ignore_case {
            self.test.accepts(&value.to_ascii_lowercase())
        } else {
            self.test.accepts(value)
        }
    }
}

/// The location of a value in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionField {
    /// A header, by its name in lower case.
    Header(String),
    /// A query parameter.
    Query(String),
    /// A cookie.
    Cookie(String),
    /// A property that another filter has set.
    Property(Property),
}

/// A test of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// The value equals this text.
    Exact(String),
    /// The value begins with this text.
    Prefix(String),
    /// The value ends with this text.
    Suffix(String),
    /// The value contains this text.
    Contains(String),
    /// The value is in this sorted list.
    In(Vec<String>),
    /// The value is present, or absent.
    Present(bool),
    /// No value equals this text. An absent value passes.
    Not(String),
    /// The value is a number in this range, both ends included, in millionths.
    Between(i64, i64),
}

impl Test {
    /// Returns true if a value passes the test.
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
            Test::Between(least, most) => {
                signed_millionths(value).is_some_and(|number| (*least..=*most).contains(&number))
            }
        }
    }
}

/// Exemptions. One match exempts a request.
#[derive(Debug, Clone, Default)]
pub struct Except {
    /// Paths.
    pub paths: Vec<Prefix>,
    /// Conditions. One block that holds in all readings exempts a request.
    pub any: Vec<ConditionBlock>,
}

impl Except {
    /// Returns true if there are no exemptions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.any.is_empty()
    }
}
