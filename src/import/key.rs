//! Values of requests by which limiters count, as sources of Diana's actors.

use std::net::IpAddr;

use diana_policy::port::{Pseudo, Request, Values};
use diana_policy::tree::Tree;
use diana_replay::Arrival;
use ipnet::IpNet;

/// A value by which a limiter counts.
#[derive(Debug, Clone)]
pub(crate) struct KeySource {
    /// The name of the actor.
    name: String,
    /// Its sources.
    sources: Tree,
    /// The counted callers, for readers.
    pub(crate) counts: String,
    /// Whether every request has a value.
    is_always: bool,
    value: KeyValue,
}

/// The place of a value in a request.
#[derive(Debug, Clone)]
enum KeyValue {
    /// The network with these numbers of bits.
    Network(u8, u8),
    Part(Pseudo),
    Header(String),
    Cookie(String),
    Query(String),
    /// Metadata, which generated requests and access logs lack.
    Unknown,
}

fn map(key: &str, value: impl Into<Tree>) -> Tree {
    Tree::Map(vec![(key.to_owned(), value.into())])
}

impl KeySource {
    fn new(name: &str, source: Tree, counts: &str, value: KeyValue) -> KeySource {
        KeySource {
            name: name.into(),
            sources: Tree::List(vec![source]),
            counts: counts.into(),
            is_always: matches!(value, KeyValue::Network(..) | KeyValue::Part(_)),
            value,
        }
    }

    /// The client's address.
    pub(crate) fn address() -> KeySource {
        KeySource::network(32, 128)
    }

    /// The client's network, by the bits of IPv4 and of IPv6 that count.
    pub(crate) fn network(v4: u8, v6: u8) -> KeySource {
        let (bits4, bits6) =
            (("v4".into(), Tree::Int(v4.into())), ("v6".into(), Tree::Int(v6.into())));
        let (name, counts, bits) = match (v4, v6) {
            (32, 128) => ("address".into(), "client address".into(), vec![bits6]),
            (32, _) => {
                (format!("network-{v6}"), format!("client network, /{v6} of IPv6"), vec![bits6])
            }
            _ => {
                let counts = format!("client network, /{v4} of IPv4 and /{v6} of IPv6");
                (format!("network-{v4}-{v6}"), counts, vec![bits4, bits6])
            }
        };
        let source = map("client_address", Tree::Map(bits));
        KeySource::new(&name, source, &counts, KeyValue::Network(v4, v6))
    }

    /// A part of the request line.
    pub(crate) fn part(part: Pseudo) -> KeySource {
        let name = match part {
            Pseudo::Authority => "host",
            Pseudo::Method => "method",
            Pseudo::Path => "path",
        };
        KeySource::new(name, map("attribute", name), name, KeyValue::Part(part))
    }

    /// A header, by its name.
    pub(crate) fn header(name: &str) -> KeySource {
        let name = name.to_ascii_lowercase();
        KeySource::named("header", &name, KeyValue::Header(name.clone()))
    }

    /// A cookie.
    pub(crate) fn cookie(name: &str) -> KeySource {
        KeySource::named("cookie", name, KeyValue::Cookie(name.into()))
    }

    /// A parameter of the query.
    pub(crate) fn query(name: &str) -> KeySource {
        KeySource::named("query", name, KeyValue::Query(name.into()))
    }

    /// Dynamic metadata: a namespace and keys.
    pub(crate) fn metadata(path: &[String]) -> KeySource {
        let list = Tree::List(path.iter().cloned().map(Tree::Text).collect());
        let counts = format!("the metadata {}", path.join(" "));
        let name = format!("metadata-{}", actor_name(&path.join("-")));
        KeySource::new(&name, map("metadata", list), &counts, KeyValue::Unknown)
    }

    fn named(kind: &str, name: &str, value: KeyValue) -> KeySource {
        let actor = format!("{kind}-{}", actor_name(name));
        KeySource::new(&actor, map(kind, name), &format!("the {kind} {name}"), value)
    }

    /// The counted callers of a key of several values, for readers.
    pub(crate) fn counted_by(sources: &[KeySource]) -> String {
        let counts: Vec<&str> = sources.iter().map(|source| &*source.counts).collect();
        match counts.as_slice() {
            [] => "all requests together".into(),
            counts => format!("by {}", counts.join(" and ")),
        }
    }

    /// Whether every request has a value.
    pub(crate) fn is_always(&self) -> bool {
        self.is_always
    }

    /// Whether the generated requests of a comparison may have a value.
    pub(crate) fn is_comparable(&self) -> bool {
        !matches!(self.value, KeyValue::Unknown)
    }

    /// The value in a request; empty if it is absent.
    pub(crate) fn value(&self, request: &dyn Arrival) -> Vec<u8> {
        let path = || request.pseudo(Pseudo::Path).unwrap_or_default().into_owned();
        let header = |name: &str| match Request::header(request, name) {
            Values::One(value) => value.to_vec(),
            Values::Many(values) => values.join(&b","[..]),
            Values::None => Vec::new(),
        };
        let named = |text: &[u8], end: u8, name: &str| {
            let mut parts = text.split(|byte| *byte == end).map(<[u8]>::trim_ascii);
            let value = |part: &[u8]| {
                Some(part.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec())
            };
            parts.find_map(value).unwrap_or_default()
        };
        match &self.value {
            KeyValue::Network(v4, v6) => match request.client() {
                Some(address) => network(address, *v4, *v6).into_bytes(),
                None => Vec::new(),
            },
            KeyValue::Unknown => Vec::new(),
            KeyValue::Part(Pseudo::Path) => {
                path().split(|byte| *byte == b'?').next().unwrap_or_default().to_vec()
            }
            KeyValue::Part(part) => request.pseudo(*part).unwrap_or_default().into_owned(),
            KeyValue::Header(name) => header(name),
            KeyValue::Cookie(name) => named(&header("cookie"), b';', name),
            KeyValue::Query(name) => {
                let path = path();
                let query = path.split(|byte| *byte == b'?').nth(1).unwrap_or_default();
                named(query, b'&', name)
            }
        }
    }

    /// The actor.
    pub(crate) fn actor(&self) -> (String, Tree) {
        (self.name.clone(), self.sources.clone())
    }

    /// The treatment of requests without a value, and of those with an exempt address.
    pub(crate) fn without(&self, has_exempt: bool) -> String {
        let without = match self.is_always {
            true => "every request has one",
            false => "not limited, in both",
        };
        let exempt =
            if has_exempt { "; the exempt addresses are not limited, in both" } else { "" };
        format!("{without}{exempt}")
    }
}

/// The network of an address.
fn network(address: IpAddr, v4: u8, v6: u8) -> String {
    let bits = if address.is_ipv4() { v4 } else { v6 };
    IpNet::new(address, bits).map_or_else(|_| address.to_string(), |net| net.trunc().to_string())
}

/// A text in the alphabet of names.
fn actor_name(text: &str) -> String {
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        plain @ ('a'..='z' | '0'..='9') => plain,
        _ => '-',
    };
    text.chars().map(plain).collect()
}
