//! A part of the path: `{path_param: org}`, where a path of the entry has `{org}` as a segment; and
//! the part that a path of the entry covers, for `each: true`.

use std::borrow::Cow;
use std::rc::Rc;

use super::{BuiltSource, Mistake, Source, SourceKind, SourceValue, ValueForm};
use diana_policy::Prefix;
use diana_policy::path::Path;
use diana_policy::port::{Pseudo, Request};
use diana_policy::tree::Tree;

/// `path_param` in the registry.
pub const KIND: SourceKind =
    SourceKind { name: "path_param", form: ValueForm::Text, options: &[], build };

#[derive(Debug)]
struct PathParam {
    name: Rc<str>,
    /// The paths of the rule's entry. None outside of entries.
    urls: Rc<[Prefix]>,
}

fn build(name: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    match name.text() {
        Some(name) if Prefix::is_name(name) => {
            Ok(Rc::new(PathParam { name: name.into(), urls: Rc::new([]) }))
        }
        _ => {
            let message = format!("found {}, allowed: `org` for `{{org}}` in a path", name.found());
            Err(vec![Mistake { key: "path_param".into(), message }])
        }
    }
}

impl Source for PathParam {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        part(&self.urls, request, |url, path| url.capture(&self.name, path))
    }

    // Only the path, which is cheaper.
    fn reads_headers(&self) -> bool {
        false
    }

    fn is_caller_chosen(&self) -> bool {
        true
    }

    fn within(&self, urls: &Rc<[Prefix]>) -> Option<Rc<dyn Source>> {
        Some(Rc::new(PathParam { name: self.name.clone(), urls: shortest_first(urls) }))
    }

    fn path_param(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// The part of the path that a path of the entry covers.
#[derive(Debug)]
pub(super) struct CoveredPath(Rc<[Prefix]>);

impl CoveredPath {
    pub(super) fn new(urls: &Rc<[Prefix]>) -> CoveredPath {
        CoveredPath(shortest_first(urls))
    }
}

impl Source for CoveredPath {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        part(&self.0, request, |url, path| match url.split(path) {
            // The path `/` covers everything.
            Some((b"", _)) => Some(b"/"),
            Some((head, _)) => Some(head),
            None => None,
        })
    }

    // Only the path, which is cheaper.
    fn reads_headers(&self) -> bool {
        false
    }

    fn is_caller_chosen(&self) -> bool {
        true
    }
}

/// The paths of an entry in the order in which they are asked for a part of a request's path.
fn shortest_first(urls: &Rc<[Prefix]>) -> Rc<[Prefix]> {
    let mut urls = urls.to_vec();
    urls.sort_by_key(|url| url.segments().count());
    urls.into()
}

/// A part of the path of a request, by the first of `urls` that covers it and has this part. Unclear
/// if readers of the path differ.
fn part<'r>(
    urls: &[Prefix],
    request: &'r dyn Request,
    take: impl for<'p> Fn(&Prefix, &'p [u8]) -> Option<&'p [u8]>,
) -> SourceValue<'r> {
    let Some(raw) = request.pseudo(Pseudo::Path) else { return SourceValue::Absent };
    let Some(path) = Path::of(&raw).only_reading() else { return SourceValue::Unclear };
    let mut covering = urls.iter().filter(|url| url.covers(&path)).peekable();
    if covering.peek().is_none() {
        return SourceValue::Unclear;
    }
    let found = covering.find_map(|url| Some((url, take(url, &path)?)));
    let Some((url, value)) = found else { return SourceValue::Absent };
    let mut value = value.to_vec();
    if url.ignores_case() {
        value.make_ascii_lowercase();
    }
    SourceValue::text(Cow::Owned(value))
}
