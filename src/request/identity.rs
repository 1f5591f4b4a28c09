//! Who is calling. A new source of identity is one file in `identity/` and one line in [`REGISTRY`].

pub mod caller;
pub mod client_address;
pub mod cookie;
pub mod header;
pub mod jwt_claim;
pub mod metadata;
pub mod named;
pub mod peer;
pub mod query;
pub mod sources;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Deref;
use std::rc::Rc;

use diana_policy::IdentitySource;
use diana_policy::port::Request;
use diana_policy::tree::Tree;

/// What a source found in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<'r> {
    /// Nothing, or only empty values: the next source is asked.
    Absent,
    /// As [`Found::Absent`], because metadata that another filter should have left is missing.
    NoMetadata,
    /// One value, which is not empty.
    Value(Identifier<'r>),
    /// More than one value: nobody can tell which is the caller's own, so all such callers share.
    Repeated,
}

impl<'r> Found<'r> {
    /// A single text; an empty one is absent.
    #[inline(always)]
    fn text(text: Cow<'r, [u8]>) -> Found<'r> {
        if text.is_empty() { Found::Absent } else { Found::Value(Identifier::Text(text)) }
    }

    /// The only text, if there is exactly one, which stands under its name to every reader. Empty ones are absent.
    fn only(mut texts: impl Iterator<Item = (Vec<u8>, bool)>) -> Found<'r> {
        let Some((text, is_sure)) = texts.next() else { return Found::Absent };
        let (mut is_only, mut is_empty) = (is_sure, text.is_empty());
        for (other, _) in texts {
            (is_only, is_empty) = (false, is_empty && other.is_empty());
            if !is_empty {
                break;
            }
        }
        match (is_empty, is_only) {
            (true, _) => Found::Absent,
            (false, true) => Found::text(Cow::Owned(text)),
            (false, false) => Found::Repeated,
        }
    }
}

/// What a caller is recognised by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identifier<'r> {
    /// A text.
    Text(Cow<'r, [u8]>),
    /// An IPv4 address or network.
    V4([u8; 4]),
    /// An IPv6 address or network.
    V6([u8; 16]),
}

impl Identifier<'_> {
    /// Whether it is an address.
    #[must_use]
    pub fn is_address(&self) -> bool {
        !matches!(self, Identifier::Text(_))
    }
}

impl Deref for Identifier<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Identifier::Text(text) => text,
            Identifier::V4(address) => address,
            Identifier::V6(address) => address,
        }
    }
}

/// One way to recognise a caller.
pub trait Source: Debug {
    /// What the caller of a request is recognised by.
    fn find<'r>(&self, request: &'r dyn Request) -> Found<'r>;

    /// Whether headers are looked at, so that all of them are best read at once.
    fn reads_headers(&self) -> bool {
        false
    }

    /// The header that holds the value, if one does.
    fn header(&self) -> Option<&str> {
        None
    }

    /// The value that an operator means who spells it so; nothing if it can be none.
    fn spelled(&self, text: &[u8]) -> Option<Vec<u8>> {
        (!text.is_empty()).then(|| text.into())
    }

    /// Whether callers can choose the value freely, so that one caller can pose as many.
    fn is_caller_chosen(&self) -> bool;

    /// A line for the log if using this source needs a warning.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// A mistake in a source's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The key to blame.
    pub key: String,
    /// What was found and what is allowed, as the rest of a sentence.
    pub message: String,
}

/// A source, or every mistake in its configuration.
pub type BuiltSource = Result<Rc<dyn Source>, Vec<Mistake>>;

/// A kind of source as the configuration knows it: a mapping whose main key is the kind's name.
#[derive(Debug)]
pub struct Kind {
    /// The main key: `header` in `{header: x-account-id}`.
    pub name: &'static str,
    /// Keys that may stand beside the main key.
    pub options: &'static [&'static str],
    /// Builds the source from the main key's value and the options that are present.
    pub build: fn(&Tree, &[(String, Tree)]) -> BuiltSource,
}

/// All kinds of sources.
pub const REGISTRY: &[Kind] = &[
    header::KIND,
    cookie::KIND,
    query::KIND,
    client_address::KIND,
    jwt_claim::KIND,
    metadata::KIND,
    peer::KIND,
];

/// The source that a configuration asks for.
///
/// # Errors
/// Every mistake in it.
pub fn build(wanted: &IdentitySource) -> BuiltSource {
    match REGISTRY.iter().find(|kind| kind.name == wanted.kind) {
        Some(kind) => (kind.build)(&wanted.value, &wanted.options),
        None => {
            let message = "no such source".into();
            Err(vec![Mistake { key: wanted.kind.into(), message }])
        }
    }
}

/// The text under the main key `key`; it may not be empty or hold a NUL.
fn text(key: &str, value: &Tree) -> Result<String, Vec<Mistake>> {
    match value.text() {
        Some(text) if !text.is_empty() && !text.contains('\0') => Ok(text.into()),
        _ => {
            let message = format!("found {}, allowed: a name", value.found());
            Err(vec![Mistake { key: key.into(), message }])
        }
    }
}

/// A header's name under the main key `key`, in lower case.
fn header_name(key: &str, value: &Tree) -> Result<String, Vec<Mistake>> {
    let name = text(key, value)?.to_ascii_lowercase();
    if name == "host" {
        let message = "`host` says which service is called, not who calls".into();
        return Err(vec![Mistake { key: key.into(), message }]);
    }
    if crate::matching::header::is_name(&name) {
        return Ok(name);
    }
    let message = format!("found `{name}`, allowed: a header's name");
    Err(vec![Mistake { key: key.into(), message }])
}
