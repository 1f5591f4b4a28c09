//! A query parameter: `{query: token}`.

use std::borrow::Cow;
use std::rc::Rc;

use super::{Built, Found, Kind, Source, text};
use crate::port::{Pseudo, Request};
use crate::route::path::decode;
use crate::tree::Tree;

/// `query` in the registry.
pub const KIND: Kind = Kind { name: "query", options: &[], build };

#[derive(Debug)]
struct Query(String);

fn build(name: &Tree, _options: &[(String, Tree)]) -> Built {
    Ok(Rc::new(Query(text("query", name)?)))
}

impl Source for Query {
    fn find(&self, request: &dyn Request, take: &mut dyn FnMut(&[u8])) -> Found {
        match request.pseudo(Pseudo::Path) {
            Some(path) => Found::only(self.values(&path), take),
            None => Found::Absent,
        }
    }

    /// The path is one of the headers, and the engine may have read it before.
    fn reads_headers(&self) -> bool {
        true
    }

    fn is_caller_chosen(&self) -> bool {
        true
    }
}

impl Query {
    /// The values of this parameter, names and values percent-decoded.
    fn values<'p>(&self, path: &'p [u8]) -> impl Iterator<Item = Cow<'p, [u8]>> {
        let path = path.split(|&byte| byte == b'#').next().unwrap_or_default();
        let start = path.iter().position(|&byte| byte == b'?').map_or(path.len(), |mark| mark + 1);
        let query = path.get(start..).unwrap_or_default();
        query.split(|&byte| byte == b'&').filter_map(|pair| {
            let mut halves = pair.splitn(2, |&byte| byte == b'=');
            let name = decode(halves.next()?);
            (*name == *self.0.as_bytes()).then(|| decode(halves.next().unwrap_or_default()))
        })
    }
}
