//! A cookie: `{cookie: session}`.

use std::rc::Rc;

use super::{Built, Found, Kind, Mistake, Source, text};
use crate::port::{Request, Values};
use crate::tree::Tree;

/// `cookie` in the registry.
pub const KIND: Kind = Kind { name: "cookie", options: &[], build };

#[derive(Debug)]
struct Cookie(String);

fn build(name: &Tree, _options: &[(String, Tree)]) -> Built {
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
    /// The values of this cookie in one header.
    fn values<'h>(&self, header: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
        header.split(|&byte| byte == b';').filter_map(|pair| {
            let pair = pair.trim_ascii();
            let value = pair.strip_prefix(self.0.as_bytes())?.trim_ascii_start();
            Some(value.strip_prefix(b"=")?.trim_ascii_start())
        })
    }
}
