//! The caller that a store counts.

use diana_policy::key::Key;

/// A caller under a plan of a rule. All plans of a rule share the caller's state, and each compares
/// it with its own quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// The caller.
    pub key: Key,
    /// The number of the plan. Zero if the rule has no plans.
    pub plan: u32,
}

/// A caller of a rule without plans.
impl From<Key> for Account {
    fn from(key: Key) -> Account {
        Account { key, plan: 0 }
    }
}
