//! One line of a log: a request, and how its stream ended.

use std::borrow::Cow;
use std::net::IpAddr;
use std::rc::Rc;

use diana_policy::port::{Ending, Property, Pseudo, Request, Values};
use diana_policy::spelling;
use diana_policy::time::Micros;

use super::fields::{FIELDS, FieldMapping, FieldTarget, LogField, STANDARD, standard};
use crate::Arrival;

/// Envoy's response flags for a client that disconnected, or violated the protocol.
const CLIENT_LEFT: [&[u8]; 3] = [b"DC", b"DPE", b"DR"];

/// The start of Envoy's details for a response that the upstream began, and did not complete.
const CUT: &[u8] = b"upstream_reset_after_response_started";

/// Envoy's details for a response of the upstream that did not accept a WebSocket.
const NO_WEBSOCKET: &[u8] = b"websocket_handshake_unsuccessful";

/// A part of the text of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextSpan {
    start: u32,
    end: u32,
}

/// A request, and how its stream ended.
#[derive(Debug, Default)]
pub struct LogEntry {
    /// The number of its line among all lines that were read.
    pub number: u64,
    /// When it arrived, by the clock of the log.
    pub at: Micros,
    /// How long it took, if the log has durations.
    pub took: Option<Micros>,
    /// Status of the response; zero if there was none.
    pub status: u16,
    /// The text of all fields, one after the other.
    text: Vec<u8>,
    fields: [Option<TextSpan>; FIELDS],
    /// Values of the fields that `--set` names, by the number of the `--set`.
    set: Vec<(usize, TextSpan)>,
    /// Fields of an object with the name of a header: the name and the value.
    headers: Vec<(TextSpan, TextSpan)>,
    mapping: Rc<FieldMapping>,
}

impl LogEntry {
    /// Removes everything, so that the entry can be used again.
    pub fn begin(&mut self, number: u64, mapping: &Rc<FieldMapping>) {
        (self.number, self.at, self.took, self.status) = (number, 0, None, 0);
        self.text.clear();
        self.fields = [None; FIELDS];
        self.set.clear();
        self.headers.clear();
        if !Rc::ptr_eq(&self.mapping, mapping) {
            self.mapping = mapping.clone();
        }
    }

    /// Stores a text.
    pub fn store(&mut self, text: &[u8]) -> TextSpan {
        let start = self.text.len() as u32;
        self.text.extend_from_slice(text);
        TextSpan { start, end: self.text.len() as u32 }
    }

    /// Stores a whole line, before anything else. That is faster than to store each part of it.
    pub fn store_line(&mut self, line: &[u8]) {
        self.store(line);
    }

    /// As [`LogEntry::put`], with a part of the line that was stored.
    pub fn put_span(&mut self, field: LogField, (start, end): (u32, u32)) {
        let span = TextSpan { start, end };
        if self.span(span).and_then(value).is_some()
            && let Some(slot @ None) = self.fields.get_mut(field as usize)
        {
            *slot = Some(span);
        }
    }

    /// Stores the value of a field, unless it is empty.
    pub fn put(&mut self, field: LogField, text: &[u8]) {
        if let (Some(text), Some(None)) = (value(text), self.fields.get(field as usize)) {
            let span = self.store(text);
            self.fields.iter_mut().skip(field as usize).take(1).for_each(|it| *it = Some(span));
        }
    }

    /// Stores the value of a field that a `--set` names, by the number of the `--set`.
    pub fn put_set(&mut self, number: usize, text: &[u8]) {
        if let Some(text) = value(text) {
            let span = self.store(text);
            self.set.push((number, span));
        }
    }

    /// Stores a header.
    pub fn put_header(&mut self, name: &[u8], text: &[u8]) {
        if let Some(text) = value(text) {
            let spans = (self.store(name), self.store(text));
            self.headers.push(spans);
        }
    }

