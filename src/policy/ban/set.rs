//! A set of callers that were refused recently, as the bytes of one value. The keyed hash selects
//! the set, so that clients cannot target the set of another caller.
//!
//! A set has rows of eight words: the hash of the caller and its state. An empty row is all zero.
//! In a full set a new caller replaces the row of least weight, and never a banned caller. A flood
//! of addresses with a few refusals each displaces no caller with more refusals.

use super::WORDS;
use crate::Ban;
use crate::time::Micros;

/// Expected callers in a set when the configured number of callers is in use. A set has room for
/// twice as many, since hashes do not fill sets evenly.
const EXPECTED: usize = 8;

/// Maximum number of callers in a set.
const MOST: usize = 2 * EXPECTED;

/// Bytes of a row.
const ROW: usize = 8 * (1 + WORDS);

/// Bytes of a set.
pub const SIZE: usize = MOST * ROW;

/// The number of sets for this number of callers.
pub fn number(callers: usize) -> u64 {
    callers.div_ceil(EXPECTED).max(1) as u64
}

/// A change of a caller's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Counts this number of refusals.
    Count(u64),
    /// Begins a ban that ends at this instant.
    Ban(Micros),
    /// Lifts the ban and clears the refusals.
    Reset,
}

/// A caller after a change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changed {
    /// Whether these refusals began a ban.
    pub begins: bool,
    /// The end of the caller's ban. 0 if there was none.
    pub until: Micros,
}

/// Changes a caller's state. The change is dropped if every other caller in the set is banned.
/// Bytes of the wrong length count as an empty set.
pub fn change(set: &mut Vec<u8>, ban: &Ban, hash: u64, now: Micros, change: Change) -> Changed {
    if set.len() != SIZE {
        set.clear();
        set.resize(SIZE, 0);
    }
    let own = rows(set).position(|(other, _)| other == hash);
    let Some(place) = own.or_else(|| least(set, ban, hash, now)) else {
        return Changed::default();
    };
    let found = own.and_then(|place| rows(set).nth(place));
    let mut state = found.map_or([0; WORDS], |(_, state)| state);
    let mut begins = false;
    match change {
        Change::Count(refusals) => begins = ban.count(&mut state, now, refusals),
        Change::Ban(until) => Ban::begin(&mut state, until),
        Change::Reset => Ban::reset(&mut state, now),
    }
    let row = set.as_chunks_mut().0.iter_mut().skip(place * (1 + WORDS));
    for (bytes, word) in row.zip([hash].iter().chain(&state)) {
        *bytes = word.to_le_bytes();
    }
    Changed { begins, until: Ban::until(&state) }
}

/// The end of a caller's ban. 0 if there was none.
pub fn until(set: &[u8], hash: u64) -> Micros {
    rows(set).find(|(other, _)| *other == hash).map_or(0, |(_, state)| Ban::until(&state))
}

/// Returns true if the set may still lead to a ban, or to a longer one.
pub fn counts(set: &[u8], ban: &Ban, now: Micros) -> bool {
    rows(set).any(|(_, state)| ban.weight(&state, now) > 0)
}

/// The callers of a set: their hashes and states. None if the bytes are not a set.
fn rows(set: &[u8]) -> impl Iterator<Item = (u64, [u64; WORDS])> {
    let set = if set.len() == SIZE { set } else { &[] };
    set.as_chunks::<ROW>().0.iter().map(|row| {
        let mut words = row.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let hash = words.next().unwrap_or(0);
        (hash, std::array::from_fn(|_| words.next().unwrap_or(0)))
    })
}

/// The row of least weight, unless all callers are banned. The hash chooses among equals, so that a
/// caller with repeated refusals stays longer than callers with one.
fn least(set: &[u8], ban: &Ban, hash: u64, now: Micros) -> Option<usize> {
    let weigh =
        |(place, (_, state)): (usize, (u64, [u64; WORDS]))| (ban.weight(&state, now), place);
    let from = hash as usize % MOST;
    let rows = rows(set).enumerate();
    let least =
        rows.map(weigh).min_by_key(|(weight, place)| (*weight, (place + MOST - from) % MOST));
    least.filter(|(weight, _)| *weight < u64::MAX).map(|(_, place)| place)
}
