//! Header maps as the ABI serialises them: a count, the lengths of all names and values, then the
//! names and values themselves, each with a NUL behind it; numbers are 32 bits, little endian.

use diana_core::port::Values;

/// The serialised form of `headers`.
pub(super) fn serialise(headers: &[(&str, &str)]) -> Vec<u8> {
    let size = |(name, value): &(&str, &str)| name.len() + value.len() + 10;
    let mut bytes = Vec::with_capacity(4 + headers.iter().map(size).sum::<usize>());
    let mut number = |length: usize| bytes.extend_from_slice(&(length as u32).to_le_bytes());
    number(headers.len());
    for (name, value) in headers {
        number(name.len());
        number(value.len());
    }
    for (name, value) in headers {
        for text in [name, value] {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        }
    }
    bytes
}

/// The values of one header in a serialised map; nothing if the bytes are not such a map.
// Nearly every request asks for one; responses, which hardly ever do, would make it a call of its own.
#[inline(always)]
pub(super) fn values<'a>(map: &'a [u8], name: &str) -> Option<Values<'a>> {
    let mut values = Values::None;
    // So the host writes a map without pairs.
    if map.is_empty() {
        return Some(values);
    }
    let (count, rest) = number(map)?;
    let (lengths, texts) = rest.split_at_checked(count.checked_mul(8)?)?;
    let text = |start: u64, end: u64| texts.get(start as usize..end as usize);
    // Where the name begins; in 64 bits, so that no lengths overflow.
    let mut start = 0;
    for pair in lengths.as_chunks::<8>().0 {
        let both = u64::from_le_bytes(*pair);
        let name_end = start + (both & u64::from(u32::MAX));
        let value_end = name_end + 1 + (both >> 32);
        // Texts are looked at only where they may be the ones.
        if name_end - start == name.len() as u64 {
            let key = text(start, name_end)?;
            // Mostly it is in lower case.
            if key == name.as_bytes() || key.eq_ignore_ascii_case(name.as_bytes()) {
                values = values.and(text(name_end + 1, value_end)?);
            }
        }
        start = value_end + 1;
    }
    (start <= texts.len() as u64).then_some(values)
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number) as usize, rest))
}
