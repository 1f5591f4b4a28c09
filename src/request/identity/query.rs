//! A query parameter: `{query: token}`.

use std::rc::Rc;

use super::{BuiltSource, Source, SourceKind, SourceValue, ValueForm, text};
use diana_policy::port::{Pseudo, Request};
use diana_policy::spelling::{form, query};
use diana_policy::tree::Tree;

/// `query` in the registry.
pub const KIND: SourceKind =
    SourceKind { name: "query", form: ValueForm::Text, options: &[], build };

#[derive(Debug)]
struct Query(String);

fn build(name: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    Ok(Rc::new(Query(text("query", name)?)))
}

impl Source for Query {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        match request.pseudo(Pseudo::Path) {
            Some(path) => SourceValue::only(self.values(&path)),
            None => SourceValue::Absent,
        }
    }

    /// The path is one of the headers, and the limiter may have read it before.
    fn reads_headers(&self) -> bool {
        true
    }

    fn is_caller_chosen(&self) -> bool {
        true
    }
}

impl Query {
    fn values<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = (Vec<u8>, bool)> {
        query::pairs(path, self.0.as_bytes())
            .map(|pair| (form(pair.value).collect(), pair.is_sure()))
    }
}
