//! What a YAML text consists of, in its order.

use std::borrow::Cow;

use granit_parser::{ErrorKind, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

use crate::problem::Position;

/// Deepest nesting of brackets and braces that the parser follows. The reader allows far less, and says
/// where; but the parser is ahead of it by up to the 1024 characters that a key may take.
const MAX_FLOW: usize = 2048;

/// A piece of a text.
#[derive(Debug, Clone)]
pub struct Event<'t> {
    /// Where it begins.
    pub position: Position,
    /// The number by which aliases call the node that begins here.
    pub anchor: Option<usize>,
    /// The tag of the node that begins here, in full.
    pub tag: Option<String>,
    /// What it is.
    pub kind: Kind<'t>,
}

/// What a piece of a text is.
#[derive(Debug, Clone)]
pub enum Kind<'t> {
    /// A node that is text; plain text may mean something else.
    Scalar {
        /// The text.
        text: Cow<'t, str>,
        /// Whether it is without quotes.
        plain: bool,
    },
    /// A list begins, up to its `Close`.
    List,
    /// A mapping begins, keys and values in turn, up to its `Close`.
    Map,
    /// The innermost list or mapping ends.
    Close,
    /// The node with this anchor once more.
    Alias(usize),
    /// The text ends.
    End,
}

/// Why a text is no YAML.
#[derive(Debug)]
pub struct Error {
    /// Where.
    pub position: Position,
    /// What is wrong there.
    pub message: String,
}

/// Reads a text piece by piece, with a stack on the heap: no nesting is too deep for that of the module.
pub struct Events<'t>(Parser<'t, StrInput<'t>>);

impl<'t> Events<'t> {
    /// From the beginning of `text`.
    pub fn new(text: &'t str) -> Events<'t> {
        let options = granit_parser::options! {
            flow_nesting_limit: MAX_FLOW,
            // As YAML says, unlike its test suite.
            block_scalar_eof_without_line_feed: true,
        };
        Events(Parser::new_from_str_with_options(text, options))
    }

    /// The next piece; after the last one, or an error, only `End`.
    pub fn next(&mut self) -> Result<Event<'t>, Error> {
        loop {
            let (event, span) = match self.0.next_event() {
                Some(Ok(read)) => read,
                Some(Err(error)) => return Err(explained(&error)),
                None => (granit_parser::Event::StreamEnd, Span::default()),
            };
            if let Some(event) = read(event, &span) {
                return Ok(event);
            }
        }
    }
}

/// What matters in `event`, or nothing.
fn read<'t>(event: granit_parser::Event<'t>, span: &Span) -> Option<Event<'t>> {
    use granit_parser::Event as Read;
    let (anchor, tag, kind) = match event {
        Read::StreamEnd => (0, None, Kind::End),
        Read::Alias(anchor) => (0, None, Kind::Alias(anchor)),
        Read::Scalar(text, style, anchor, tag) => {
            (anchor, tag, Kind::Scalar { text, plain: style == ScalarStyle::Plain })
        }
        Read::SequenceStart(_, anchor, tag) => (anchor, tag, Kind::List),
        Read::MappingStart(_, anchor, tag) => (anchor, tag, Kind::Map),
        Read::SequenceEnd | Read::MappingEnd => (0, None, Kind::Close),
        _ => return None,
    };
    Some(Event {
        position: position(span.tag_start().unwrap_or(span.start)),
        anchor: Some(anchor).filter(|&anchor| anchor > 0),
        tag: tag.map(|tag| [tag.handle(), tag.suffix()].concat()),
        kind,
    })
}

fn explained(error: &ScanError) -> Error {
    let mut message = error.kind().to_string();
    if matches!(
        error.kind(),
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation
    ) {
        message.push_str("; YAML indents with spaces, not tabs");
    }
    Error { position: position(*error.marker()), message }
}

fn position(mark: Marker) -> Position {
    (mark.line(), mark.col() + 1)
}
