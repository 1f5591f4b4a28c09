//! The sources by which an actor's callers are recognised.

use std::rc::Rc;

use super::header::{self, Said};
use super::{Found, Mistake, Source};
use crate::policy::Actor;
use crate::port::Request;

/// How callers are recognised by an actor: what is asked, in order.
pub struct Sources {
    /// The actor's name, and the kinds of its sources.
    pub(super) name: String,
    pub(super) kinds: Vec<&'static str>,
    pub(super) sources: Vec<Rc<dyn Source>>,
    /// The header that is asked first, if one is, as most actors do: to ask it through its source takes half as long again.
    header: Option<Box<str>>,
}

impl Sources {
    /// The sources that a configuration asks for.
    ///
    /// # Errors
    /// Every mistake in them.
    pub fn new(actor: &Actor) -> Result<Sources, Vec<Mistake>> {
        let sources: Vec<_> = actor.sources.iter().map(super::build).collect::<Result<_, _>>()?;
        let kinds = actor.sources.iter().map(|source| source.kind).collect();
        let header = sources.first().and_then(|source| source.header()).map(Into::into);
        Ok(Sources { name: actor.name.clone(), kinds, sources, header })
    }

    /// Whether headers are looked at.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.sources.iter().any(|source| source.reads_headers())
    }

    /// What the header says that is asked first.
    #[inline(always)]
    pub(super) fn first<'r>(&self, request: &'r dyn Request) -> Said<'r> {
        self.header.as_ref().map_or(Said::Nothing, |name| header::said(name, request))
    }

    /// Asks the sources in order. What the first of them finds that finds anything, and its number.
    pub fn find<'r>(&self, request: &'r dyn Request) -> (usize, Found<'r>) {
        self.find_from(0, request)
    }

    /// The same, where [`Sources::first`] says nothing.
    pub(super) fn find_after_first<'r>(&self, request: &'r dyn Request) -> (usize, Found<'r>) {
        self.find_from(usize::from(self.header.is_some()), request)
    }

    fn find_from<'r>(&self, first: usize, request: &'r dyn Request) -> (usize, Found<'r>) {
        let mut missing = Found::Absent;
        for (number, source) in self.sources.iter().enumerate().skip(first) {
            match source.find(request) {
                Found::Absent => {}
                Found::NoMetadata => missing = Found::NoMetadata,
                found => return (number, found),
            }
        }
        (0, missing)
    }
}
