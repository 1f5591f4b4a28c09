//! Rules with plans, and the bound on a caller's admissions while its plan changes.

pub mod resets;

use std::sync::Arc;

use diana_algorithm::Entry;
use diana_policy::time::{Micros, Now};
use diana_policy::{MAX_DRAINED, MAX_PERMITS, Plan, PlanKind, Plans, Quota};
use fastrand::Rng;

use crate::oracle::{Oracle, oracle};
use crate::store::rule::Rule;

/// An admission.
#[derive(Clone, Copy)]
pub struct Given {
    pub at: Now,
    pub cost: u64,
    pub plan: usize,
}

/// A rule with plans of very different rates. Also returns all quotas, its own first.
pub fn random(entry: &'static Entry, rng: &mut Rng) -> (Rule, Arc<Plans>, Vec<Quota>) {
    let mut rule = Rule::random(entry, rng);
    while rule.quota.rpu == 0 {
        rule = Rule::random(entry, rng);
    }
    rule.is_even = true;
    let mut quotas = vec![rule.quota];
    while quotas.len() < 4 {
        let own = rule.quota;
        let rpu = (own.rpu * rng.u64(1..40) / rng.u64(1..40)).clamp(1, MAX_PERMITS);
        let burst = own
            .burst
            .map(|burst| (burst * rng.u64(1..40) / rng.u64(1..40)).clamp(own.cost, MAX_DRAINED));
        let quota = Quota { rpu, burst, ..own };
        if (entry.build)(&quota).is_ok() {
            quotas.push(quota);
        }
    }
    let slowest = quotas.iter().map(|quota| quota.rpu).min();
    let fastest = quotas.iter().map(|quota| quota.rpu).max();
    let most = quotas.iter().map(|quota| quota.burst.unwrap_or(quota.rpu)).max().unwrap_or(0);
    let unit = rule.quota.period();
    let longest = most.saturating_mul(unit).div_ceil(slowest.unwrap_or(1)).min(1 << 50);
    let is_wide = fastest > Some(MAX_DRAINED);
    let with = |quota: Quota| Quota { slowest, fastest, longest, is_wide, ..quota };
    quotas.iter_mut().for_each(|quota| *quota = with(*quota));
    let plan =
        |quota: &Quota| Plan { name: quota.rpu.to_string(), quota: Some(*quota), until: None };
    let of = quotas[1..].iter().map(plan).collect();
    let own = quotas[0];
    let rule = Rule { is_even: true, ..Rule::new(entry.short, own) };
    (
        rule,
        Arc::new(Plans {
            own,
            kind: PlanKind::Listed { by: None, of, is_other_unlimited: false },
            month_starts: None,
        }),
        quotas,
    )
}

/// Maximum permits of held requests.
fn held(oracle: &Oracle, quota: &Quota) -> u128 {
    let unit = u128::from(quota.period());
    let queue = u128::from(quota.max_queue.unwrap_or(quota.rpu)) * unit;
    queue.min(u128::from(oracle.max_delay(quota)) * u128::from(quota.rpu)).div_ceil(unit)
}

/// In any interval, a caller gets at most the permits of its largest plan in that interval. A held
/// request leaves at its turn under the plan at its decision, so the instant of the decision
/// counts.
pub fn keeps_the_bound(short: &str, quotas: &[Quota], given: &[Given]) {
    keeps_the_bound_after(0, short, quotas, given);
}

/// As [`keeps_the_bound`], if workers spend leases of a previous plan for `lease` ticks.
pub fn keeps_the_bound_after(lease: Micros, short: &str, quotas: &[Quota], given: &[Given]) {
    let oracle = oracle(short);
    for (number, first) in given.iter().enumerate() {
        let lent = given[..number].iter().rev();
        let lent = lent.take_while(|one| lease > 0 && one.at.mono + lease > first.at.mono);
        let (mut sum, mut most, mut rate) = (0, 0, 0);
        let mut see = |plan: usize| {
            let quota = &quotas[plan];
            most = most.max(u128::from(oracle.burst(quota)) + held(oracle, quota));
            rate = rate.max(u128::from(quota.rpu));
            (most, rate)
        };
        lent.for_each(|one| _ = see(one.plan));
        for last in &given[number..] {
            let quota = &quotas[last.plan];
            let unit = u128::from(quota.period());
            let (most, rate) = see(last.plan);
            let span = u128::from(last.at.mono - first.at.mono) + 1;
            // A slot is as long as the cost of its request, and the last one may exceed the
            // interval.
            let fits = if oracle.burst(quota) == 0 { 0 } else { u128::from(last.cost) };
            if !oracle.is_one_interval(quota, first.at, last.at) {
                break;
            }
            let refilled = if oracle.drains() { (rate * span).div_ceil(unit) } else { 0 };
            let (limit, used) = (most + refilled, sum + fits);
            assert!(
                used <= limit,
                "{short}: {used} of {limit} from {:?} to {:?} by {quotas:?}",
                first.at,
                last.at
            );
            sum += u128::from(last.cost);
        }
    }
}
