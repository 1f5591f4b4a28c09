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
    // So the host writes a map without pairs.
    if map.is_empty() {
        return Some(Values::None);
    }
    let (mut candidates, texts) = Candidates::of(map, name.len())?;
    let (name, mut found) = (Name::of(name.as_bytes()), None);
    while let Some((start, length)) = candidates.next() {
        if name.stands_at(start, texts) {
            let value = texts.get(start + name.text.len() + 1..)?.get(..length)?;
            if found.replace(value).is_some() {
                return several(map, &name);
            }
        }
    }
    candidates.are_within(texts).then(|| found.map_or(Values::None, Values::One))
}

/// The values of a header that occurs more than once.
#[inline(never)]
fn several<'a>(map: &'a [u8], name: &Name<'_>) -> Option<Values<'a>> {
    let (mut candidates, texts) = Candidates::of(map, name.text.len())?;
    let mut values = Vec::new();
    while let Some((start, length)) = candidates.next() {
        if name.stands_at(start, texts) {
            values.push(texts.get(start + name.text.len() + 1..)?.get(..length)?);
        }
    }
    candidates.are_within(texts).then_some(Values::Many(values))
}

/// The pairs of a map whose names are as long as one that is looked for.
struct Candidates<'a> {
    lengths: &'a [[u8; 8]],
    wanted: u32,
    /// How many pairs were looked at.
    passed: usize,
    /// The lengths of all their names and of all their values, each in 32 bits as in the map: so they are added at once.
    before: u64,
}

impl<'a> Candidates<'a> {
    /// Those of a map, and its names and values; nothing if the bytes are no map.
    #[inline(always)]
    fn of(map: &'a [u8], wanted: usize) -> Option<(Candidates<'a>, &'a [u8])> {
        let (count, rest) = map.split_first_chunk()?;
        let count = u32::from_le_bytes(*count) as usize;
        let (lengths, texts) = rest.split_at_checked(count.checked_mul(8)?)?;
        let (lengths, wanted) = (lengths.as_chunks().0, wanted as u32);
        Some((Candidates { lengths, wanted, passed: 0, before: 0 }, texts))
    }

    /// Where the next name begins, and the length of its value.
    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        while let Some(pair) = self.lengths.get(self.passed) {
            let (both, start) = (u64::from_le_bytes(*pair), self.start());
            self.before = self.before.wrapping_add(both);
            self.passed += 1;
            if both as u32 == self.wanted {
                return Some((start as usize, (both >> 32) as usize));
            }
        }
        None
    }

    /// Where the pair begins that is looked at next; in 64 bits, so that no lengths overflow.
    #[inline(always)]
    fn start(&self) -> u64 {
        (self.before & u64::from(u32::MAX)) + (self.before >> 32) + 2 * self.passed as u64
    }

    /// Whether all pairs, once they were looked at, lie within these texts.
    #[inline(always)]
    fn are_within(&self, texts: &[u8]) -> bool {
        self.start() <= texts.len() as u64
    }
}

/// A name that is looked for.
struct Name<'n> {
    text: &'n [u8],
    /// Its first and its last eight bytes, which are all of most names, if it has so many. Comparing byte by byte would
    /// take half of all the time.
    ends: Option<[u64; 2]>,
}

impl Name<'_> {
    #[inline(always)]
    fn of(text: &[u8]) -> Name<'_> {
        Name { text, ends: ends(text) }
    }

    /// Whether it stands there.
    #[inline(never)]
    fn stands_at(&self, start: usize, texts: &[u8]) -> bool {
        let length = self.text.len();
        let Some(found) = texts.get(start..).and_then(|texts| texts.get(..length)) else {
            return false;
        };
        if let (Some(wanted), Some(ends)) = (self.ends, ends(found)) {
            if wanted == ends && length <= 16 {
                return true;
            }
            /// The bit that tells small letters from capitals.
            const CASE: u64 = 0x2020_2020_2020_2020;
            if wanted.iter().zip(&ends).any(|(wanted, end)| (wanted ^ end) & !CASE != 0) {
                return false;
            }
        }
        found.eq_ignore_ascii_case(self.text)
    }
}

#[inline(always)]
fn ends(text: &[u8]) -> Option<[u64; 2]> {
    let (first, last) = (text.first_chunk()?, text.last_chunk()?);
    Some([u64::from_le_bytes(*first), u64::from_le_bytes(*last)])
}
