//! Switches of operators in the host, which change a document without an update.

use super::Policy;

/// All callers, in per cent.
const ALL: u8 = 100;

/// Changes of a document by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// Decide about no request, as [`Policy::disabled`].
    pub disabled: bool,
    /// The highest percentage of callers for which a rule is enforced. A rule for all callers is
    /// in shadow unless it is 100.
    pub enforce: u8,
}

impl Default for Switches {
    fn default() -> Switches {
        Switches { disabled: false, enforce: ALL }
    }
}

impl Switches {
    /// Changes a policy.
    pub fn change(&self, policy: &mut Policy) {
        policy.disabled |= self.disabled;
        for rule in policy.limits.iter_mut().flat_map(|limit| &mut limit.rules) {
            let is_one_caller = rule.actor.is_empty();
            let most = if is_one_caller && self.enforce < ALL { 0 } else { self.enforce };
            rule.enforce = rule.enforce.min(most);
        }
    }
}
