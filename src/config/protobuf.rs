//! A configuration as `google.protobuf.Struct`.
//!
//! Envoy passes it to a plugin as the bytes of that message (istiod converts its own to JSON
//! first). YAML cannot be mistaken for it: the byte 0x12 separates a key from its value, and YAML
//! forbids that byte.

use super::yaml::scalar::HUGE;
use diana_policy::tree::Tree;

/// Maximum nesting, beyond that of Envoy.
const MAX_DEPTH: usize = 128;

/// The tree of a `Struct`. `None` if the bytes are not one with at least one field.
pub fn read(bytes: &[u8]) -> Option<Tree> {
    match structure(bytes, MAX_DEPTH)? {
        Tree::Map(pairs) if pairs.is_empty() => None,
        tree => Some(tree),
    }
}

/// `Struct { map<string, Value> fields = 1; }`
fn structure(mut bytes: &[u8], depth: usize) -> Option<Tree> {
    let mut pairs = Vec::new();
    while let Some((field, content)) = next(&mut bytes)? {
        let (1, ProtobufField::Bytes(mut entry)) = (field, content) else { return None };
        let (mut key, mut tree) = (String::new(), Tree::Null);
        while let Some(found) = next(&mut entry)? {
            match found {
                (1, ProtobufField::Bytes(text)) => key = std::str::from_utf8(text).ok()?.into(),
                (2, ProtobufField::Bytes(inner)) => tree = value(inner, depth.checked_sub(1)?)?,
                _ => return None,
            }
        }
        pairs.push((key, tree));
    }
    Some(Tree::Map(pairs))
}

/// `Value { oneof { null = 1; number = 2; string = 3; bool = 4; struct = 5; list = 6; } }`
fn value(mut bytes: &[u8], depth: usize) -> Option<Tree> {
    let mut tree = Tree::Null;
    while let Some(found) = next(&mut bytes)? {
        tree = match found {
            (1, ProtobufField::Number(_)) => Tree::Null,
            (2, ProtobufField::Double(number)) => from_double(number),
            (3, ProtobufField::Bytes(text)) => Tree::Text(std::str::from_utf8(text).ok()?.into()),
            (4, ProtobufField::Number(flag)) => Tree::Bool(flag != 0),
            (5, ProtobufField::Bytes(inner)) => structure(inner, depth)?,
            (6, ProtobufField::Bytes(inner)) => list(inner, depth)?,
            _ => return None,
        };
    }
    Some(tree)
}

/// `ListValue { repeated Value values = 1; }`
fn list(mut bytes: &[u8], depth: usize) -> Option<Tree> {
    let mut items = Vec::new();
    while let Some((field, content)) = next(&mut bytes)? {
        let (1, ProtobufField::Bytes(inner)) = (field, content) else { return None };
        items.push(value(inner, depth.checked_sub(1)?)?);
    }
    Some(Tree::List(items))
}

/// Converts whole numbers, since a `Struct` has floats only.
fn from_double(number: f64) -> Tree {
    match number.fract() == 0.0 && number.abs() < HUGE {
        true => Tree::Int(number as i128),
        false => Tree::Number(format!("{number:?}")),
    }
}

enum ProtobufField<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

/// The next field with its number. `None` if the bytes are not a message, `Some(None)` at their
/// end.
#[expect(clippy::option_option, reason = "the end of a message is not a mistake in it")]
fn next<'a>(bytes: &mut &'a [u8]) -> Option<Option<(u64, ProtobufField<'a>)>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let tag = varint(bytes)?;
    let field = match tag & 7 {
        0 => ProtobufField::Number(varint(bytes)?),
        1 => {
            let (number, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            ProtobufField::Double(f64::from_le_bytes(*number))
        }
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            let (content, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            ProtobufField::Bytes(content)
        }
        _ => return None,
    };
    Some(Some((tag >> 3, field)))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
