//! Who is banned by a rule, known as widely as the rule counts.

pub(super) mod far;
pub(super) mod local;
pub(super) mod set;
pub(super) mod shared;

use crate::key::Key;
use crate::redis::protocol::{Charge, Opinion};
use crate::time::Micros;

/// What is needed for a set beside the set itself.
const VALUE: usize = 192;

/// The bans of one rule.
pub trait Bans {
    /// Ticks for which a caller is still banned; 0 if it is not.
    fn left(&mut self, key: Key, now: Micros) -> Micros;

    /// The rule refused it.
    fn refused(&mut self, key: Key, now: Micros);

    /// Does what has to be done from time to time. Whether there is more to do soon, even if no
    /// request comes.
    fn tidy(&mut self, now: Micros) -> bool;

    /// What the fleet is asked about a caller, together with the rule.
    fn question(&self, _key: Key) -> Option<Charge> {
        None
    }

    /// Takes what the fleet says. Ticks for which it is still banned.
    fn told(&mut self, _key: Key, _opinion: &Opinion, _now: Micros) -> Micros {
        0
    }

    /// Bans that began here since this was last asked.
    fn begun(&mut self) -> u64;
}

/// Bytes that the bans of so many callers take where they are kept.
pub(super) fn bytes(callers: usize) -> u64 {
    set::number(callers) * (VALUE + set::SIZE * 8) as u64
}
