//! One request, as a log tells of it.

use std::borrow::Cow;
use std::net::IpAddr;
use std::rc::Rc;

use diana_player::Arrival;
use diana_policy::address;
use diana_policy::port::{Ending, Property, Pseudo, Request, Values};
use diana_policy::time::Micros;

use crate::fields::{FIELDS, Field, Mapping, STANDARD, Target, standard};

/// Flags by which Envoy says that the upstream could not be reached, or did not answer.
const UPSTREAM_FAILED: [&[u8]; 6] = [b"UH", b"UT", b"UF", b"UC", b"NC", b"UPE"];

/// Flags by which Envoy says that the client has left.
const CLIENT_LEFT: [&[u8]; 2] = [b"DC", b"DR"];

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    start: u32,
    end: u32,
}

/// A request.
#[derive(Debug, Default)]
pub struct Entry {
    /// Its place among all lines that were read.
    pub number: u64,
    /// When it came, by the log's clock.
    pub at: Micros,
    /// How long it took, if the log tells.
    pub took: Option<Micros>,
    /// Status of the response; zero if there was none.
    pub status: u16,
    /// All that was read, one after the other.
    text: Vec<u8>,
    fields: [Option<Span>; FIELDS],
    /// What `--set` names, by its number.
    set: Vec<(usize, Span)>,
    /// Fields of an object that bear the name of a header: the name, and the value.
    headers: Vec<(Span, Span)>,
    mapping: Rc<Mapping>,
}

impl Entry {
    /// Forgets everything, to be used again.
    pub fn begin(&mut self, number: u64, mapping: &Rc<Mapping>) {
        (self.number, self.at, self.took, self.status) = (number, 0, None, 0);
        self.text.clear();
        self.fields = [None; FIELDS];
        self.set.clear();
        self.headers.clear();
        if !Rc::ptr_eq(&self.mapping, mapping) {
            self.mapping = mapping.clone();
        }
    }

    /// Keeps a text.
    pub fn keep(&mut self, text: &[u8]) -> Span {
        let start = self.text.len() as u32;
        self.text.extend_from_slice(text);
        Span { start, end: self.text.len() as u32 }
    }

    /// Keeps a whole line, before anything else: that is faster than each part of it by itself.
    pub fn keep_line(&mut self, line: &[u8]) {
        self.keep(line);
    }

    /// As [`Entry::put`], of a part of the line that was kept.
    pub fn put_part(&mut self, field: Field, (start, end): (u32, u32)) {
        let span = Span { start, end };
        if self.span(span).and_then(said).is_some()
            && let Some(place @ None) = self.fields.get_mut(field as usize)
        {
            *place = Some(span);
        }
    }

    /// Keeps what a field says, unless it says nothing.
    pub fn put(&mut self, field: Field, text: &[u8]) {
        if let (Some(text), Some(None)) = (said(text), self.fields.get(field as usize)) {
            let span = self.keep(text);
            self.fields.iter_mut().skip(field as usize).take(1).for_each(|it| *it = Some(span));
        }
    }

    /// Keeps what `--set` names under a number.
    pub fn put_set(&mut self, number: usize, text: &[u8]) {
        if let Some(text) = said(text) {
            let span = self.keep(text);
            self.set.push((number, span));
        }
    }

    /// Keeps a header.
    pub fn put_header(&mut self, name: &[u8], text: &[u8]) {
        if let Some(text) = said(text) {
            let spans = (self.keep(name), self.keep(text));
            self.headers.push(spans);
        }
    }

    /// The names and values of the headers that the line bears, apart from those that every request has.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let standard = STANDARD
            .iter()
            .filter_map(|(name, field)| Some((name.as_bytes(), self.field(*field)?)));
        let own = self.headers.iter();
        standard
            .chain(own.filter_map(|(name, value)| Some((self.span(*name)?, self.span(*value)?))))
    }

    /// What a field says.
    pub fn field(&self, field: Field) -> Option<&[u8]> {
        let span = *self.fields.get(field as usize)?;
        self.span(span?)
    }

    fn span(&self, Span { start, end }: Span) -> Option<&[u8]> {
        self.text.get(start as usize..end as usize)
    }

    /// What `--set` names, by what it is.
    fn set(&self, is_it: impl Fn(&Target) -> bool) -> Option<&[u8]> {
        let named = |number: usize| self.mapping.set.get(number);
        let found =
            self.set.iter().find(|(number, _)| named(*number).is_some_and(|it| is_it(&it.0)));
        self.span(found?.1)
    }

    fn has_flag(&self, flags: &[&[u8]]) -> bool {
        let own = self.field(Field::Flags).unwrap_or_default();
        !own.is_empty() && own.split(|byte| *byte == b',').any(|flag| flags.contains(&flag))
    }
}

/// What a log says, which writes a hyphen in the place of nothing.
fn said(text: &[u8]) -> Option<&[u8]> {
    (!matches!(text, b"-" | b"")).then_some(text)
}

impl Request for Entry {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let field = match which {
            Pseudo::Path => Field::Path,
            Pseudo::Method => Field::Method,
            Pseudo::Authority => Field::Host,
        };
        self.field(field).map(Cow::Borrowed)
    }

    fn header(&self, name: &str) -> Values<'_> {
        let value = match standard(name) {
            Some(field) => self.field(field),
            None => self.set(|target| matches!(target, Target::Header(own) if **own == *name)),
        };
        let found = || {
            let is_it = |span: Span| self.span(span) == Some(name.as_bytes());
            let (_, value) = self.headers.iter().find(|(own, _)| is_it(*own))?;
            self.span(*value)
        };
        value.or_else(found).map_or(Values::None, Values::One)
    }

    fn client(&self) -> Option<IpAddr> {
        if let Some(text) = self.field(Field::Address) {
            return address::parse(text);
        }
        let list = self.field(Field::ForwardedFor)?;
        address::parse(list.rsplit(|byte| *byte == b',').next()?.trim_ascii())
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        self.set(|target| matches!(target, Target::Property(own) if own == property))
            .map(Cow::Borrowed)
    }
}

impl Ending for Entry {
    fn header(&self, name: &str) -> Values<'_> {
        let value = self.set(|target| matches!(target, Target::Response(own) if **own == *name));
        value.map_or(Values::None, Values::One)
    }

    fn status(&self) -> Option<u16> {
        Some(self.status).filter(|status| *status > 0)
    }

    fn is_from_upstream(&self) -> bool {
        match self.field(Field::Details) {
            Some(details) => details == b"via_upstream",
            // Whatever else cut it off has a flag.
            None => self.status > 0 && self.field(Field::Flags).is_none(),
        }
    }

    fn is_followed(&self) -> bool {
        self.field(Field::Details) == Some(b"internal_redirect")
    }

    fn details(&self) -> Option<Cow<'_, [u8]>> {
        self.field(Field::Details).map(Cow::Borrowed)
    }

    fn upstream_failed(&self) -> bool {
        self.has_flag(&UPSTREAM_FAILED)
    }

    fn client_left(&self) -> bool {
        self.has_flag(&CLIENT_LEFT)
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        Request::property(self, property)
    }
}

impl Arrival for Entry {
    fn at(&self) -> Micros {
        self.at
    }

    fn took(&self) -> Micros {
        self.took.unwrap_or(0)
    }
}
