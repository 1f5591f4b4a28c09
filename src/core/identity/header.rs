//! A request header: `{header: x-account-id}`.

use std::rc::Rc;

use super::{BuiltSource, Found, Kind, Source, header_name};
use crate::port::{Request, Values};
use crate::tree::Tree;

/// `header` in the registry.
pub const KIND: Kind = Kind { name: "header", options: &[], build };

#[derive(Debug)]
struct Header(String);

fn build(name: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    Ok(Rc::new(Header(header_name("header", name)?)))
}

/// The value without spaces around it, of which nearly none has any.
fn trimmed(value: &[u8]) -> &[u8] {
    match value {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => value,
        _ => value.trim_ascii(),
    }
}

impl Source for Header {
    fn find(&self, request: &dyn Request, take: &mut dyn FnMut(&[u8])) -> Found {
        match request.header(&self.0) {
            Values::None => Found::Absent,
            // Over HTTP/2 spaces come through, which the upstream takes off.
            Values::One(value) => Found::value(trimmed(value), take),
            Values::Many(_) => Found::Repeated,
        }
    }

    fn reads_headers(&self) -> bool {
        true
    }

    fn header(&self) -> Option<&str> {
        Some(&self.0)
    }

    fn is_caller_chosen(&self) -> bool {
        true
    }
}
