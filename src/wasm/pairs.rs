//! Header maps as the ABI serialises them: a count, the lengths of all names and values, then the
//! names and values themselves, each with a NUL behind it; numbers are 32 bits, little endian.

use diana_policy::port::Values;

/// A map of these pairs.
pub(super) fn serialized(pairs: &[(&str, &str)]) -> Vec<u8> {
    let number = |number: usize| (number as u32).to_le_bytes();
    let bytes = pairs.iter().map(|(name, value)| name.len() + value.len() + 10).sum::<usize>();
    let mut map = Vec::with_capacity(4 + bytes);
    map.extend(number(pairs.len()));
    for (name, value) in pairs {
        map.extend(number(name.len()));
        map.extend(number(value.len()));
    }
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        map.extend_from_slice(text.as_bytes());
        map.push(0);
    }
    map
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
    let mut found = None;
    while let Some((start, length)) = candidates.next() {
        if stands_at(name, start, texts) {
            let value = texts.get(start + name.len() + 1..)?.get(..length)?;
            if found.replace(value).is_some() {
                return several(map, name);
            }
        }
    }
    candidates.are_within(texts).then(|| found.map_or(Values::None, Values::One))
}

/// The values of a header that occurs more than once.
#[inline(never)]
fn several<'a>(map: &'a [u8], name: &str) -> Option<Values<'a>> {
    let (mut candidates, texts) = Candidates::of(map, name.len())?;
    let mut values = Vec::new();
    while let Some((start, length)) = candidates.next() {
        if stands_at(name, start, texts) {
            values.push(texts.get(start + name.len() + 1..)?.get(..length)?);
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

/// Returns true if a name stands there, in any case.
#[inline(always)]
fn stands_at(name: &str, start: usize, texts: &[u8]) -> bool {
    let found = texts.get(start..).and_then(|texts| texts.get(..name.len()));
    let name = name.as_bytes();
    // Envoy hands most out in lower case, which the first comparison finds in a few instructions.
    found.is_some_and(|found| found == name || found.eq_ignore_ascii_case(name))
}
