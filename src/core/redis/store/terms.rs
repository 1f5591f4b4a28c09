//! What a rule that is counted in Redis is judged by: its numbers or those of one of its plans, and what follows from them.

use crate::algorithm::{Can, Leasing};
use crate::policy::Quota;
use crate::redis::part::Parts;
use crate::redis::protocol::Numbers;
use crate::store::CounterSpec;
use crate::store::shared::gather;
use crate::time::Micros;

/// What it judges by.
pub(super) struct Terms {
    pub(super) spec: CounterSpec,
    pub(super) numbers: Numbers,
    /// Ticks for which permits gather for a caller that comes often and was refused.
    pub(super) gather: Micros,
    /// How long before the end of a block, or of a refusal, the next block is asked for.
    pub(super) ahead: Micros,
    /// How long a caller is told to wait that is refused while more gathers and is asked for.
    pub(super) patience: Micros,
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
        let codec = spec.entry.codec(&spec.quota);
        Some(Terms {
            numbers,
            gather: gather(spec),
            ahead: codec.map_or(0, |codec| (codec.ahead)(&spec.quota)),
            patience: refill(&spec.quota).max(gather(spec)),
            holds,
            // What is settled comes back under the receipt of its own charge, while a block would still count as out.
            lends: leasing != Leasing::Never && spec.daily.is_none() && !spec.settles,
            most: spec.algorithm.most_at_once(),
            spec: spec.clone(),
        })
    }
}

/// The time in which the permits of a request come back of which a unit brings `rpu` one by one.
fn refill(quota: &Quota) -> Micros {
    quota.period().saturating_mul(quota.cost).div_ceil(quota.rpu.max(1))
}
