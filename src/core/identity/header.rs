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

/// What a header says, of which nothing is to be dropped.
#[derive(Clone, Copy)]
pub(super) enum Said<'r> {
    Nothing,
    Text(&'r [u8]),
    Several,
}

/// What a header of a request says.
#[inline(always)]
pub(super) fn said<'r>(name: &str, request: &'r dyn Request) -> Said<'r> {
    match request.header(name) {
        Values::None => Said::Nothing,
        // Over HTTP/2 spaces come through, which the upstream takes off.
        Values::One(value) => match trimmed(value) {
            [] => Said::Nothing,
            text => Said::Text(text),
        },
        Values::Many(_) => Said::Several,
    }
}

impl Source for Header {
    fn find<'r>(&self, request: &'r dyn Request) -> Found<'r> {
        match said(&self.0, request) {
            Said::Nothing => Found::Absent,
            Said::Text(text) => Found::text(Cow::Borrowed(text)),
            Said::Several => Found::Repeated,
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
