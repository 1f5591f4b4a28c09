//! Fleets that lose some calls to Redis, before or after Redis.

use diana_policy::time::SECOND;

use super::busy::{plan, play};
use super::plan::{Fault, Plan};
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
