//! Header maps as the ABI serialises them: a count, the lengths of all names and values, then the
//! names and values themselves, each with a NUL behind it; numbers are 32 bits, little endian.

use diana_core::port::Values;
use diana_text::Text;

/// A map that is written pair by pair.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    count: u32,
    /// The count and the lengths, and in the end the whole map.
    bytes: Vec<u8>,
    texts: Text,
}

impl Pairs {
    /// No map yet, and no memory for one.
    pub(super) const NONE: Pairs = Pairs { count: 0, bytes: Vec::new(), texts: Text::NONE };

    /// The finished map of these pairs.
    pub(super) fn of<'h>(pairs: impl Iterator<Item = (&'h str, &'h str)>) -> Pairs {
        let mut map = Pairs::NONE;
        map.clear();
        pairs.for_each(|(name, value)| map.add(name, value));
        map.finish();
        map
    }

    /// Begins anew, in the same memory.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.bytes.clear();
        self.bytes.extend_from_slice(&[0; 4]);
        self.texts.clear();
    }

    pub(super) fn add(&mut self, name: &str, value: &str) {
        self.write(name, |text| text.push(value));
    }

    /// Adds a pair whose value is written.
    pub(super) fn write(&mut self, name: &str, write: impl FnOnce(&mut Text)) {
        self.count += 1;
        self.texts.push(name);
        self.texts.push("\0");
        let start = self.texts.length();
        write(&mut self.texts);
        let length = self.texts.length() - start;
        self.texts.push("\0");
        let both = (length as u64) << 32 | name.len() as u64;
        self.bytes.extend_from_slice(&both.to_le_bytes());
    }

    /// Nothing can be added to the map any more.
    pub(super) fn finish(&mut self) {
        if let Some(count) = self.bytes.first_chunk_mut() {
            *count = self.count.to_le_bytes();
        }
        self.bytes.extend_from_slice(self.texts.as_bytes());
    }

    /// The map, once it is finished.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory that it takes.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.texts.capacity()
    }
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
            if key.eq_ignore_ascii_case(name.as_bytes()) {
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
