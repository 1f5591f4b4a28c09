//! What a request may be taken to say in one place.

use crate::number;
use crate::policy::Field;
use crate::port::{Pseudo, Request, Values};
use crate::spelling::{Pair, cookie, query, readings};

/// Whether there is a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// To everybody.
    Sure,
    /// To some, or to nobody.
    Unsure,
    /// Nobody can tell.
    Unknown,
}

/// Hands everything that the values of a field may be taken for to `take`. `in_parts` says whether a header is also
/// taken for a list, as which others may have written one that occurred more than once. With `is_decoded` names and
/// values that must be percent-encoded are only taken decoded.
pub fn read(
    field: &Field,
    in_parts: bool,
    is_decoded: bool,
    request: &dyn Request,
    take: &mut dyn FnMut(&[u8]),
) -> Presence {
    match field {
        Field::Header(name) => each(request.header(name), &mut |value| {
            take(value);
            if in_parts {
                // Not every protocol takes spaces around a value off.
                value.split(|&byte| byte == b',').for_each(|item| take(item.trim_ascii()));
            }
            true
        }),
        Field::Query(name) => {
            let path = request.pseudo(Pseudo::Path);
            named(
                query::pairs(path.as_deref().unwrap_or_default(), name.as_bytes()),
                is_decoded,
                &mut |value| {
                    let settled = is_decoded && has_only(value, query::only);
                    readings(value).skip(settled.into()).for_each(|reading| take(&reading));
                },
            )
        }
        Field::Cookie(name) => each(request.header("cookie"), &mut |header| {
            let presence =
                named(cookie::pairs(header, name.as_bytes()), is_decoded, &mut |value| {
                    for value in cookie::readings(value) {
                        let settled = is_decoded && has_only(&value, cookie::only);
                        readings(&value).skip(settled.into()).for_each(|reading| take(&reading));
                    }
                });
            presence == Presence::Sure
        }),
        Field::Property(property) => match request.property(property) {
            None => Presence::Unsure,
            Some(value) => {
                typed(&value, take);
                Presence::Sure
            }
        },
    }
}

/// Returns true if a value has escapes, and but one reading by `only`, so that as it stands it means nothing else.
fn has_only(value: &[u8], only: fn(&[u8]) -> Option<Vec<u8>>) -> bool {
    value.contains(&b'%') && only(value).is_some()
}

/// Reads each value of a header by `read`, which says whether there is one to everybody. It is there if one is.
fn each(values: Values<'_>, read: &mut dyn FnMut(&[u8]) -> bool) -> Presence {
    let mut sure = false;
    match values {
        Values::None => {}
        Values::One(value) => sure = read(value),
        Values::Many(values) if values.is_empty() => return Presence::Unknown,
        Values::Many(values) => values.into_iter().for_each(|value| sure |= read(value)),
    }
    if sure { Presence::Sure } else { Presence::Unsure }
}

/// Hands on the values of some pairs.
fn named<'a>(
    pairs: impl Iterator<Item = Pair<'a>>,
    is_decoded: bool,
    take: &mut dyn FnMut(&[u8]),
) -> Presence {
    let mut presence = Presence::Unsure;
    for pair in pairs {
        take(pair.value);
        if pair.is_plain || is_decoded && pair.is_encoded {
            presence = Presence::Sure;
        }
    }
    presence
}

/// Hands on a value that may be text, a number or a switch: the host does not say which it is.
fn typed(value: &[u8], take: &mut dyn FnMut(&[u8])) {
    match value {
        [0] => take(b"false"),
        [1] => take(b"true"),
        _ => match number::whole(value).filter(|number| *number < 1 << 53) {
            Some(number) => take(number.to_string().as_bytes()),
            None => take(value),
        },
    }
}
