//! The parameters of a rule that Redis counts, for the rule or one of its plans.

use crate::protocol::Numbers;
use crate::shard::Shards;
use diana_algorithm::{Capabilities, Leasing};
use diana_store::CounterSpec;

/// The parameters of a rule, or of one of its plans.
pub(super) struct Parameters {
    pub(super) spec: CounterSpec,
    pub(super) numbers: Numbers,
    /// Whether requests may be held.
    pub(super) holds: bool,
    /// Whether permits are leased.
    pub(super) leases: bool,
    /// The maximum cost of an admitted request.
    pub(super) most: u64,
}

impl Parameters {
    /// The parameters of a rule, or of one of its plans. `None` if the Redis script does not
    /// support its algorithm.
    pub(super) fn of(spec: &CounterSpec, shards: Shards) -> Option<Parameters> {
        let numbers = match spec.daily {
            Some(shape) => Numbers::of_quota(&spec.quota, shape.of_part(shards.number().into())),
            None => Numbers::of_rule(spec.entry, &spec.quota)?,
        };
        let Capabilities { holds, leasing, .. } = spec.capabilities();
        Some(Parameters {
            numbers,
            holds,
            // A settlement returns permits under the receipt of its charge, but a block would still
            // count as outstanding.
            leases: leasing != Leasing::Never && spec.daily.is_none() && !spec.settles,
            most: spec.algorithm.properties().most_at_once,
            spec: spec.clone(),
        })
    }
}
