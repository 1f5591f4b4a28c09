//! A request header: `{header: x-account-id}`.

use std::borrow::Cow;
use std::rc::Rc;

use super::{BuiltSource, Identifier, Source, SourceKind, SourceValue, ValueForm, header_name};
use diana_policy::port::{Request, Values};
use diana_policy::spelling::header::{self, AUTHORIZATION};
use diana_policy::tree::Tree;

/// `header` in the registry.
pub const KIND: SourceKind =
    SourceKind { name: "header", form: ValueForm::Text, options: &[], build };

#[derive(Debug)]
struct Header {
    name: String,
    /// Whether a proxy may have joined several values, of which there should be one.
    is_single: bool,
}

fn build(name: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    let name = header_name("header", name)?;
    Ok(Rc::new(Header { is_single: header::is_single(&name), name }))
}

/// The value of a request header, which may have several values that a proxy joined if `is_single`
/// is true.
#[inline(always)]
fn header_value<'r>(name: &str, is_single: bool, request: &'r dyn Request) -> SourceValue<'r> {
    match request.header(name) {
        Values::None => SourceValue::Absent,
        // HTTP/2 permits spaces around a value, which the upstream strips.
        Values::One(value) => match value.trim_ascii() {
            text if is_single && header::is_joined(name, text) => SourceValue::Unclear,
            text => SourceValue::text(Cow::Borrowed(text)),
        },
        // An empty list means that the host cannot read the values.
        Values::Many(values) => {
            let is_empty = |value: &&[u8]| value.trim_ascii().is_empty();
            let is_absent = !values.is_empty() && values.iter().all(is_empty);
            if is_absent { SourceValue::Absent } else { SourceValue::Unclear }
        }
    }
}

/// The credentials in the `authorization` header.
pub(super) fn credentials<'r>(request: &'r dyn Request) -> SourceValue<'r> {
    match header_value(AUTHORIZATION, true, request) {
        SourceValue::Value(Identifier::Text(Cow::Borrowed(text))) => {
            SourceValue::text(header::credentials(text))
        }
        other => other,
    }
}

impl Source for Header {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        header_value(&self.name, self.is_single, request)
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
