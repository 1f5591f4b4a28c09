//! A query parameter: `{query: token}`.

use std::rc::Rc;

use super::{BuiltSource, Found, Kind, Source, form, text};
use crate::port::{Pseudo, Request};
use crate::tree::Tree;

/// `query` in the registry.
pub const KIND: Kind = Kind { name: "query", options: &[], build };

#[derive(Debug)]
struct Query(String);

fn build(name: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
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
    /// What may be the values of this parameter. To some upstreams `;` separates as `&` does: then one
    /// pair is several, and one value two.
    fn values(&self, path: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let path = path.split(|&byte| byte == b'#').next().unwrap_or_default();
        let start = path.iter().position(|&byte| byte == b'?').map_or(path.len(), |mark| mark + 1);
        let query = path.get(start..).unwrap_or_default();
        let pairs = query.split(|&byte| byte == b'&').flat_map(|pair| {
            let parts =
                pair.split(|&byte| byte == b';').filter(move |part| part.len() < pair.len());
            std::iter::once(pair).chain(parts)
        });
        pairs.filter_map(|pair| {
            let mut halves = pair.splitn(2, |&byte| byte == b'=');
            let is_own = form(halves.next()?).eq(form(self.0.as_bytes()));
            is_own.then(|| form(halves.next().unwrap_or_default()).collect())
        })
    }
}
