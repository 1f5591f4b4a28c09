//! The client certificate of a mutual TLS connection: `{peer: uri_san}` or `{peer: sha256}`.

use std::rc::Rc;

use super::{BuiltSource, Mistake, Source, SourceKind, SourceValue, ValueForm};
use diana_policy::port::{Property, Request};
use diana_policy::tree::Tree;

/// `peer` in the registry.
pub const KIND: SourceKind =
    SourceKind { name: "peer", form: ValueForm::Text, options: &[], build };

#[derive(Debug)]
struct Peer(Property);

fn build(value: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    let property = match value.text() {
        Some("uri_san") => "uri_san_peer_certificate",
        Some("sha256") => "sha256_peer_certificate_digest",
        _ => {
            let message = format!("found {}, allowed: `uri_san`, `sha256`", value.found());
            return Err(vec![Mistake { key: "peer".into(), message }]);
        }
    };
    Ok(Rc::new(Peer(Property::new(&["connection", property]))))
}

impl Source for Peer {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        match request.property(&self.0) {
            None => SourceValue::Absent,
            Some(value) => SourceValue::text(value),
        }
    }

    fn is_caller_chosen(&self) -> bool {
        false
    }
}
