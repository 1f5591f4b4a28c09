//! A request header: `{header: x-account-id}`.

use std::borrow::Cow;
use std::rc::Rc;

use super::{BuiltSource, Found, Kind, Source, header_name};
use crate::port::{Request, Values};
use crate::spelling::header::{self, AUTHORIZATION};
use crate::tree::Tree;

/// `header` in the registry.
pub const KIND: Kind = Kind { name: "header", options: &[], build };

#[derive(Debug)]
struct Header {
    name: String,
    /// Whether it has a single value, so that one with a comma is several.
    is_single: bool,
}

fn build(name: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    let name = header_name("header", name)?;
    Ok(Rc::new(Header { is_single: header::is_single(&name), name }))
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
        Values::Many(values) => several(&values),
    }
}

/// What several values say: nothing if all are empty. Without any the host cannot read them.
#[inline(never)]
fn several(values: &[&[u8]]) -> Said<'static> {
    let is_empty = !values.is_empty() && values.iter().all(|value| trimmed(value).is_empty());
    if is_empty { Said::Nothing } else { Said::Several }
}

/// What credentials say.
pub(super) fn credentials<'r>(request: &'r dyn Request) -> Found<'r> {
    match said(AUTHORIZATION, request) {
        Said::Nothing => Found::Absent,
        Said::Text(text) if !header::is_joined(AUTHORIZATION, text) => {
            Found::text(header::credentials(text))
        }
        Said::Text(_) | Said::Several => Found::Repeated,
    }
}

impl Source for Header {
    fn find<'r>(&self, request: &'r dyn Request) -> Found<'r> {
        match said(&self.name, request) {
            Said::Nothing => Found::Absent,
            Said::Text(text) if self.is_single && header::is_joined(&self.name, text) => {
                Found::Repeated
            }
            Said::Text(text) => Found::text(Cow::Borrowed(text)),
            Said::Several => Found::Repeated,
        }
    }

    fn reads_headers(&self) -> bool {
        true
    }

    fn header(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn spelled(&self, text: &[u8]) -> Option<Vec<u8>> {
        let text = text.trim_ascii();
        (!text.is_empty()).then(|| text.to_vec())
    }

    fn is_caller_chosen(&self) -> bool {
        true
    }
}
