//! What a value in shared data holds that may be in nobody's use any more.

use diana_policy::time::Micros;

/// What a value is found to be.
pub(super) enum Found {
    /// As empty as it can be.
    Empty,
    /// Something in it counts, until then at most; zero if that is not known.
    InUse(Micros),
    /// All of it has run out; this is to be written in its place.
    Over(Vec<u8>),
}
