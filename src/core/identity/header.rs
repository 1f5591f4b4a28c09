//! A request header: `{header: x-account-id}`.

use std::borrow::Cow;
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
#[inline(always)]
fn trimmed(value: &[u8]) -> &[u8] {
    match value {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => value,
        _ => value.trim_ascii(),
    }
}

/// What a header says.
#[inline(always)]
pub(super) fn find<'r>(name: &str, request: &'r dyn Request) -> Found<'r> {
    match request.header(name) {
        Values::None => Found::Absent,
        // Over HTTP/2 spaces come through, which the upstream takes off.
        Values::One(value) => Found::text(Cow::Borrowed(trimmed(value))),
        Values::Many(_) => Found::Repeated,
    }
}

impl Source for Header {
    fn find<'r>(&self, request: &'r dyn Request) -> Found<'r> {
        find(&self.0, request)
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
