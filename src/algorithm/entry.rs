//! Properties of an algorithm for the rest of the program.

use std::sync::Arc;

use super::{Algorithm, CountsUsed, counted};
use diana_policy::{Quota, Settling};

/// The format of a key's value.
#[derive(Debug)]
pub enum Form {
    /// A whole number.
    Number,
    /// A duration such as `1500ms`, stored in ticks.
    Duration,
}

/// An optional key of a rule that an algorithm supports.
#[derive(Debug)]
pub struct Setting {
    /// The name in the configuration, equal in all algorithms with this key.
    pub name: &'static str,
    /// Its field in a quota.
    pub field: fn(&mut Quota) -> &mut Option<u64>,
    /// The format of its value.
    pub form: Form,
    /// The smallest allowed value.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
    /// Whether the Redis script supports it, so that it is allowed with `scope: global`.
    pub global: bool,
    /// Whether plans of a rule may set it.
    pub by_plan: bool,
}

/// An invalid combination of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The key to report.
    pub key: &'static str,
    /// The other keys involved, set or absent.
    pub with: &'static [&'static str],
    /// The problem and the allowed values, as the rest of a sentence.
    pub message: String,
}

impl Conflict {
    /// A key that has no effect because the rule refuses all requests.
    pub(super) fn without_effect(key: &'static str) -> Conflict {
        let message = "has no effect with `rpu: 0`, which refuses all requests; remove it".into();
        Conflict { key, with: &["rpu"], message }
    }

    /// A request whose cost exceeds the permits of a unit.
    pub(super) fn cost_above_rpu(quota: &Quota) -> Conflict {
        let message = format!(
            "found `{}`, which never fits; allowed: at most `rpu`, {}",
            quota.cost, quota.rpu
        );
        Conflict { key: "cost", with: &["rpu"], message }
    }
}

/// An algorithm, or every invalid combination of the quota's numbers.
pub type Built<A> = Result<Arc<A>, Vec<Conflict>>;

/// Any algorithm, or every invalid combination.
pub type BuiltAlgorithm = Built<dyn Algorithm>;

/// Builds an algorithm that counts used permits separately from reserved ones.
pub type BuildCountsUsed = fn(&Quota) -> Built<dyn CountsUsed>;

/// How permits may be leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leasing {
    /// Not at all: every request has a separate turn.
    Never,
    /// Until the end of the window or slice in which they were charged. Then all usage expires.
    Window,
    /// While they are held back ([`Algorithm::hold_back`]). Permits are regained one by one.
    Bucket,
}

/// The capabilities of an algorithm with a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether a held request has a position in a queue, which is freed if its client leaves.
    pub queues: bool,
    /// Whether a request may have to wait for its turn.
    pub holds: bool,
    /// How permits may be leased.
    pub leasing: Leasing,
    /// Whether the cost of a request may be settled at its end.
    pub settles: bool,
}

impl Capabilities {
    /// The capabilities of windows.
    pub(super) const WINDOW: Capabilities =
        Capabilities { queues: false, holds: false, leasing: Leasing::Window, settles: true };
}

/// The part of the Redis script in `redis/protocol/script` for an algorithm.
#[derive(Debug)]
pub struct Codec {
    /// Its name in the script.
    pub kind: &'static str,
    /// The parameters of a quota for the script, besides `rpu` and the unit.
    pub numbers: fn(&Quota) -> [i64; 3],
}

impl Codec {
    /// Stands for an absent value.
    pub(super) const NONE: i64 = -1;

    /// `number`, capped at the largest value.
    #[must_use]
    pub fn signed(number: u64) -> i64 {
        i64::try_from(number).unwrap_or(i64::MAX)
    }
}

/// The registry's entry of an algorithm.
#[derive(Debug)]
pub struct Entry {
    /// Short name, used in generated rule names, headers and logs.
    pub short: &'static str,
    /// Long name, as in the source documents.
    pub long: &'static str,
    /// Further names in the configuration.
    pub aliases: &'static [&'static str],
    /// Optional keys besides those of every rule.
    pub keys: &'static [Setting],
    /// Builds the algorithm, or returns every invalid combination.
    pub build: fn(&Quota) -> BuiltAlgorithm,
    /// Builds it for rules that count used permits separately from reserved ones. `None` if it
    /// cannot.
    pub counts_used: Option<BuildCountsUsed>,
    /// Its capabilities with a valid quota.
    pub capabilities: fn(&Quota) -> Capabilities,
    /// Its part of the Redis script. Without one, rules cannot be `global`.
    pub codec: Option<Codec>,
    /// The quota of one of several gateways in degraded mode: an equal share.
    pub share: fn(&Quota, u64) -> Quota,
    /// Whether it counts by calendar windows, so that it supports daily quotas in fixed memory.
    pub by_calendar: bool,
    /// The format of a state, besides unit, time zone and number of words: usage survives a change
    /// of the configuration only if it is equal. [`Entry::PLAIN`] by default.
    pub layout: fn(&Quota) -> u64,
}

impl Entry {
    /// The format of most states. Another number would discard the usage of all rules.
    pub const PLAIN: u64 = 10;

    /// All names in the configuration.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        [&[self.short, self.long], self.aliases].concat()
    }

    /// Its part of the Redis script for a quota. `None` if the script does not support a key of the
    /// rule.
    #[must_use]
    pub fn codec(&self, quota: &Quota) -> Option<&Codec> {
        let mut quota = *quota;
        let mut knows = |key: &Setting| key.global || (key.field)(&mut quota).is_none();
        self.codec.as_ref().filter(|_| self.keys.iter().all(&mut knows))
    }

    /// Builds the algorithm of a rule. With `keeps_used` it counts used permits separately from
    /// reserved ones.
    ///
    /// # Errors
    /// Every invalid combination of the quota's numbers.
    pub fn algorithm(&self, quota: &Quota, keeps_used: bool) -> BuiltAlgorithm {
        match self.counts_used.filter(|_| keeps_used) {
            Some(build) => build(quota).map(counted),
            None => (self.build)(quota),
        }
    }

    /// Returns true if a rule with this settlement stores usage separately from reservations.
    /// Reservations then survive a reset, and refusals that only they cause have another retry
    /// delay.
    #[must_use]
    pub fn keeps_used(&self, settling: Option<&Settling>) -> bool {
        settling.is_some_and(|it| !it.is_slot && (it.count.is_some() || it.reserve > 0))
    }
}
