//! A cookie: `{cookie: session}`.

use std::rc::Rc;

use super::{BuiltSource, Mistake, Source, SourceKind, SourceValue, ValueForm, text};
use diana_policy::port::{Request, Values};
use diana_policy::spelling::{cookie, form};
use diana_policy::tree::Tree;

/// `cookie` in the registry.
pub const KIND: SourceKind =
    SourceKind { name: "cookie", form: ValueForm::Text, options: &[], build };

#[derive(Debug)]
struct Cookie(String);

fn build(name: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    let name = text("cookie", name)?;
    if !cookie::is_name(&name) {
        let message = format!("found `{name}`, allowed: a cookie name without `=`, `;` or spaces");
        return Err(vec![Mistake { key: "cookie".into(), message }]);
    }
    Ok(Rc::new(Cookie(name)))
}

impl Source for Cookie {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        match request.header("cookie") {
            Values::None => SourceValue::Absent,
            Values::One(header) => SourceValue::only(self.values(header)),
            // The host cannot read the headers.
            Values::Many(headers) if headers.is_empty() => SourceValue::Unclear,
            Values::Many(headers) => {
                SourceValue::only(headers.iter().flat_map(|header| self.values(header)))
            }
        }
    }

    fn reads_headers(&self) -> bool {
        true
    }

    fn is_caller_chosen(&self) -> bool {
        true
    }
}

impl Cookie {
    fn values<'a>(&'a self, header: &'a [u8]) -> impl Iterator<Item = (Vec<u8>, bool)> {
        let pairs = cookie::pairs(header, self.0.as_bytes());
        pairs.flat_map(|pair| {
            let is_sure = pair.is_sure();
            cookie::unquoted(pair.value).map(move |value| (form(value).collect(), is_sure))
        })
    }
}
