//! Variables of nginx that are keys of zones, as sources of Diana's actors.

use diana_policy::port::{Pseudo, Request, Values};
use diana_policy::tree::Tree;
use diana_replay::Arrival;

/// The key of a zone.
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
    Address,
    Part(Pseudo),
    Header(String),
    Cookie(String),
    Query(String),
}

impl KeySource {
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
            KeyValue::Address => match request.client() {
                Some(address) => address.to_string().into_bytes(),
                None => Vec::new(),
            },
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

/// The source for a variable. `None` if Diana cannot count by it.
pub(crate) fn source(variable: &str) -> Option<KeySource> {
    let map = |key: &str, value: Tree| Tree::Map(vec![(key.to_owned(), value)]);
    let list = |source: Tree| Tree::List(vec![source]);
    let build = |name: &str, source: Tree, counts: &str, value: KeyValue| KeySource {
        name: name.into(),
        sources: list(source),
        counts: counts.into(),
        is_always: matches!(value, KeyValue::Address | KeyValue::Part(_)),
        value,
    };
    let attribute =
        |part: &str, value| build(part, map("attribute", part.into()), part, KeyValue::Part(value));
    let of = |kind: &str, name: &str, value: fn(String) -> KeyValue| {
        let actor = format!("{kind}-{name}").to_ascii_lowercase().replace('_', "-");
        build(&actor, map(kind, name.into()), &format!("the {kind} {name}"), value(name.into()))
    };
    Some(match variable {
        "binary_remote_addr" | "remote_addr" => {
            // nginx counts IPv6 by whole addresses.
            let bits = Tree::Map(vec![("v6".into(), Tree::Int(128))]);
            build("address", map("client_address", bits), "client address", KeyValue::Address)
        }
        "host" | "http_host" => attribute("host", Pseudo::Authority),
        "request_method" => attribute("method", Pseudo::Method),
        "uri" => attribute("path", Pseudo::Path),
        _ => {
            let (kind, name) = variable.split_once('_').filter(|(_, name)| !name.is_empty())?;
            match kind {
                // nginx writes hyphens of headers as underscores.
                "http" => {
                    let name = name.to_ascii_lowercase().replace('_', "-");
                    of("header", &name, KeyValue::Header)
                }
                "cookie" => of("cookie", name, KeyValue::Cookie),
                "arg" => of("query", name, KeyValue::Query),
                _ => return None,
            }
        }
    })
}

/// How far nginx's rounding moves a rate by the minute, as the end of a sentence, or nothing.
pub(crate) fn rounding(per_minute: u64) -> String {
    let kept = per_minute * 1000 / 60;
    let (exact, rounded) = (per_minute * 1000, kept * 60);
    if exact == rounded {
        return String::new();
    }
    let lost = (exact - rounded) as f64 / exact as f64 * 100.0;
    let rounded = rounded as f64 / 1000.0;
    format!(
        "; nginx rounds {per_minute} a minute to {rounded}, {lost:.2} % less, and Diana does not"
    )
}
