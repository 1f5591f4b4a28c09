//! What a store of the gateway judges by: the numbers of a rule or of one of its plans, and what follows from them.

use super::{CounterSpec, gather};
use crate::time::Micros;

/// What it judges by.
pub(super) struct Terms {
    pub(super) spec: CounterSpec,
    /// Permits beyond which a request is never admitted.
    pub(super) most: u64,
    /// Ticks for which permits gather for a caller that comes often and was refused.
    pub(super) gather: Micros,
}

impl Terms {
    pub(super) fn of(spec: &CounterSpec) -> Terms {
        Terms { most: spec.algorithm.most_at_once(), gather: gather(spec), spec: spec.clone() }
    }
}
