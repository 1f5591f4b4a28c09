//! Recognition of callers. A new source of identity is one file in `identity/` and one line in
//! [`REGISTRY`].

pub mod attribute;
pub mod caller;
pub mod client_address;
pub mod cookie;
pub mod filter_state;
pub mod folded;
pub mod header;
pub mod jwt_claim;
pub mod metadata;
pub mod named;
pub mod path_param;
pub mod peer;
pub mod query;
pub mod sources;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Deref;
use std::rc::Rc;

use diana_policy::port::Request;
use diana_policy::tree::Tree;
use diana_policy::{IdentitySource, Prefix};

/// The result of reading a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceValue<'r> {
    /// No value, or only empty ones: the next source is tried.
    Absent,
    /// As [`SourceValue::Absent`], because metadata that another filter should have set is missing.
    NoMetadata,
    /// One value that is not empty.
    Value(Identifier<'r>),
    /// The host does not know the client's address. All such requests are one caller of the source.
    NoAddress,
    /// More than one value, on which readers may disagree, or one that cannot be read. All such
    /// callers share a state.
    Unclear,
}

impl<'r> SourceValue<'r> {
    /// A single text. Empty text is absent.
    #[inline(always)]
    fn text(text: Cow<'r, [u8]>) -> SourceValue<'r> {
        if text.is_empty() {
            SourceValue::Absent
        } else {
            SourceValue::Value(Identifier::Text(text))
        }
    }

    /// The text, if there is exactly one and every reader finds it under its name. Empty texts are
    /// absent.
    fn only(mut texts: impl Iterator<Item = (Vec<u8>, bool)>) -> SourceValue<'r> {
        let Some((text, is_sure)) = texts.next() else { return SourceValue::Absent };
        let (mut is_only, mut is_empty) = (is_sure, text.is_empty());
        for (other, _) in texts {
            (is_only, is_empty) = (false, is_empty && other.is_empty());
            if !is_empty {
                break;
            }
        }
        match (is_empty, is_only) {
            (true, _) => SourceValue::Absent,
            (false, true) => SourceValue::text(Cow::Owned(text)),
            (false, false) => SourceValue::Unclear,
        }
    }
}

/// The value that a caller is recognised by.
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
    /// Returns true for an address or network.
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

/// A way to recognise a caller.
pub trait Source: Debug {
    /// The value that identifies the caller of a request.
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r>;

    /// Returns true if the source reads headers, so that the host should read all of them at once.
    fn reads_headers(&self) -> bool {
        false
    }

    /// The header that holds the value, if the source reads one.
    fn header(&self) -> Option<&str> {
        None
    }

    /// The value that `text` denotes when an operator writes it. `None` if this source cannot have
    /// such a value.
    fn spelled(&self, text: &[u8]) -> Option<Vec<u8>> {
        (!text.is_empty()).then(|| text.into())
    }

    /// Returns true if clients choose the value freely, so that one client can pose as many
    /// callers.
    fn is_caller_chosen(&self) -> bool;

    /// Returns true if a request had a number that the host has rounded, so that neighbours are one caller.
    fn has_rounded(&self) -> bool {
        false
    }

    /// The source for rules of an entry with these paths, if its value depends on them.
    fn within(&self, _urls: &Rc<[Prefix]>) -> Option<Rc<dyn Source>> {
        None
    }

    /// The name of the wildcard that the source reads, if it reads one.
    fn path_param(&self) -> Option<&str> {
        None
    }

    /// A warning for the log if this source has a risk.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// A mistake in a source's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The key that contains the mistake.
    pub key: String,
    /// The value that was found and the allowed values, as the rest of a sentence.
    pub message: String,
}

/// A source, or every mistake in its configuration.
pub type BuiltSource = Result<Rc<dyn Source>, Vec<Mistake>>;

/// How a value of a source is written in the configuration.
#[derive(Debug, Clone, Copy)]
pub enum ValueForm {
    /// Text.
    Text,
    /// A list of texts.
    Texts,
    /// Text, or a list of texts.
    TextOrTexts,
    /// True or false.
    Flag,
    /// Anything; the source checks it itself.
    Any,
}

/// A kind of source in the configuration: a mapping with the name of the kind as its main key.
#[derive(Debug)]
pub struct SourceKind {
    /// The main key: `header` in `{header: x-account-id}`.
    pub name: &'static str,
    /// How the value of the main key is written.
    pub form: ValueForm,
    /// Optional keys next to the main key, and how their values are written, in addition to
    /// [`folded::OPTIONS`] of text.
    pub options: &'static [(&'static str, ValueForm)],
    /// Builds the source from the main key's value and the options that are present.
    pub build: fn(&Tree, &[(String, Tree)]) -> BuiltSource,
}

/// All kinds of sources.
pub const REGISTRY: &[SourceKind] = &[
    header::KIND,
    cookie::KIND,
    query::KIND,
    client_address::KIND,
    jwt_claim::KIND,
    metadata::KIND,
    peer::KIND,
    path_param::KIND,
    attribute::KIND,
    filter_state::KIND,
];

/// Builds the source that the configuration describes.
///
/// # Errors
/// Every mistake in it.
pub fn build(wanted: &IdentitySource) -> BuiltSource {
    match REGISTRY.iter().find(|kind| kind.name == wanted.kind) {
        Some(kind) => {
            let is_own = |(name, _): &&(String, Tree)| kind.options.iter().any(|own| own.0 == name);
            let (own, more): (Vec<_>, Vec<_>) = wanted.options.iter().partition(is_own);
            let [own, more] = [own, more].map(|all| all.into_iter().cloned().collect::<Vec<_>>());
            folded::folded((kind.build)(&wanted.value, &own)?, &more)
        }
        None => {
            let message = "no such source".into();
            Err(vec![Mistake { key: wanted.kind.into(), message }])
        }
    }
}

/// The text under the main key `key`. It must not be empty or contain a NUL.
fn text(key: &str, value: &Tree) -> Result<String, Vec<Mistake>> {
    match value.text() {
        Some(text) if !text.is_empty() && !text.contains('\0') => Ok(text.into()),
        _ => {
            let message = format!("found {}, allowed: a name", value.found());
            Err(vec![Mistake { key: key.into(), message }])
        }
    }
}

/// The name under the main key `key`, or a list of names from the outermost to the innermost.
fn names(key: &str, value: &Tree) -> Result<Vec<String>, Vec<Mistake>> {
    let Tree::List(items) = value else { return Ok(vec![text(key, value)?]) };
    if items.is_empty() {
        let message = "found an empty list, allowed: a name, or a list of names".into();
        return Err(vec![Mistake { key: key.into(), message }]);
    }
    items.iter().map(|item| text(key, item)).collect()
}

/// The header name under the main key `key`, in lower case.
fn header_name(key: &str, value: &Tree) -> Result<String, Vec<Mistake>> {
    let name = text(key, value)?.to_ascii_lowercase();
    if name == "host" {
        let message = "`host` names the service, not the caller".into();
        return Err(vec![Mistake { key: key.into(), message }]);
    }
    if diana_policy::spelling::header::is_name(&name) {
        return Ok(name);
    }
    let message = format!("found `{name}`, allowed: a header name");
    Err(vec![Mistake { key: key.into(), message }])
}
