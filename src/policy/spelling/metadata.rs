//! Values of dynamic metadata, including claims, as the host serializes them.

/// Returns true for an empty text, list or mapping, which identifies no caller.
#[must_use]
pub fn is_empty(value: &[u8]) -> bool {
    matches!(value, [] | [0, 0, 0, 0])
}

/// Returns true for a mapping, and a list that contains one: they cannot be read, since Envoy
/// serializes mappings in an order that varies from request to request. A mapping in which all
/// values are empty texts has the same encoding as a list of its keys, and counts as one.
#[must_use]
pub fn has_mapping(value: &[u8]) -> bool {
    // A list of pending values, since recursion on nested values could overflow the stack.
    let (mut next, mut nested) = (Some(value), Vec::new());
    while let Some(value) = next {
        for (key, value) in pairs(value).into_iter().flatten() {
            if !value.is_empty() {
                return true;
            }
            nested.push(key);
        }
        next = nested.pop();
    }
    false
}

/// The items of a list without mappings. `None` for any other value.
#[must_use]
pub fn items(value: &[u8]) -> Option<Vec<&[u8]>> {
    let pairs = pairs(value)?;
    let is_list = pairs.iter().all(|(_, value)| value.is_empty());
    is_list.then(|| pairs.into_iter().map(|(item, _)| item).collect())
}

/// Reads the pairs of a mapping, or the items of a list, each paired with an empty text. `None` for
/// any other value. The encoding is the number of pairs, the two lengths of each pair, and the
/// texts, each terminated by NUL.
fn pairs(value: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let (&count, rest) = value.split_first_chunk()?;
    let count = usize::try_from(u32::from_le_bytes(count)).ok()?;
    // A pair takes ten bytes or more. Nearly all text ends here.
    if count > rest.len() / 10 {
        return None;
    }
    let (lengths, mut texts) = rest.split_at_checked(count * 8)?;
    let mut text = |length: [u8; 4]| {
        let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
        let (text, rest) = texts.split_at_checked(length)?;
        texts = rest.strip_prefix(b"\0")?;
        Some(text)
    };
    let (lengths, _) = lengths.as_chunks::<4>();
    let (lengths, _) = lengths.as_chunks::<2>();
    let pair = |[key, value]: &[[u8; 4]; 2]| Some((text(*key)?, text(*value)?));
    let pairs = lengths.iter().map(pair).collect::<Option<Vec<_>>>()?;
    texts.is_empty().then_some(pairs)
}
