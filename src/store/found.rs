//! Classifies a value in shared data that may be unused.

use diana_policy::time::Micros;

/// The content of a value in shared data.
pub(super) enum Found {
    /// Empty.
    Empty,
    /// In use until this instant at most; zero if that is unknown.
    InUse(Micros),
    /// Expired. These bytes replace it.
    Over(Vec<u8>),
}
