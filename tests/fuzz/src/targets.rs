//! All targets, and their common functions.

mod answer;
mod bans;
mod config;
mod cookie;
mod envoy;
mod envoy_gateway;
mod f5;
mod heads;
mod host;
mod ingress_nginx;
mod jwt;
mod kuadrant;
mod nginx;
mod path;
mod places;
mod pointer;
mod query;
mod remote;
mod request;
mod resp;
mod script;
mod slots;
mod stored;
mod structs;
mod traefik;
mod usage;
mod windows;

use std::rc::Rc;

use diana_import::{Counting, Importer, REGISTRY, SourceFiles, SourceText};
use diana_policy::tree::Tree;
use diana_request::identity::{Identifier, Source, SourceKind, SourceValue};
use kit::fake::FakeRequest;

/// The targets by name. Each is the name of a file, and of a folder of seeds.
pub const ALL: &[(&str, fn(&[u8]))] = &[
    ("answer", answer::run),
    ("bans", bans::run),
    ("config", config::run),
    ("cookie", cookie::run),
    ("envoy", envoy::run),
    ("envoy_gateway", envoy_gateway::run),
    ("f5", f5::run),
    ("heads", heads::run),
    ("host", host::run),
    ("ingress_nginx", ingress_nginx::run),
    ("jwt", jwt::run),
    ("kuadrant", kuadrant::run),
    ("nginx", nginx::run),
    ("path", path::run),
    ("places", places::run),
    ("pointer", pointer::run),
    ("query", query::run),
    ("remote", remote::run),
    ("request", request::run),
    ("resp", resp::run),
    ("script", script::run),
    ("slots", slots::run),
    ("stored", stored::run),
    ("structs", structs::run),
    ("traefik", traefik::run),
    ("usage", usage::run),
    ("windows", windows::run),
];

/// Builds a source of identity.
fn source(kind: &SourceKind, value: &str, options: &[(&str, Tree)]) -> Rc<dyn Source> {
    let options: Vec<_> =
        options.iter().map(|(key, value)| ((*key).into(), value.clone())).collect();
    (kind.build)(&Tree::Text(value.into()), &options).expect("a source")
}

/// The result of a source for a request.
fn found(source: &dyn Source, request: &FakeRequest) -> SourceValue<'static> {
    match source.find(request) {
        SourceValue::Value(value) => {
            assert!(!value.is_empty());
            text(&value)
        }
        SourceValue::Absent => SourceValue::Absent,
        SourceValue::NoMetadata => SourceValue::NoMetadata,
        SourceValue::NoAddress => SourceValue::NoAddress,
        SourceValue::Unclear => SourceValue::Unclear,
    }
}

/// The result of a source with this text.
fn text(text: &[u8]) -> SourceValue<'static> {
    SourceValue::Value(Identifier::Text(text.to_vec().into()))
}

/// The result, if it is a single value.
fn value(found: SourceValue<'_>) -> Option<Vec<u8>> {
    if let SourceValue::Value(value) = found { Some(value.to_vec()) } else { None }
}

/// One round of percent-decoding.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        match digits {
            Some(digits) if byte == b'%' => {
                let text = str::from_utf8(digits).unwrap();
                plain.push(u8::from_str_radix(text, 16).unwrap());
                rest = &after[2..];
            }
            _ => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    plain
}

/// Every byte as `%xx`.
fn encoded(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect()
}

/// No text includes a file that there is.
struct NoFiles;

impl SourceFiles for NoFiles {
    fn included(&self, _: &str, _: &str) -> Result<Vec<SourceText>, String> {
        Ok(Vec::new())
    }
}

/// Any text becomes a document that is valid, perhaps without a rule.
fn convert(format: &str, input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let format = REGISTRY.iter().find(|it| it.name == format).expect("a format");
    for counting in [Counting::PerGateway, Counting::Fleet(3)] {
        let mut importer = Importer::new(Some(format));
        importer.read(&SourceText { name: "a".into(), text: text.into() }, &NoFiles);
        let result = importer.finish(counting);
        if !result.entries.is_empty() {
            let read = diana_config::Reader::default().policy(result.document.as_bytes());
            assert!(read.is_ok(), "{}\n{}", result.document, read.unwrap_err());
        }
    }
}
