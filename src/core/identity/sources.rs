//! The sources by which an actor's callers are recognised.

use std::rc::Rc;

use super::{Found, Mistake, Source, header};
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

    /// Asks the sources in order. What the first of them finds that finds anything, and its number.
    #[inline(never)]
    pub fn find<'r>(&self, request: &'r dyn Request) -> (usize, Found<'r>) {
        self.ask(request)
    }

    /// The same within the one caller of it that nearly every request comes by.
    #[inline(always)]
    pub(super) fn ask<'r>(&self, request: &'r dyn Request) -> (usize, Found<'r>) {
        let mut missing = Found::Absent;
        let mut asked = 0;
        if let Some(name) = &self.header {
            match header::find(name, request) {
                Found::Absent => asked = 1,
                found => return (0, found),
            }
        }
        for (number, source) in self.sources.iter().enumerate().skip(asked) {
            match source.find(request) {
                Found::Absent => {}
                Found::NoMetadata => missing = Found::NoMetadata,
                found => return (number, found),
            }
        }
        (0, missing)
    }
}
