//! Header maps as the ABI serialises them: a count, the lengths of all names and values, then the
//! names and values themselves, each with a NUL behind it; numbers are 32 bits, little endian.

use crate::port::Values;

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
pub(super) fn values<'a>(map: &'a [u8], name: &str) -> Option<Values<'a>> {
    let mut values = Values::None;
    for pair in Pairs::of(map)? {
        let (key, value) = pair?;
        if key.eq_ignore_ascii_case(name.as_bytes()) {
            values = values.and(value);
        }
    }
    Some(values)
}

/// The names and values in a serialised map. Nothing in place of a pair says that the bytes end
/// before it does.
struct Pairs<'a> {
    lengths: &'a [u8],
    texts: &'a [u8],
}

impl<'a> Pairs<'a> {
    fn of(map: &'a [u8]) -> Option<Pairs<'a>> {
        // So the host writes a map without pairs.
        if map.is_empty() {
            return Some(Pairs { lengths: &[], texts: &[] });
        }
        let (count, rest) = number(map)?;
        let (lengths, texts) = rest.split_at_checked(count.checked_mul(8)?)?;
        Some(Pairs { lengths, texts })
    }

    fn pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (name, rest) = number(self.lengths)?;
        let (value, rest) = number(rest)?;
        self.lengths = rest;
        Some((self.text(name)?, self.text(value)?))
    }

    fn text(&mut self, length: usize) -> Option<&'a [u8]> {
        let (text, rest) = self.texts.split_at_checked(length)?;
        self.texts = rest.split_first()?.1;
        Some(text)
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Option<(&'a [u8], &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.lengths.is_empty() { None } else { Some(self.pair()) }
    }
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number) as usize, rest))
}
