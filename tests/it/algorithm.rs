//! Algorithms: their laws, and properties other than their decisions.

mod calendar;
mod large;
mod pace;
mod renewal;
mod warm_up;

use diana_algorithm::REGISTRY;
use diana_policy::time::{SECOND, Unit};
use diana_policy::{Quota, Zone};
use kit::seed;
use kit::store::gateway::START;
use kit::store::rule::Rule;

#[test]
fn every_algorithm_obeys_its_laws() {
    kit::laws::hold(seed::next(), 400);
}

#[test]
fn algorithm_reports_its_quota_and_unit() {
    let quota = Quota::new(Unit::Hour, 7);
    // Slots are further apart than LB holds requests by default.
    let held = Quota { max_delay: Some(3600 * SECOND), ..quota };
    // With the default of ten slices, eleven are counted.
    for (short, quota, window) in
        [("TB", quota, 3_600), ("W", quota, 3_600), ("SW", quota, 3_960), ("LB", held, 3_600)]
    {
        let algorithm = Rule::new(short, quota).algorithm;
        assert_eq!(algorithm.properties().quota(), (7, window * SECOND), "{short}");
    }
    let warm = Rule::new("TB", Quota { warm_up: Some(SECOND), ..quota }).algorithm;
    assert_eq!(warm.properties().quota(), (7, 3600 * SECOND));
}

#[test]
fn cost_above_the_limit_builds_no_rule() {
    for entry in REGISTRY.iter() {
        let quota = Quota { cost: 6, ..Quota::new(Unit::Second, 5) };
        assert!(Rule::try_new(entry.short, quota).is_none(), "{}", entry.short);
        // A rule that refuses all requests is accepted.
        assert!(Rule::try_new(entry.short, Quota { rpu: 0, ..quota }).is_some(), "{}", entry.short);
    }
}

/// If a rule can be counted by a fleet, each gateway can count its share.
#[test]
fn gateway_share_of_a_valid_quota_is_valid() {
    for entry in REGISTRY.iter() {
        for rpu in 0..20 {
            let quota = Quota { max_delay: Some(SECOND / 2), ..Quota::new(Unit::Second, rpu) };
            for quota in [quota, Quota { max_delay: None, ..quota }] {
                let whole = Rule::try_new(entry.short, quota).is_some();
                for gateways in 1..8 {
                    let part = (entry.share)(&quota, gateways);
                    let built = (entry.build)(&part).is_ok();
                    assert!(built || !whole, "{} {quota:?} of {gateways}", entry.short);
                    assert!(part.rpu > 0 || part.max_delay == quota.max_delay, "{quota:?}");
                }
            }
        }
    }
}

/// A gateway in degraded mode has an equal share of all counts, rounded up.
#[test]
fn gateway_share_is_rounded_up() {
    let quota = Quota {
        burst: Some(20),
        max_queue: Some(9),
        max_delay: Some(SECOND),
        cost: 7,
        zone: Zone::ahead(3600),
        ..Quota::new(Unit::Minute, 31)
    };
    let part = Quota { rpu: 8, burst: Some(5), max_queue: Some(3), cost: 1, ..quota };
    assert_eq!(quota.share(4), part);
    assert_eq!(quota.share(1), Quota { cost: 1, ..quota });
    assert_eq!(quota.share(0), quota.share(1));
}

/// The parameters of a quota for the Redis script, besides `rpu` and the unit.
#[test]
fn redis_gets_the_parameters_of_an_algorithm() {
    let numbers = |short, quota: Quota| {
        let rule = Rule::new(short, quota);
        (rule.entry.codec(&quota).unwrap().numbers)(&quota)
    };
    let quota = Quota { zone: Zone::ahead(3600), ..Quota::new(Unit::Hour, 70) };
    let line =
        Quota { max_delay: Some(9 * SECOND), max_queue: Some(4), ..Quota::new(Unit::Second, 70) };
    let huge = Quota { max_delay: Some(u64::MAX), max_queue: Some(u64::MAX), ..line };
    for (short, quota, wanted) in [
        ("W", quota, [0; 3]),
        ("SW", quota, [10, 0, 0]),
        ("SW", Quota { slices: Some(60), ..quota }, [60, 0, 0]),
        ("TB", quota, [70, -1, 70]),
        ("TB", Quota { burst: Some(3), ..quota }, [3, -1, 70]),
        ("TB", Quota { max_delay: Some(0), ..quota }, [70, -1, 70]),
        ("TB", line, [70, 9_000_000, 4]),
        ("LB", line, [-1, 9_000_000, 4]),
        ("LB", Quota { max_delay: None, max_queue: None, ..line }, [-1, 1_000_000, 70]),
        ("LB", huge, [-1, i64::MAX, i64::MAX]),
    ] {
        assert_eq!(numbers(short, quota), wanted, "{short} {quota:?}");
    }
}

/// Most numbers fit 64 bits and use a faster division, with the same results.
#[test]
fn bucket_drains_exactly_for_large_numbers() {
    const MOST: u64 = 1_000_000_000;
    for unit in [Unit::Second, Unit::Day, Unit::Month] {
        let quota = Quota::new(unit, MOST);
        let (algorithm, period) = (Rule::new("TB", quota).algorithm, quota.period());
        for owed in [1, 2_000, MOST / 5, MOST] {
            let times = (0..60).map(|power| 1 << power);
            for gone in times.chain([period / 9, period - 1, period, period + 1]) {
                let mut state = vec![0; algorithm.properties().words];
                let mut new = state.clone();
                assert!(algorithm.step(&new, START, 0, owed, &mut state).is_admitted());
                let drained = u128::from(gone) * u128::from(MOST);
                let owed = (u128::from(owed) * u128::from(period)).saturating_sub(drained);
                let left = MOST - u64::try_from(owed.div_ceil(period.into())).unwrap();
                let now = START.later(gone);
                assert_eq!(algorithm.balance(&state, now).remaining, left, "{owed} after {gone}");
                for cost in [1, left, left + 1].into_iter().filter(|cost| *cost > 0) {
                    let admits = algorithm.step(&state, now, 0, cost, &mut new).is_admitted();
                    assert_eq!(admits, cost <= left, "{cost} of {left} after {gone}");
                }
            }
        }
    }
}

/// Stores reuse buffers for new states, which may contain the state of another caller.
#[test]
fn admission_overwrites_the_whole_state() {
    for entry in REGISTRY.iter() {
        let Rule { algorithm, .. } = Rule::new(entry.short, Quota::new(Unit::Second, 9));
        let (mut state, mut now) = (vec![0; algorithm.properties().words], START);
        for number in 0..200_u64 {
            let mut clean = vec![0; state.len()];
            let mut used = vec![u64::MAX / (number + 1); state.len()];
            let decision = algorithm.step(&state, now, 0, 1, &mut clean);
            assert_eq!(algorithm.step(&state, now, 0, 1, &mut used), decision, "{}", entry.short);
            if decision.is_admitted() {
                assert_eq!(clean, used, "{}", entry.short);
                state = clean;
            }
            now = now.later(number * 997 % (SECOND / 5));
        }
    }
}
