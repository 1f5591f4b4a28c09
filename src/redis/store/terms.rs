//! What a rule that is counted in Redis is judged by: its numbers or those of one of its plans, and what follows from them.

use crate::part::Parts;
use crate::protocol::Numbers;
use diana_algorithm::{Can, Leasing};
use diana_store::CounterSpec;

/// What it judges by.
pub(super) struct Terms {
    pub(super) spec: CounterSpec,
    pub(super) numbers: Numbers,
    /// Whether requests may be held.
    pub(super) holds: bool,
    /// Whether permits are leased.
    pub(super) lends: bool,
    /// Permits beyond which a request is never admitted.
    pub(super) most: u64,
}

impl Terms {
    /// Those of a rule, or of one of its plans; nothing if Redis cannot count by its algorithm.
    pub(super) fn of(spec: &CounterSpec, parts: Parts) -> Option<Terms> {
        let numbers = match spec.daily {
            Some(shape) => Numbers::of_quota(&spec.quota, shape.of_part(parts.number().into())),
            None => Numbers::of_rule(spec.entry, &spec.quota)?,
        };
        let Can { holds, leasing, .. } = spec.can();
        Some(Terms {
            numbers,
            holds,
            // What is settled comes back under the receipt of its own charge, while a block would still count as out.
            lends: leasing != Leasing::Never && spec.daily.is_none() && !spec.settles,
            most: spec.algorithm.properties().most_at_once,
            spec: spec.clone(),
        })
    }
}
