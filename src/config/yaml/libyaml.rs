//! What a YAML text consists of, in its order, as libyaml finds it.
//!
//! The library is libyaml in Rust, and its interface still that of C: this file makes it safe.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::slice;

use unsafe_libyaml_norway as unsafe_libyaml;

use crate::config::problem::Position;

/// A piece of a text.
#[derive(Debug, Clone)]
pub struct Event {
    /// Where it begins.
    pub position: Position,
    /// The name by which aliases call the node that begins here.
    pub anchor: Option<String>,
    /// The tag of the node that begins here, in full.
    pub tag: Option<String>,
    /// What it is.
    pub kind: Kind,
}

/// What a piece of a text is.
#[derive(Debug, Clone)]
pub enum Kind {
    /// The next document begins.
    Document,
    /// A node that is text; plain text may mean something else.
    Scalar {
        /// The text.
        text: String,
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
    Alias(String),
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

/// Reads a text piece by piece.
#[derive(Debug)]
pub struct Events<'t> {
    parser: *mut unsafe_libyaml::yaml_parser_t,
    text: PhantomData<&'t str>,
}

impl<'t> Events<'t> {
    /// From the beginning of `text`.
    pub fn new(text: &'t str) -> Events<'t> {
        let parser = Box::into_raw(Box::<unsafe_libyaml::yaml_parser_t>::new_uninit()).cast();
        // SAFETY: the parser, which points to itself, stays where it is, and `text` outlives it.
        unsafe {
            // Without memory it aborts; it never fails.
            let _ = unsafe_libyaml::yaml_parser_initialize(parser);
            unsafe_libyaml::yaml_parser_set_encoding(parser, unsafe_libyaml::YAML_UTF8_ENCODING);
            unsafe_libyaml::yaml_parser_set_input_string(parser, text.as_ptr(), text.len() as u64);
        }
        Events { parser, text: PhantomData }
    }

    /// The next piece; after the last one, or an error, only `End`.
    pub fn next(&mut self) -> Result<Event, Error> {
        loop {
            let mut event = MaybeUninit::uninit();
            // SAFETY: the parser is initialized, and it initializes the event unless it fails.
            let read = unsafe {
                if unsafe_libyaml::yaml_parser_parse(self.parser, event.as_mut_ptr()).fail {
                    return Err(error(&*self.parser));
                }
                let read = read(event.assume_init_ref());
                unsafe_libyaml::yaml_event_delete(event.as_mut_ptr());
                read
            };
            if let Some(event) = read {
                return Ok(event);
            }
        }
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by `new`, and is not used any more.
        unsafe {
            unsafe_libyaml::yaml_parser_delete(self.parser);
            drop(Box::from_raw(self.parser.cast::<MaybeUninit<unsafe_libyaml::yaml_parser_t>>()));
        }
    }
}

/// A copy of what matters in `event`, or nothing.
///
/// # Safety
/// The event is as the parser made it.
unsafe fn read(event: &unsafe_libyaml::yaml_event_t) -> Option<Event> {
    // SAFETY: the type says which of the data there are, and their pointers are null or valid.
    let (anchor, tag, kind) =
        unsafe {
            match event.type_ {
                unsafe_libyaml::YAML_DOCUMENT_START_EVENT => (None, None, Kind::Document),
                unsafe_libyaml::YAML_SCALAR_EVENT => {
                    let scalar = &event.data.scalar;
                    let text = bytes(scalar.value, scalar.length as usize);
                    let plain = scalar.style == unsafe_libyaml::YAML_PLAIN_SCALAR_STYLE;
                    (string(scalar.anchor), string(scalar.tag), Kind::Scalar { text, plain })
                }
                unsafe_libyaml::YAML_SEQUENCE_START_EVENT => {
                    let start = &event.data.sequence_start;
                    (string(start.anchor), string(start.tag), Kind::List)
                }
                unsafe_libyaml::YAML_MAPPING_START_EVENT => {
                    let start = &event.data.mapping_start;
                    (string(start.anchor), string(start.tag), Kind::Map)
                }
                unsafe_libyaml::YAML_SEQUENCE_END_EVENT
                | unsafe_libyaml::YAML_MAPPING_END_EVENT => (None, None, Kind::Close),
                unsafe_libyaml::YAML_ALIAS_EVENT => {
                    (None, None, Kind::Alias(string(event.data.alias.anchor).unwrap_or_default()))
                }
                unsafe_libyaml::YAML_STREAM_START_EVENT
                | unsafe_libyaml::YAML_DOCUMENT_END_EVENT => return None,
                _ => (None, None, Kind::End),
            }
        };
    Some(Event { position: position(event.start_mark), anchor, tag, kind })
}

fn error(parser: &unsafe_libyaml::yaml_parser_t) -> Error {
    // SAFETY: both are null or static text.
    let (problem, context) =
        unsafe { (string(parser.problem.cast()), string(parser.context.cast())) };
    let mut message = problem.unwrap_or_default();
    let (position, from) = (position(parser.problem_mark), position(parser.context_mark));
    if let Some(context) = context {
        message.push_str(&format!(", {context}"));
        if from != (1, 1) && from != position {
            message.push_str(&format!(" at line {} column {}", from.0, from.1));
        }
    }
    Error { position, message }
}

fn position(mark: unsafe_libyaml::yaml_mark_t) -> Position {
    (mark.line as usize + 1, mark.column as usize + 1)
}

/// # Safety
/// `start` is null or text with a zero byte at its end.
unsafe fn string(start: *const u8) -> Option<String> {
    if start.is_null() {
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { CStr::from_ptr(start.cast()) }.to_string_lossy().into_owned())
}

/// # Safety
/// `start` is not null, and `length` bytes stand there.
unsafe fn bytes(start: *const u8, length: usize) -> String {
    // SAFETY: as above.
    String::from_utf8_lossy(unsafe { slice::from_raw_parts(start, length) }).into_owned()
}
