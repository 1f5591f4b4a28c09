//! Which branch decides about requests at first: what all of them have in common is found out once.

use crate::policy::{Accepted, Policy, Rule};

/// A branch of the decision, the shortest one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Branch {
    /// There is a single rule, which tells nothing of what it admits: [`super::one`].
    One,
    /// All rules are counted by each worker for itself, and tell nothing of what they admit at once: [`super::known`].
    Known,
    /// All others.
    Any,
}

impl Branch {
    /// The one for the rules of a policy.
    pub(super) fn of(policy: &Policy) -> Branch {
        let mut rules = policy.limits.iter().flat_map(|limit| &limit.rules);
        if policy.is_plain() {
            Branch::One
        } else if policy.accepted == Accepted::default() && rules.all(is_taken_back) {
            Branch::Known
        } else {
            Branch::Any
        }
    }
}

/// Whether the rule's charges can be taken back at once, and nothing else is made of them.
fn is_taken_back(rule: &Rule) -> bool {
    rule.is_local() && rule.daily.is_none() && rule.settling.is_none() && rule.near.is_none()
}
