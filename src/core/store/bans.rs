//! Who is banned by a rule, known as widely as the rule counts.

pub(super) mod local;
pub(super) mod set;
pub(crate) mod shared;

use crate::key::Key;
use crate::time::Micros;

/// What the host needs for a value beside the value itself.
const HOST: usize = 192;

/// The bans of one rule.
pub trait Bans {
    /// Ticks for which a caller is still banned; 0 if it is not.
    fn left(&mut self, key: Key, now: Micros) -> Micros;

    /// The rule refused it.
    fn refused(&mut self, key: Key, now: Micros);

    /// Bans a caller for so many ticks, or lifts its ban if there are none. Whether there was room for that.
    fn set(&mut self, _key: Key, _length: Micros, _now: Micros) -> bool {
        false
    }

    /// Does what has to be done from time to time.
    fn tidy(&mut self, now: Micros);

    /// Bans that began here since this was last asked.
    fn begun(&mut self) -> u64;
}

/// Bytes that the bans of so many callers take where they are kept.
pub(super) fn bytes(callers: usize, is_local: bool) -> u64 {
    let beside = if is_local { size_of::<Vec<u64>>() } else { HOST };
    set::number(callers) * (beside + set::SIZE * 8) as u64
}
