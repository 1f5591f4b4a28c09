//! Carries out orders of operators.

use crate::fleet::Fleet;
use crate::matcher::Matcher;
use crate::order::{CallerQuery, PendingOrder, Seen};
use crate::rules::Rules;
use diana_policy::Absent;
use diana_policy::key::{Key, LoggedKey};
use diana_policy::time::Now;
use diana_request::identity::named::Named;
use diana_store::question::Question;
use diana_store::usage::OrderError;

/// The parts of a limiter that an order needs.
pub(crate) type Parts<'l> = (&'l mut Matcher, &'l mut Rules, &'l mut Fleet);

/// Finds the callers of an order. Returns its questions to the authority; none if there is no
/// authority, and the order can be carried out at once.
///
/// # Errors
/// Why the order cannot be carried out.
pub(crate) fn ask(
    (matcher, rules, fleet): Parts<'_>,
    order: &mut PendingOrder,
) -> Result<Vec<Question>, OrderError> {
    if rules.list.get(order.rule).is_some_and(|rule| rule.is_in_backend) {
        fleet.prepare(&mut matcher.callers, true);
    }
    order.callers = callers_of(matcher, rules, order);
    let mut questions = Vec::new();
    if let Some(rule) = rules.list.get_mut(order.rule) {
        for caller in &order.callers {
            questions.extend(order.ask(rule, caller)?);
        }
    }
    Ok(questions)
}

/// Carries an order out for all of its callers, even if it fails for some; or reads the replies to
/// its questions.
pub(crate) fn carry_out(
    rules: &mut Rules,
    order: &PendingOrder,
    now: Now,
) -> Result<Vec<Seen>, OrderError> {
    let Some(rule) = rules.list.get_mut(order.rule) else { return Ok(Vec::new()) };
    let callers = order.callers.iter();
    let seen: Vec<_> = callers.map(|it| order.carry_out(rule, it, now)).collect();
    seen.into_iter().collect()
}

/// The callers that an order names.
fn callers_of(matcher: &Matcher, rules: &Rules, order: &PendingOrder) -> Vec<Named> {
    let Some(rule) = rules.list.get(order.rule) else { return Vec::new() };
    let by_key = |key| vec![Named { sources: Vec::new(), key }];
    match &order.query {
        // A rule without actors has only the caller `Key::ALL`, and no other rule has it.
        CallerQuery::Key(LoggedKey { key, .. }) if rule.actor.is_none() == (*key == Key::ALL) => {
            by_key(*key)
        }
        CallerQuery::Key(_) => Vec::new(),
        CallerQuery::Values(values) if !values.is_empty() && values.iter().all(Vec::is_empty) => {
            // The caller without an address, too.
            let mut callers = matcher.callers.named(rule.actor, values);
            if rule.config.absent == Absent::Share {
                callers.extend(by_key(Key::SHARED));
            }
            callers
        }
        CallerQuery::Values(values) => matcher.callers.named(rule.actor, values),
    }
}
