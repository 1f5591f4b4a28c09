//! The events of a YAML text.

use std::borrow::Cow;

use granit_parser::{Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

use crate::problem::Position;

/// Maximum nesting of brackets and braces in the parser. The reader's limit is far lower, and its
/// error has a position. But the parser is ahead of the reader by up to 1024 characters, the
/// maximum length of a key.
const MAX_FLOW: usize = 2048;

/// An event of the parser.
#[derive(Debug, Clone)]
pub struct YamlEvent<'t> {
    /// Its position.
    pub position: Position,
    /// The position after it. That of a `Close` without a bracket is the next token's.
    pub end: Position,
    /// The anchor of the node that begins here.
    pub anchor: Option<usize>,
    /// The full tag of the node that begins here.
    pub tag: Option<String>,
    /// Its kind.
    pub kind: EventKind<'t>,
}

/// The kind of an event.
#[derive(Debug, Clone)]
pub enum EventKind<'t> {
    /// A scalar.
    Scalar {
        /// The text.
        text: Cow<'t, str>,
        /// Whether it is without quotes, and so may be a number, a boolean or null.
        plain: bool,
    },
    /// The beginning of a list, up to its `Close`.
    List,
    /// The beginning of a mapping, with alternating keys and values, up to its `Close`.
    Map,
    /// The end of the innermost list or mapping.
    Close,
    /// A repetition of the node with this anchor.
    Alias(usize),
    /// The end of the text.
    End,
}

/// A syntax error.
#[derive(Debug)]
pub struct Error {
    /// Its position.
    pub position: Position,
    /// Its message.
    pub message: String,
}

/// Reads a text event by event. The parser's stack is on the heap, so deep nesting cannot overflow
/// the module's stack.
pub struct Events<'t>(Parser<'t, StrInput<'t>>);

impl<'t> Events<'t> {
    /// Begins at the start of `text`.
    pub fn new(text: &'t str) -> Events<'t> {
        let options = granit_parser::options! {
            flow_nesting_limit: MAX_FLOW,
            // As the YAML specification requires, unlike its test suite.
            block_scalar_eof_without_line_feed: true,
        };
        Events(Parser::new_from_str_with_options(text, options))
    }

    /// The next event. After the last one, or an error, always `End`.
    pub fn next(&mut self) -> Result<YamlEvent<'t>, Error> {
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

/// Converts an event. `None` if it has no meaning for trees.
fn read<'t>(event: granit_parser::Event<'t>, span: &Span) -> Option<YamlEvent<'t>> {
    use granit_parser::Event as Read;
    let (anchor, tag, kind) = match event {
        Read::StreamEnd => (0, None, EventKind::End),
        Read::Alias(anchor) => (0, None, EventKind::Alias(anchor)),
        Read::Scalar(text, style, anchor, tag) => {
            (anchor, tag, EventKind::Scalar { text, plain: style == ScalarStyle::Plain })
        }
        Read::SequenceStart(_, anchor, tag) => (anchor, tag, EventKind::List),
        Read::MappingStart(_, anchor, tag) => (anchor, tag, EventKind::Map),
        Read::SequenceEnd | Read::MappingEnd => (0, None, EventKind::Close),
        _ => return None,
    };
    Some(YamlEvent {
        position: position(span.tag_start().unwrap_or(span.start)),
        end: position(span.end),
        anchor: Some(anchor).filter(|&anchor| anchor > 0),
        tag: tag.map(|tag| [tag.handle(), tag.suffix()].concat()),
        kind,
    })
}

fn explained(error: &ScanError) -> Error {
    Error { position: position(*error.marker()), message: error.kind().to_string() }
}

fn position(mark: Marker) -> Position {
    (mark.line(), mark.col() + 1)
}
