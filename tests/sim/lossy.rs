//! Fleets that lose some calls to Redis, before or after Redis.

use std::collections::BTreeMap;

use diana_policy::time::{Micros, SECOND};

use super::busy::{plan, play};
use super::plan::{Away, Fault, MILLISECOND, Plan};
use super::record::Entry;
use super::rule::Scope;

const SECONDS: u64 = 30;

/// Two gateways with 500 requests a second each, all of callers that need a call.
fn lossy(permille: u64) -> Plan {
    let ends = SECONDS * SECOND;
    let mut plan = Plan {
        callers: 1_000,
        ends,
        on_failure: "deny",
        faults: vec![Fault::Loses { span: 0..ends, permille }],
        ..plan(Scope::Global, "W", 100_000, 1_000)
    };
    plan.entries[0][0].of_all = false;
    plan
}

/// A lost call is asked again, so that the mode rarely changes.
#[test]
fn one_lost_call_of_a_hundred_refuses_few_requests() {
    for permille in [1, 10] {
        let entries = play(&lossy(permille));
        let refused = entries.iter().filter(|entry| entry.refused().is_some()).count();
        println!("{permille}: {refused} of {} refused", entries.len());
        assert!(refused * 50 <= entries.len(), "{permille}: {refused} of {}", entries.len());
    }
}

/// When each of ten gateways has asked Redis again after it was away from one second on for this time.
fn returns(lasts: Micros, how: Away) -> Vec<Micros> {
    let away = SECOND..SECOND + lasts;
    let mut plan = lossy(0);
    (plan.gateways, plan.demand, plan.ends) = (10, 5_000, away.end + SECOND);
    plan.faults = vec![Fault::Away { span: away.clone(), gateways: 0..10, how }];
    plan.on_failure = "gateway";
    let entries = play(&plan);
    // A gateway that counts alone decides at once, and while it is alone no request of it waits.
    let waits = |entry: &&Entry| entry.admitted().is_some_and(|at| at > entry.arrived);
    let mut first = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.arrived >= away.end).filter(waits) {
        first.entry(entry.gateway_life).or_insert(entry.arrived - away.end);
    }
    first.into_values().collect()
}

/// A gateway that returned long before the others would find all of Redis's permits, while each of them still has its share.
#[test]
fn gateways_return_from_an_outage_together() {
    for (lasts, how) in [(3 * SECOND, Away::Silent), (SECOND / 2, Away::Refused)] {
        let returns = returns(lasts, how);
        println!("{how:?}: {returns:?}");
        assert_eq!(returns.len(), 10);
        let (first, last) = (returns.iter().min(), returns.iter().max());
        assert!(last <= first.map(|first| first + 30 * MILLISECOND).as_ref(), "{returns:?}");
    }
}
