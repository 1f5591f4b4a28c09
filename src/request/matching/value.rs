//! What a request may be taken to say in one place.

use diana_policy::Field;
use diana_policy::number;
use diana_policy::port::{Pseudo, Request, Values};
use diana_policy::spelling::{Pair, cookie, header, metadata, only_component, query, readings};

/// Whether there is a value by which an actor with the same source recognises a caller: one that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// To no reader.
    Absent,
    /// To some readers.
    Unsure,
    /// To every reader.
    Sure,
    /// The host cannot tell.
    Unknown,
}

/// Hands all readings of a field's values to `take`, and `None` for a value that readers decode differently. `in_parts` says whether a header is also
/// taken for a list, as which others may have written one that occurred more than once. With `is_decoded` names and
/// values that must be percent-encoded are only taken decoded.
pub fn read(
    field: &Field,
    in_parts: bool,
    is_decoded: bool,
    request: &dyn Request,
    take: &mut dyn FnMut(Option<&[u8]>),
) -> Presence {
    match field {
        Field::Header(name) => each(request.header(name), &mut |value| {
            // Not every protocol takes spaces around a value off.
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
        Field::Query(name) => {
            let path = request.pseudo(Pseudo::Path);
            named(
                query::pairs(path.as_deref().unwrap_or_default(), name.as_bytes()),
                |value| !value.is_empty(),
                is_decoded,
                &mut |value| read_encoded(value, is_decoded, take),
            )
        }
        Field::Cookie(name) => each(request.header("cookie"), &mut |header| {
            let has_text = |value: &[u8]| cookie::unquoted(value).any(|text| !text.is_empty());
            let pairs = cookie::pairs(header, name.as_bytes());
            named(pairs, has_text, is_decoded, &mut |value| {
                for value in cookie::readings(value) {
                    read_encoded(&value, is_decoded, take);
                }
            })
        }),
        Field::Property(property) => match request.property(property) {
            None => Presence::Absent,
            Some(value) => {
                typed(&value, take);
                usable(!metadata::is_absent(&value), true)
            }
        },
    }
}

/// Hands on the readings of a value that may be percent-encoded. If it must be, its encoded text has no other meaning.
fn read_encoded(value: &[u8], is_decoded: bool, take: &mut dyn FnMut(Option<&[u8]>)) {
    let has_escapes = value.contains(&b'%');
    let is_settled = has_escapes && only_component(value).is_some();
    let as_written = usize::from(is_decoded && is_settled);
    readings(value).skip(as_written).for_each(|reading| take(Some(&reading)));
    if has_escapes && !is_settled {
        take(None);
    }
}

/// Reads each value of a header by `read`. It is as present as the most present of them.
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

/// Hands on the values of some pairs, of which those are present that have text.
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

/// In the place of a value that is no text: no condition has this character.
const NO_TEXT: &[u8] = b"\0";

/// Hands on a value that may be text, a number, a switch, a list or a mapping: the host gives no type. Lists,
/// mappings and most numbers that are not whole have a NUL, which no text has.
fn typed(value: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) {
    match value {
        [0] => take(Some(b"false")),
        [1] => take(Some(b"true")),
        _ => match number::whole(value).filter(|number| *number < 1 << 53) {
            Some(number) => take(Some(number.to_string().as_bytes())),
            None if value.contains(&0) => take(Some(NO_TEXT)),
            None => take(Some(value)),
        },
    }
}
