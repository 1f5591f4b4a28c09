//! Conditions on values.

use super::value::{self, Presence};
use diana_policy::port::Request;
use diana_policy::spelling::header;
use diana_policy::{Condition, Field, Test};

/// Whether the request meets the condition for at least one possible reader. That is enough for a rule
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

/// Whether the request meets the condition for all possible readers. An exemption requires that. A value that must be percent-encoded
/// counts decoded only.
#[must_use]
pub fn must_hold(condition: &Condition, request: &dyn Request) -> bool {
    let mut all = true;
    let in_parts = match (&condition.test, &condition.field) {
        (Test::Not(_), _) => true,
        // The text of a whole list begins and ends as one of its items does.
        (Test::Prefix(_) | Test::Suffix(_), Field::Header(name)) => header::is_list(name),
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
