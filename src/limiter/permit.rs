//! The charges of an admitted request, until its stream ends.

use std::rc::Rc;

use crate::check::{Check, InProgress};
use crate::rule::CompiledRule;
use crate::rules::Rules;
use diana_policy::Metric;
use diana_policy::key::Key;
use diana_policy::port::Ending;
use diana_policy::time::Now;
use diana_request::settling::{UnknownUsage, UsageReader};
use diana_store::permit::{OpenCharge, Permit};

/// A line of requests of one caller under one rule of a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLine {
    /// The rule's number in its limiter.
    pub rule: usize,
    /// The caller.
    pub key: Key,
    /// The plan of the request. Positions have the same length only under the same plan.
    pub plan: u64,
}

/// The charges of a request that are settled at its end.
#[inline]
pub(crate) fn open_charges(rules: &mut Rules, progress: &mut InProgress) -> Permit {
    if rules.settles { open(rules, progress) } else { Permit::NONE }
}

#[inline(never)]
fn open(rules: &mut Rules, progress: &mut InProgress) -> Permit {
    let now = progress.now;
    let freed = Rc::clone(&rules.returned);
    let charges = progress.checks.iter_mut().filter_map(|check| open_charge(rules, check, now));
    Permit::new(charges, &freed)
}

fn open_charge(rules: &mut Rules, check: &mut Check, now: Now) -> Option<OpenCharge> {
    let rule = rules.list.get_mut(check.rule)?;
    let usage_reader = rule.usage_reader.as_ref()?;
    let (is_checked_only, is_in_flight) = (usage_reader.reserves_nothing(), usage_reader.is_slot());
    let mut charge = check.charge(rule, now)?;
    rule.counts.add(Metric::InFlight, is_in_flight);
    if rules.returned.is_full() && !is_in_flight {
        rule.counts.add(Metric::Unsettled, 1);
        return None;
    }
    if is_checked_only {
        check.cancel(rule);
        charge.reserved = 0;
    }
    Some(charge)
}

/// The charges of a held request that are returned if its client leaves before its turn, and
/// the line in which the request moves up when an earlier request leaves.
pub(crate) fn queued_charges(rules: &Rules, progress: &InProgress) -> (Permit, Option<QueueLine>) {
    let queued = progress.checks.iter().filter(|check| !check.is_shadow()).filter_map(|check| {
        let rule = rules.list.get(check.rule).filter(|rule| rule.queues)?;
        check.charge(rule, progress.now)
    });
    let charges: Vec<_> = queued.collect();
    // With several charges, moving up in one line would leave the positions in the others too
    // late.
    let line = line(rules, progress).filter(|_| charges.len() == 1);
    (Permit::new(charges.into_iter(), &rules.returned), line)
}

/// The line of a request that a single rule of this worker holds.
fn line(rules: &Rules, progress: &InProgress) -> Option<QueueLine> {
    let mut holding = progress.checks.iter().filter(|check| check.wait() > 0);
    let (Some(check), None) = (holding.next(), holding.next()) else { return None };
    let rule = rules.list.get(check.rule)?;
    // With different costs, the freed position may be shorter than the next request needs.
    let is_even = rule.config.cost_source.is_none();
    (rule.queues && rule.config.is_local() && is_even).then_some(QueueLine {
        rule: check.rule,
        key: check.key(),
        plan: check.plan(),
    })
}

/// Reads the usage of a request from the headers of its response.
pub(crate) fn on_response(rules: &Rules, permit: &mut Permit, ending: &dyn Ending) {
    permit.each(|charge| {
        if let Some(usage_reader) = usage_reader(rules, charge) {
            *charge = charge.with_response(usage_reader.read_headers(ending));
        }
    });
}

/// Returns true if the bytes of the request's body are needed for one of its charges.
pub(crate) fn reads_request_bytes(rules: &Rules, permit: &mut Permit) -> bool {
    let mut reads = false;
    permit.each(|charge| {
        let rule = rules.list.get(charge.rule as usize);
        reads |= rule.is_some_and(CompiledRule::reads_request_bytes);
    });
    reads
}

/// Reads the usage of a request from the trailers of its response.
pub(crate) fn on_trailers(rules: &Rules, permit: &mut Permit, ending: &dyn Ending) {
    permit.each(|charge| {
        if let Some(usage_reader) = usage_reader(rules, charge) {
            let response = usage_reader.read_trailers(charge.response(), ending);
            *charge = charge.with_response(response);
        }
    });
}

fn usage_reader<'r>(rules: &'r Rules, charge: &OpenCharge) -> Option<&'r UsageReader> {
    rules.list.get(charge.rule as usize)?.usage_reader.as_deref()
}

/// Settles the charges of a request at the end of its stream.
pub(crate) fn finish(rules: &mut Rules, permit: Permit, ending: &dyn Ending, now: Now) {
    permit.settle(|charge| used(rules, charge, ending, now));
    return_charges(rules, now);
}

/// The usage of a charge. Counts towards a ban if the rule bans by usage.
fn used(rules: &mut Rules, charge: &OpenCharge, ending: &dyn Ending, now: Now) -> u64 {
    let reserved = charge.reserved;
    let Some(rule) = rules.list.get_mut(charge.rule as usize) else { return reserved };
    let Some(usage_reader) = &rule.usage_reader else { return reserved };
    if usage_reader.is_slot() {
        return 0;
    }
    let elapsed = now.mono.saturating_sub(charge.since);
    let (used, unknown) = usage_reader.used(reserved, charge.response(), ending, elapsed);
    let bans_by_usage = usage_reader.bans();
    rule.counts.settle(reserved, used, unknown);
    // No usage at all is that of a request without a response, too.
    let is_whole = unknown.is_none() && used > 0;
    let is_partial = unknown == Some(UnknownUsage::Partial);
    if let Some(usage) = &mut rule.usage {
        usage.is_found |= is_whole || is_partial;
        usage.miss(matches!(unknown, Some(UnknownUsage::Absent | UnknownUsage::Unusable)));
    }
    if let Some(whole) = &mut rule.whole_usage {
        whole.is_found |= is_whole;
        whole.miss(is_partial);
    }
    if bans_by_usage && used > 0 && charge.is_identified {
        rule.count_towards_ban(charge.account(), now);
    }
    used
}

/// Cancels charges of requests that did not proceed, and settles those of requests that ended.
/// Due before the next check, and sooner if other workers or limiters count in the same state.
#[inline(never)]
pub(crate) fn return_charges(rules: &mut Rules, now: Now) {
    let mut charges = rules.returned.take();
    charges.retain(|charge| !settle(rules, charge, now));
    charges.into_iter().for_each(|charge| rules.returned.add(charge));
}

/// Settles a charge. Returns false if other workers won every race, so that it is settled
/// later.
fn settle(rules: &mut Rules, charge: &OpenCharge, now: Now) -> bool {
    let Some(rule) = rules.list.get_mut(charge.rule as usize) else { return true };
    let turn = rules.process.and_then(|process| Some(process.turn(rule.turn(charge.key)?)));
    let is_done = rule.store.settle(charge, now);
    drop(turn);
    if is_done && rule.is_in_flight() {
        rule.counts.add(Metric::InFlight, -1);
    }
    is_done
}

/// Returns true if requests are in flight under a rule that other workers count, too.
pub(crate) fn holds_slots(rules: &Rules) -> bool {
    rules.returned.is_awaited()
        && rules.list.iter().any(|rule| !rule.config.is_local() && rule.is_in_flight())
}
