//! A set of callers refused recently, as bytes of one value. The keyed hash chooses the set, so that no client can
//! aim at another's.
//!
//! Rows of eight words: the caller's hash and its state; an empty row is all zero. In a full set a new caller takes
//! the row with the least to lose, and never that of a banned caller. A flood of addresses that are refused a few
//! times each displaces no caller that was refused more often.

use super::WORDS;
use crate::Ban;
use crate::time::Micros;

/// Callers expected in a set where as many are remembered as were configured. A set has room for twice as many,
/// since hashes do not fill sets evenly.
const EXPECTED: usize = 8;

/// Callers in a set at most.
const MOST: usize = 2 * EXPECTED;

/// Bytes of a row.
const ROW: usize = 8 * (1 + WORDS);

/// Bytes of a set.
pub const SIZE: usize = MOST * ROW;

/// The number of sets for this number of callers.
pub fn number(callers: usize) -> u64 {
    callers.div_ceil(EXPECTED).max(1) as u64
}

/// What happens to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// This number of refusals.
    Count(u64),
    /// A ban that ends then.
    Ban(Micros),
    /// Its ban is lifted, and its refusals are forgotten.
    Lift,
}

/// A caller after a change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changed {
    /// Whether a ban began with the refusals.
    pub begins: bool,
    /// When the caller's ban ends or ended; 0 if there was none.
    pub until: Micros,
}

/// Changes a caller's state. The change is dropped where every other caller in the set is banned. Bytes that are no
/// set count as an empty one.
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
        Change::Lift => Ban::lift(&mut state, now),
    }
    let row = set.as_chunks_mut().0.iter_mut().skip(place * (1 + WORDS));
    for (bytes, word) in row.zip([hash].iter().chain(&state)) {
        *bytes = word.to_le_bytes();
    }
    Changed { begins, until: Ban::until(&state) }
}

/// The end of a caller's ban; 0 if there was none.
pub fn until(set: &[u8], hash: u64) -> Micros {
    rows(set).find(|(other, _)| *other == hash).map_or(0, |(_, state)| Ban::until(&state))
}

/// Returns true if the set may still lead to a ban, or to a longer one.
pub fn counts(set: &[u8], ban: &Ban, now: Micros) -> bool {
    rows(set).any(|(_, state)| ban.weight(&state, now) > 0)
}

/// The callers of a set by their hashes, with their states; none if the bytes are no set.
fn rows(set: &[u8]) -> impl Iterator<Item = (u64, [u64; WORDS])> {
    let set = if set.len() == SIZE { set } else { &[] };
    set.as_chunks::<ROW>().0.iter().map(|row| {
        let mut words = row.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let hash = words.next().unwrap_or(0);
        (hash, std::array::from_fn(|_| words.next().unwrap_or(0)))
    })
}

/// The row with the least to lose, unless all callers are banned. Chance decides among equals, so that a caller that
/// keeps coming stays longer than callers that come once.
fn least(set: &[u8], ban: &Ban, hash: u64, now: Micros) -> Option<usize> {
    let weigh =
        |(place, (_, state)): (usize, (u64, [u64; WORDS]))| (ban.weight(&state, now), place);
    let from = hash as usize % MOST;
    let rows = rows(set).enumerate();
    let least =
        rows.map(weigh).min_by_key(|(weight, place)| (*weight, (place + MOST - from) % MOST));
    least.filter(|(weight, _)| *weight < u64::MAX).map(|(_, place)| place)
}
