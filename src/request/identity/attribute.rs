//! A part of the request line: `{attribute: host}`, `{attribute: method}` or `{attribute: path}`.

use std::borrow::Cow;
use std::rc::Rc;

use super::{BuiltSource, Mistake, Source, SourceKind, SourceValue, ValueForm};
use diana_policy::HostPattern;
use diana_policy::path::Path;
use diana_policy::port::{Pseudo, Request};
use diana_policy::tree::Tree;

/// `attribute` in the registry.
pub const KIND: SourceKind =
    SourceKind { name: "attribute", form: ValueForm::Text, options: &[], build };

#[derive(Debug)]
struct Attribute(Pseudo);

fn build(value: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    let part = match value.text() {
        Some("host") => Pseudo::Authority,
        Some("method") => Pseudo::Method,
        Some("path") => Pseudo::Path,
        _ => {
            let message = format!("found {}, allowed: `host`, `method`, `path`", value.found());
            return Err(vec![Mistake { key: "attribute".into(), message }]);
        }
    };
    Ok(Rc::new(Attribute(part)))
}

impl Source for Attribute {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        let Some(text) = request.pseudo(self.0) else { return SourceValue::Absent };
        let value = match self.0 {
            Pseudo::Authority => HostPattern::only_host(&text),
            // Some upstreams ignore the case of methods.
            Pseudo::Method => Some(text.to_ascii_uppercase()),
            Pseudo::Path => Path::of(&text).only_reading().map(|path| without_slash(&path)),
        };
        value.map_or(SourceValue::Unclear, |value| SourceValue::text(Cow::Owned(value)))
    }

    fn reads_headers(&self) -> bool {
        true
    }

    fn is_caller_chosen(&self) -> bool {
        true
    }

    fn spelled(&self, text: &[u8]) -> Option<Vec<u8>> {
        let value = match self.0 {
            Pseudo::Authority => text.to_ascii_lowercase(),
            Pseudo::Method => text.to_ascii_uppercase(),
            Pseudo::Path => without_slash(text),
        };
        (!value.is_empty()).then_some(value)
    }
}

/// A path without a slash at its end, which makes no difference for `Url` either.
fn without_slash(path: &[u8]) -> Vec<u8> {
    let bare = path.strip_suffix(b"/").filter(|bare| !bare.is_empty());
    bare.unwrap_or(path).to_vec()
}