    /// The names and values of the headers in the line, without pseudo headers.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let standard = STANDARD
            .iter()
            .filter_map(|(name, field)| Some((name.as_bytes(), self.field(*field)?)));
        let own = self.headers.iter();
        standard
            .chain(own.filter_map(|(name, value)| Some((self.span(*name)?, self.span(*value)?))))
    }

    /// The value of a field.
    pub fn field(&self, field: LogField) -> Option<&[u8]> {
        let span = *self.fields.get(field as usize)?;
        self.span(span?)
    }

    fn span(&self, TextSpan { start, end }: TextSpan) -> Option<&[u8]> {
        self.text.get(start as usize..end as usize)
    }

    /// The value of the first field that a `--set` names and that `is_it` accepts.
    fn set(&self, is_it: impl Fn(&FieldTarget) -> bool) -> Option<&[u8]> {
        let named = |number: usize| self.mapping.set.get(number);
        let found =
            self.set.iter().find(|(number, _)| named(*number).is_some_and(|it| is_it(&it.0)));
        self.span(found?.1)
    }

    fn has_flag(&self, flags: &[&[u8]]) -> bool {
        let own = self.field(LogField::Flags).unwrap_or_default();
        !own.is_empty() && own.split(|byte| *byte == b',').any(|flag| flags.contains(&flag))
    }
}

/// The value of a field, unless it is empty. Logs write a hyphen for an empty field.
fn value(text: &[u8]) -> Option<&[u8]> {
    (!matches!(text, b"-" | b"")).then_some(text)
}

impl Request for LogEntry {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let field = match which {
            Pseudo::Path => LogField::Path,
            Pseudo::Method => LogField::Method,
            Pseudo::Authority => LogField::Host,
        };
        self.field(field).map(Cow::Borrowed)
    }

    fn header(&self, name: &str) -> Values<'_> {
        let value = match standard(name) {
            Some(field) => self.field(field),
            None => self.set(|target| matches!(target, FieldTarget::Header(own) if **own == *name)),
        };
        let found = || {
            let is_it = |span: TextSpan| self.span(span) == Some(name.as_bytes());
            let (_, value) = self.headers.iter().find(|(own, _)| is_it(*own))?;
            self.span(*value)
        };
        value.or_else(found).map_or(Values::None, Values::One)
    }

    fn client(&self) -> Option<IpAddr> {
        if let Some(text) = self.field(LogField::Address) {
            return spelling::address(text);
        }
        let list = self.field(LogField::ForwardedFor)?;
        spelling::address(list.rsplit(|byte| *byte == b',').next()?.trim_ascii())
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        self.field(LogField::Route).map(Cow::Borrowed)
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        self.set(|target| matches!(target, FieldTarget::Property(own) if own == property))
            .map(Cow::Borrowed)
    }
}

impl Ending for LogEntry {
    fn header(&self, name: &str) -> Values<'_> {
        let value =
            self.set(|target| matches!(target, FieldTarget::Response(own) if **own == *name));
        value.map_or(Values::None, Values::One)
    }

    // A log has one status of gRPC for each response.
    fn ends_with_headers(&self) -> bool {
        true
    }

    fn status(&self) -> Option<u16> {
        Some(self.status).filter(|status| *status > 0)
    }

    fn is_from_upstream(&self) -> bool {
        let is_cut = || {
            let details = self.field(LogField::Details);
            details.is_some_and(|it| it.starts_with(CUT) || it == NO_WEBSOCKET)
        };
        // A client that left before the response has no status.
        let is_left = || self.status > 0 && self.has_flag(&[b"DC", b"DR"]);
        self.is_complete() || is_cut() || is_left()
    }

    fn is_complete(&self) -> bool {
        match self.field(LogField::Details) {
            Some(details) => details == b"via_upstream",
            // All other ends of a stream have a flag.
            None => self.status > 0 && self.field(LogField::Flags).is_none(),
        }
    }

    fn details(&self) -> Option<Cow<'_, [u8]>> {
        self.field(LogField::Details).map(Cow::Borrowed)
    }

    fn client_left(&self) -> bool {
        self.status == 0 || self.has_flag(&CLIENT_LEFT)
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        Request::property(self, property)
    }
}

impl Arrival for LogEntry {
    fn at(&self) -> Micros {
        self.at
    }

    fn took(&self) -> Micros {
        self.took.unwrap_or(0)
    }
}
