//! Header maps as the ABI serialises them: a count, the lengths of all names and values, then the
//! names and values themselves, each with a NUL behind it; numbers are 32 bits, little endian.

/// The serialised form of `headers`.
pub(super) fn serialise<'a>(headers: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<u8> {
    let mut bytes = Vec::new();
    let number = |length: usize| (length as u32).to_le_bytes();
    bytes.extend(number(headers.clone().count()));
    for (name, value) in headers.clone() {
        bytes.extend(number(name.len()));
        bytes.extend(number(value.len()));
    }
    for text in headers.flat_map(|(name, value)| [name, value]) {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// The values of one header in a serialised map; nothing if the bytes are not such a map.
pub(super) fn values(bytes: &[u8], name: &str) -> Option<Vec<Vec<u8>>> {
    let (count, rest) = number(bytes)?;
    let (mut lengths, mut texts) = rest.split_at_checked(count.checked_mul(8)?)?;
    let mut values = Vec::new();
    while let Some((name_length, rest)) = number(lengths) {
        let (value_length, rest) = number(rest)?;
        lengths = rest;
        let key = text(&mut texts, name_length)?;
        let value = text(&mut texts, value_length)?;
        if key.eq_ignore_ascii_case(name.as_bytes()) {
            values.push(value.to_vec());
        }
    }
    Some(values)
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number) as usize, rest))
}

fn text<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest.split_first()?.1;
    Some(text)
}
