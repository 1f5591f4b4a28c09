//! Carries out orders of operators.

use crate::fleet::Fleet;
use crate::matcher::Matcher;
use crate::order::{CallerInquiry, CallerQuery, OrderResult, PendingOrder, Seen};
use crate::rules::Rules;
use diana_policy::Absent;
use diana_policy::key::{Key, LoggedKey};
use diana_policy::time::Now;
use diana_request::identity::named::Named;
use diana_store::usage::OrderError;

/// The parts of a limiter that an order needs.
pub(crate) type Parts<'l> = (&'l mut Matcher, &'l mut Rules, &'l mut Fleet);

/// Carries an order out, or takes the replies to it. If an authority must reply first, returns
/// the order; its questions are ready to be sent.
pub(crate) fn execute(
    parts: &mut Parts<'_>,
    mut order: PendingOrder,
    now: Now,
) -> Result<OrderResult, PendingOrder> {
    let number = order.rule;
    let mut seen = try_order(parts, &mut order, now);
    if seen == Some(Err(OrderError::Lost)) {
        order.callers.clear();
        seen = try_order(parts, &mut order, now);
    }
    let Some(seen) = seen else { return Err(order) };
    Ok(OrderResult { rule: number, order: order.order, seen })
}

/// Carries an order out for each of its callers. `None` if an authority must reply first.
fn try_order(
    (matcher, rules, fleet): &mut Parts<'_>,
    order: &mut PendingOrder,
    now: Now,
) -> Option<Result<Vec<Seen>, OrderError>> {
    if order.callers.is_empty() {
        if rules.list.get(order.rule).is_some_and(|rule| rule.is_in_backend) {
            fleet.prepare(&mut matcher.callers, true);
        }
        let callers = callers_of(matcher, rules, order);
        let Some(rule) = rules.list.get(order.rule) else { return Some(Ok(Vec::new())) };
        order.callers =
            callers.into_iter().map(|it| CallerInquiry::new(rule, it, order.order)).collect();
    }
    let rule = rules.list.get_mut(order.rule)?;
    let (mut seen, mut is_pending) = (Ok(Vec::new()), false);
    for caller in &mut order.callers {
        match (caller.carry_out(rule, now), &mut seen) {
            (None, _) => is_pending = true,
            (Some(Ok(one)), Ok(all)) => all.push(one),
            (Some(Err(error)), seen) => *seen = Err(error),
            (Some(Ok(_)), Err(_)) => {}
        }
    }
    if is_pending && seen.is_ok() {
        return None;
    }
    if let Some(backend) = &mut fleet.backend {
        backend.discard();
    }
    Some(seen)
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
