//! The encoding of header maps in the ABI: a count, the lengths of all names and values, then the
//! names and values, each terminated by NUL. Numbers are 32 bits, little-endian.

use diana_policy::headers::Headers;
use diana_policy::port::Values;

/// Encodes headers as a map.
pub(super) fn serialized(headers: &Headers) -> Vec<u8> {
    let (lengths, texts) = headers.parts();
    let mut map = Vec::with_capacity(4 + 8 * lengths.len() + texts.len());
    map.extend((lengths.len() as u32).to_le_bytes());
    map.extend_from_slice(lengths.as_flattened().as_flattened());
    map.extend_from_slice(texts.as_bytes());
    map
}

/// The values of one header in an encoded map. `None` if the bytes are not a map.
// Inlined, since nearly every request reads a header. Responses rarely do, and their use would
// prevent inlining.
#[inline(always)]
pub(super) fn values<'a>(map: &'a [u8], name: &str) -> Option<Values<'a>> {
    // The host encodes a map without pairs as no bytes.
    if map.is_empty() {
        return Some(Values::None);
    }
    let (mut candidates, texts) = Candidates::of(map, name.len())?;
    let mut found = None;
    while let Some((start, length)) = candidates.next() {
        if is_at(name, start, texts) {
            let value = texts.get(start + name.len() + 1..)?.get(..length)?;
            if found.replace(value).is_some() {
                return repeated_values(map, name);
            }
        }
    }
    candidates.are_within(texts).then(|| found.map_or(Values::None, Values::One))
}

/// The values of a repeated header.
#[inline(never)]
fn repeated_values<'a>(map: &'a [u8], name: &str) -> Option<Values<'a>> {
    let (mut candidates, texts) = Candidates::of(map, name.len())?;
    let mut values = Vec::new();
    while let Some((start, length)) = candidates.next() {
        if is_at(name, start, texts) {
            values.push(texts.get(start + name.len() + 1..)?.get(..length)?);
        }
    }
    candidates.are_within(texts).then_some(Values::Many(values))
}

/// The pairs of a map with names of the right length.
struct Candidates<'a> {
    lengths: &'a [[u8; 8]],
    wanted: u32,
    /// The number of pairs so far.
    passed: usize,
    /// The sum of the lengths of their names, and of their values, in 32 bits each as in the map,
    /// so that one addition updates both.
    before: u64,
}

impl<'a> Candidates<'a> {
    /// The pairs of a map, and its names and values. `None` if the bytes are not a map.
    #[inline(always)]
    fn of(map: &'a [u8], wanted: usize) -> Option<(Candidates<'a>, &'a [u8])> {
        let (count, rest) = map.split_first_chunk()?;
        let count = u32::from_le_bytes(*count) as usize;
        let (lengths, texts) = rest.split_at_checked(count.checked_mul(8)?)?;
        let (lengths, wanted) = (lengths.as_chunks().0, wanted as u32);
        Some((Candidates { lengths, wanted, passed: 0, before: 0 }, texts))
    }

    /// The start of the next name, and the length of its value.
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

    /// The start of the next pair. In 64 bits, so that it cannot overflow.
    #[inline(always)]
    fn start(&self) -> u64 {
        (self.before & u64::from(u32::MAX)) + (self.before >> 32) + 2 * self.passed as u64
    }

    /// Returns true if all pairs are within these texts. Valid after the last pair.
    #[inline(always)]
    fn are_within(&self, texts: &[u8]) -> bool {
        self.start() <= texts.len() as u64
    }
}

/// Returns true if the name is at this position, in any case.
#[inline(always)]
fn is_at(name: &str, start: usize, texts: &[u8]) -> bool {
    let found = texts.get(start..).and_then(|texts| texts.get(..name.len()));
    let name = name.as_bytes();
    // Envoy stores most names in lower case, so the cheap comparison usually succeeds.
    found.is_some_and(|found| found == name || found.eq_ignore_ascii_case(name))
}
