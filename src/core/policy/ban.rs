//! Who is banned, and for how long.

use crate::time::Micros;

/// When a rule bans a caller, and for how long. All durations are in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ban {
    /// Refusals that lead to a ban, at least one.
    pub after: u64,
    /// The time in which they are counted.
    pub within: Micros,
    /// How long the first ban lasts.
    pub period: Micros,
    /// How long a ban lasts at most, no less than `period`.
    pub max: Micros,
    /// The time after the end of a ban in which the length of the next one halves.
    pub halve_after: Micros,
}
