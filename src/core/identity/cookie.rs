//! A cookie: `{cookie: session}`.

use std::rc::Rc;

use super::{BuiltSource, Found, Kind, Mistake, Source, form, text};
use crate::port::{Request, Values};
use crate::tree::Tree;

/// `cookie` in the registry.
pub const KIND: Kind = Kind { name: "cookie", options: &[], build };

#[derive(Debug)]
struct Cookie(String);

fn build(name: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    let name = text("cookie", name)?;
    if name.bytes().any(|byte| byte <= b' ' || b"=;,\x7f".contains(&byte)) {
        let message =
            format!("found `{name}`, allowed: a cookie's name without `=`, `;` or spaces");
        return Err(vec![Mistake { key: "cookie".into(), message }]);
    }
    Ok(Rc::new(Cookie(name)))
}

impl Source for Cookie {
    fn find(&self, request: &dyn Request, take: &mut dyn FnMut(&[u8])) -> Found {
        match request.header("cookie") {
            Values::None => Found::Absent,
            Values::One(header) => Found::only(self.values(header), take),
            Values::Many(headers) => {
                Found::only(headers.iter().flat_map(|header| self.values(header)), take)
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
    /// What may be the values of this cookie in one header. Some upstreams percent-decode names and
    /// values.
    fn values(&self, header: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let pairs = header.split(|&byte| byte == b';').filter_map(|pair| {
            let equals = pair.iter().position(|&byte| byte == b'=')?;
            let (name, value) = pair.split_at_checked(equals)?;
            let name = name.trim_ascii();
            let is_own = name == self.0.as_bytes() || form(name).eq(form(self.0.as_bytes()));
            is_own.then(|| value.get(1..).unwrap_or_default().trim_ascii())
        });
        pairs.flat_map(readings).map(|value| form(value).collect())
    }
}

/// What a cookie's value may be taken for: quotes around it are no part of it. Where they hold escapes,
/// or do not end, upstreams differ, so it is two values.
fn readings(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let inner = value.strip_prefix(b"\"");
    let whole = inner.and_then(|inner| inner.strip_suffix(b"\""));
    let unclear = inner.filter(|inner| whole.is_none() || inner.contains(&b'\\'));
    std::iter::once(whole.unwrap_or(value)).chain(unclear)
}
