//! Some callers who were refused lately: a fixed number at most, chosen by the keyed hash, so that
//! nobody can aim at another's set.
//!
//! Rows of eight words, the hash and the state; all zero is a row of nobody. When a set is full, a
//! newcomer takes the place of the one with the least to lose, and never that of one who is banned: many
//! addresses that are refused a few times each drop nobody who was refused more often than they.

use super::super::found::Found;
use crate::ban::WORDS;
use crate::policy::Ban;
use crate::time::Micros;

/// Callers that are expected in a set where as many are remembered as room was asked for; there is
/// room for twice as many, since hashes do not fill sets evenly.
const EXPECTED: usize = 8;

/// Callers in a set at most.
const MOST: usize = 2 * EXPECTED;

/// Words of a caller.
const ROW: usize = 1 + WORDS;

/// Words of a set.
pub(super) const SIZE: usize = MOST * ROW;

/// Sets for so many callers.
pub(in crate::store) fn number(callers: usize) -> u64 {
    callers.div_ceil(EXPECTED).max(1) as u64
}

/// What became of refusals that were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counted {
    /// Whether a ban began with them.
    pub(super) begins: bool,
    /// When the caller's ban ends or ended; 0 if there was none.
    pub(super) until: Micros,
    /// Its recent refusals.
    pub(super) recent: u64,
}

/// The end of a caller's ban; 0 if there was none.
pub(super) fn until(set: &[u64], hash: u64) -> Micros {
    let mut rows = set.chunks_exact(ROW);
    let row = rows.find(|row| row.first() == Some(&hash));
    row.and_then(|row| row.get(1)).copied().unwrap_or(0)
}

/// What happens to a caller.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    /// So many refusals.
    Count(u64),
    /// A ban that ends then.
    Ban(Micros),
    /// Nothing is known of it any more.
    Lift,
}

/// Changes a caller's state. Where everybody else in the set is banned the change is forgotten.
pub(super) fn change(
    set: &mut [u64],
    ban: &Ban,
    hash: u64,
    now: Micros,
    change: Change,
) -> Counted {
    let Some(state) = state(set, ban, hash, now) else { return Counted::default() };
    let begins = match change {
        Change::Count(refusals) => ban.count(state, now, refusals),
        Change::Ban(until) => {
            Ban::begin(state, until);
            false
        }
        Change::Lift => {
            Ban::lift(state, now);
            false
        }
    };
    Counted { begins, until: Ban::until(state), recent: ban.recent(state, now) }
}

/// What a set is found to be once its rule has ended.
pub(in crate::store) fn look(bytes: &[u8], ban: &Ban, now: Micros) -> Found {
    // What is no set was not written by the rule, or has been emptied.
    if bytes.len() != SIZE * 8 {
        return Found::Empty;
    }
    let set: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let counts = |row: &[u64]| ban.weight(row.get(1..).unwrap_or_default(), now) > 0;
    if set.chunks_exact(ROW).any(counts) { Found::InUse(0) } else { Found::Over(Vec::new()) }
}

/// The state of a caller, who gets a row if it has none.
fn state<'s>(set: &'s mut [u64], ban: &Ban, hash: u64, now: Micros) -> Option<&'s mut [u64]> {
    let found = set.chunks_exact(ROW).position(|row| row.first() == Some(&hash));
    let place = match found {
        Some(place) => place,
        None => least(set, ban, hash, now)?,
    };
    let row = set.chunks_exact_mut(ROW).nth(place)?;
    if found.is_none() {
        row.fill(0);
    }
    let (first, state) = row.split_first_mut()?;
    *first = hash;
    Some(state)
}

/// Who has the least to lose, if anybody may. Among equals chance decides, so that one who keeps coming
/// stays longer than those who come once.
fn least(set: &[u64], ban: &Ban, hash: u64, now: Micros) -> Option<usize> {
    let (mut least, mut found) = (u64::MAX, None);
    for n in 0..MOST {
        let place = (n + hash as usize) % MOST;
        let state = set.get(place * ROW + 1..(place + 1) * ROW)?;
        let weight = ban.weight(state, now);
        if weight < least {
            (least, found) = (weight, Some(place));
        }
    }
    found
}
