//! Conditions on values.

use super::value::{self, Presence};
use diana_policy::port::Request;
use diana_policy::spelling::header;
use diana_policy::{Condition, ConditionField, Test};

/// Returns true if at least one possible reader finds the condition met. That suffices for a rule
/// to apply.
#[must_use]
pub fn may_hold(condition: &Condition, request: &dyn Request) -> bool {
    let is_negated = condition.is_negated;
    let mut any = false;
    let presence = value::read(condition, true, false, request, &mut |passes| {
        any = any || passes.map_or(is_negated, |passes| passes != is_negated);
    });
    presence == Presence::Unknown
        || match &condition.test {
            Test::Present(true) => presence != Presence::Absent,
            Test::Present(false) | Test::Not(_) => any || presence != Presence::Sure,
            // An absent value passes no other test.
            _ => any || is_negated && presence != Presence::Sure,
        }
}

/// Returns true if all possible readers find the condition met, as an exemption requires. Of a
/// value that must be percent-encoded only the decoded form counts.
#[must_use]
pub fn must_hold(condition: &Condition, request: &dyn Request) -> bool {
    let is_negated = condition.is_negated;
    let mut all = true;
    let in_parts = is_negated
        || match (&condition.test, &condition.field) {
            (Test::Not(_), _) => true,
            // The text of a whole list begins and ends as one of its items does.
            (Test::Prefix(_) | Test::Suffix(_), ConditionField::Header(name)) => {
                header::is_list(name)
            }
            _ => false,
        };
    let presence = value::read(condition, in_parts, true, request, &mut |passes| {
        all = all
            && match passes {
                Some(passes) => passes != is_negated,
                None => matches!(condition.test, Test::Present(_)),
            };
    });
    presence != Presence::Unknown
        && match &condition.test {
            Test::Present(false) => presence == Presence::Absent,
            Test::Not(_) => all,
            _ => all && (is_negated || presence == Presence::Sure),
        }
}
