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
    let wanted = Name::of(name.as_bytes());
    // Where the name begins; in 64 bits, so that no lengths overflow.
    let mut start = 0;
    for pair in lengths.as_chunks::<8>().0 {
        let both = u64::from_le_bytes(*pair);
        let (name_length, value_length) = (both & u64::from(u32::MAX), both >> 32);
        // Texts are looked at only where they may be the ones.
        if name_length == wanted.length {
            let from = texts.get(start as usize..)?;
            if wanted.is_beginning_of(from)? {
                let value = from.get(name_length as usize + 1..)?.get(..value_length as usize)?;
                values =
                    if values == Values::None { Values::One(value) } else { values.and(value) };
            }
        }
        start += name_length + value_length + 2;
    }
    (start <= texts.len() as u64).then_some(values)
}

/// A name that is looked for.
struct Name<'n> {
    text: &'n [u8],
    length: u64,
    /// Its first and its last eight bytes, which are all of most names, if it has so many. Comparing byte by byte would
    /// take half of all the time.
    ends: Option<[u64; 2]>,
}

impl Name<'_> {
    fn of(text: &[u8]) -> Name<'_> {
        Name { text, length: text.len() as u64, ends: ends(text) }
    }

    /// Whether these bytes begin with it; nothing if they are fewer.
    #[inline(always)]
    fn is_beginning_of(&self, bytes: &[u8]) -> Option<bool> {
        let found = bytes.get(..self.text.len())?;
        if let (Some(wanted), Some(ends)) = (self.ends, ends(found)) {
            if wanted == ends && self.length <= 16 {
                return Some(true);
            }
            /// The bit that tells small letters from capitals.
            const CASE: u64 = 0x2020_2020_2020_2020;
            if wanted.iter().zip(&ends).any(|(wanted, end)| (wanted ^ end) & !CASE != 0) {
                return Some(false);
            }
        }
        Some(found.eq_ignore_ascii_case(self.text))
    }
}

#[inline(always)]
fn ends(text: &[u8]) -> Option<[u64; 2]> {
    let (first, last) = (text.first_chunk()?, text.last_chunk()?);
    Some([u64::from_le_bytes(*first), u64::from_le_bytes(*last)])
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number) as usize, rest))
}
