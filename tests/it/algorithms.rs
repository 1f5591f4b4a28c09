//! What an algorithm says of itself beside its decisions.

use diana_core::algorithm::REGISTRY;
use diana_core::policy::Quota;
use diana_core::time::{SECOND, Unit};
use kit::store::gateway::START;
use kit::store::rule::Rule;

#[test]
fn a_rule_tells_its_quota_and_its_unit() {
    let quota = Quota::new(Unit::Hour, 7);
    for entry in REGISTRY.iter() {
        let algorithm =
            Rule::new(entry.short, Quota { max_delay: entry_delay(entry.short), ..quota })
                .algorithm;
        assert_eq!(algorithm.policy(), (7, 3600 * SECOND), "{}", entry.short);
    }
    let warm = Rule::new("TB", Quota { warm_up: Some(SECOND), ..quota }).algorithm;
    assert_eq!(warm.policy(), (7, 3600 * SECOND));
}

/// For how long a line of seven an hour has to hold requests so that anybody can wait for the next slot.
fn entry_delay(short: &str) -> Option<u64> {
    (short == "LB").then_some(3600 * SECOND)
}

#[test]
fn no_rule_is_built_whose_requests_all_cost_more_than_there_is() {
    for entry in REGISTRY.iter() {
        let quota = Quota { cost: 6, ..Quota::new(Unit::Second, 5) };
        assert!(Rule::try_new(entry.short, quota).is_none(), "{}", entry.short);
        // But one that refuses everybody is one.
        assert!(Rule::try_new(entry.short, Quota { rpu: 0, ..quota }).is_some(), "{}", entry.short);
    }
}

/// Whether the next slot of a line is there.
#[test]
fn a_line_has_one_permit_left_or_none() {
    let Rule { algorithm, .. } = Rule::new("LB", Quota::new(Unit::Second, 10));
    let mut state = vec![0; algorithm.words()];
    assert_eq!(algorithm.remaining(&state, START), 1);
    assert!(algorithm.step(&state.clone(), START, 1, &mut state).is_admitted());
    for (ticks, left) in [(0, 0), (SECOND / 10 - 1, 0), (SECOND / 10, 1)] {
        assert_eq!(algorithm.remaining(&state, START.later(ticks)), left, "after {ticks}");
    }
    let none = Rule::new("LB", Quota::new(Unit::Second, 0)).algorithm;
    assert_eq!(none.remaining(&vec![0; none.words()], START), 0);
}

/// Whatever can be counted by can be counted by a gateway alone.
#[test]
fn the_part_of_a_gateway_means_something_wherever_the_whole_does() {
    for entry in REGISTRY.iter() {
        for rpu in 0..20 {
            let quota = Quota { max_delay: Some(SECOND / 2), ..Quota::new(Unit::Second, rpu) };
            for quota in [quota, Quota { max_delay: None, ..quota }] {
                let whole = Rule::try_new(entry.short, quota).is_some();
                for gateways in 1..8 {
                    let part = (entry.part)(&quota, gateways);
                    let built = (entry.build)(&part).is_ok();
                    assert!(built || !whole, "{} {quota:?} of {gateways}", entry.short);
                    assert!(part.rpu > 0 || part.max_delay == quota.max_delay, "{quota:?}");
                }
            }
        }
    }
}
