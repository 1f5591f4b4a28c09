//! The possible readings of a value in a request.

use diana_policy::number;
use diana_policy::port::{Pseudo, Request, Values};
use diana_policy::spelling::{Pair, cookie, header, metadata, only_component, query, readings};
use diana_policy::{Condition, ConditionField, Test};

/// Whether a field has a value that would identify a caller if an actor used it as a source: one
/// that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// For no reader.
    Absent,
    /// For some readers.
    Unsure,
    /// For every reader.
    Sure,
    /// It cannot be read.
    Unknown,
}

/// Calls `take` with whether each reading of the values passes the test, and with `None` for a
/// value that readers decode differently. `in_parts` also reads a header as a list, since a proxy
/// may have joined repeated headers. With `is_decoded`, names and values that must be
/// percent-encoded are read in decoded form only.
pub fn read(
    condition: &Condition,
    in_parts: bool,
    is_decoded: bool,
    request: &dyn Request,
    pass: &mut dyn FnMut(Option<bool>),
) -> Presence {
    let take: &mut dyn FnMut(Option<&[u8]>) =
        &mut |reading| pass(reading.map(|reading| condition.accepts(reading)));
    match &condition.field {
        ConditionField::Header(name) => each(request.header(name), &mut |value| {
            // Some protocols preserve spaces around a value.
            let text = value.trim_ascii();
            take(Some(if text.is_empty() { text } else { value }));
            if in_parts || header::is_joined(name, text) {
                let items = text.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
                items.filter(|item| !item.is_empty()).for_each(|item| take(Some(item)));
            }
            if in_parts && name == header::AUTHORIZATION {
                take(Some(&header::credentials(text)));
            }
            usable(!text.is_empty(), true)
        }),
        ConditionField::Query(name) => {
            let path = request.pseudo(Pseudo::Path);
            named(
                query::pairs(path.as_deref().unwrap_or_default(), name.as_bytes()),
                |value| !value.is_empty(),
                is_decoded,
                &mut |value| read_encoded(value, is_decoded, take),
            )
        }
        ConditionField::Cookie(name) => each(request.header("cookie"), &mut |header| {
            let has_text = |value: &[u8]| cookie::unquoted(value).any(|text| !text.is_empty());
            let pairs = cookie::pairs(header, name.as_bytes());
            named(pairs, has_text, is_decoded, &mut |value| {
                for value in cookie::readings(value) {
                    read_encoded(&value, is_decoded, take);
                }
            })
        }),
        ConditionField::Property(property) => match request.property(property) {
            None => Presence::Absent,
            Some(value) => {
                // Every list is present, and passes the text form `not`.
                let of_items = !matches!(condition.test, Test::Not(_) | Test::Present(_));
                match metadata::items(&value).filter(|_| of_items) {
                    Some(items) => pass(Some(items.iter().any(|item| passes(condition, item)))),
                    None => pass(Some(passes(condition, &value))),
                }
                match metadata::has_mapping(&value) {
                    true => Presence::Unknown,
                    false => usable(!metadata::is_empty(&value), true),
                }
            }
        },
    }
}

/// Calls `take` with the readings of a value that may be percent-encoded. If it must be encoded,
/// the encoded text has no other meaning.
fn read_encoded(value: &[u8], is_decoded: bool, take: &mut dyn FnMut(Option<&[u8]>)) {
    let has_escapes = value.contains(&b'%');
    let is_settled = has_escapes && only_component(value).is_some();
    let as_written = usize::from(is_decoded && is_settled);
    readings(value).skip(as_written).for_each(|reading| take(Some(&reading)));
    if has_escapes && !is_settled {
        take(None);
    }
}

/// Calls `read` with each value of a header. Returns the highest presence of them.
fn each(values: Values<'_>, read: &mut dyn FnMut(&[u8]) -> Presence) -> Presence {
    match values {
        Values::None => Presence::Absent,
        Values::One(value) => read(value),
        Values::Many(values) if values.is_empty() => Presence::Unknown,
        Values::Many(values) => values.into_iter().map(read).max().unwrap_or(Presence::Absent),
    }
}

fn usable(is_usable: bool, is_plain: bool) -> Presence {
    match (is_usable, is_plain) {
        (false, _) => Presence::Absent,
        (true, false) => Presence::Unsure,
        (true, true) => Presence::Sure,
    }
}

/// Calls `take` with the values of all pairs. Those with text count as present.
fn named<'a>(
    pairs: impl Iterator<Item = Pair<'a>>,
    has_text: impl Fn(&[u8]) -> bool,
    is_decoded: bool,
    take: &mut dyn FnMut(&[u8]),
) -> Presence {
    let presences = pairs.map(|pair| {
        take(pair.value);
        usable(has_text(pair.value), pair.is_plain || is_decoded && pair.is_encoded)
    });
    presences.max().unwrap_or(Presence::Absent)
}

/// Stands for a value that is not text. No condition contains this character.
const NO_TEXT: &[u8] = b"\0";

/// Returns true if a number, or the text of one, is in the range of the test.
fn passes_range(condition: &Condition, value: &[u8]) -> bool {
    match (number::float_millionths(value), &condition.test) {
        (Some(number), Test::Between(least, most)) => (*least..=*most).contains(&number),
        _ => condition.accepts(value),
    }
}

/// Returns true if a value of unknown type passes the test: text, number, boolean, list or mapping.
fn passes(condition: &Condition, value: &[u8]) -> bool {
    match (value, &condition.test) {
        ([0], _) => condition.accepts(b"false"),
        ([1], _) => condition.accepts(b"true"),
        (_, Test::Between(..)) => passes_range(condition, value),
        _ => match number::whole(value).filter(|number| *number < number::FIRST_ROUNDED) {
            Some(number) => condition.accepts(number.to_string().as_bytes()),
            // Lists, mappings and most fractions contain a NUL, which text never does.
            None if value.contains(&0) => condition.accepts(NO_TEXT),
            None => condition.accepts(value),
        },
    }
}
