//! Conditions on values.

use super::value::{self, Presence};
use diana_policy::port::Request;
use diana_policy::spelling::header;
use diana_policy::{Condition, ConditionField, Test};

/// Returns true if at least one possible reader finds the condition met. That suffices for a rule
/// to apply.
#[must_use]
pub fn may_hold(condition: &Condition, request: &dyn Request) -> bool {
    let mut any = false;
    let presence = value::read(&condition.field, true, false, request, &mut |reading| {
        any = any || reading.is_some_and(|reading| condition.test.accepts(reading));
    });
    presence == Presence::Unknown
        || match &condition.test {
            Test::Present(true) => presence != Presence::Absent,
            Test::Present(false) | Test::Not(_) => any || presence != Presence::Sure,
            _ => any,
        }
}

/// Returns true if all possible readers find the condition met, as an exemption requires. Of a
/// value that must be percent-encoded only the decoded form counts.
#[must_use]
pub fn must_hold(condition: &Condition, request: &dyn Request) -> bool {
    let mut all = true;
    let in_parts = match (&condition.test, &condition.field) {
        (Test::Not(_), _) => true,
        // The text of a whole list begins and ends as one of its items does.
        (Test::Prefix(_) | Test::Suffix(_), ConditionField::Header(name)) => header::is_list(name),
        _ => false,
    };
    let presence = value::read(&condition.field, in_parts, true, request, &mut |reading| {
        all = all
            && match reading {
                Some(reading) => condition.test.accepts(reading),
                None => matches!(condition.test, Test::Present(_)),
            };
    });
    presence != Presence::Unknown
        && match &condition.test {
            Test::Present(false) => presence == Presence::Absent,
            Test::Not(_) => all,
            _ => all && presence == Presence::Sure,
        }
}
