//! Invalid policies, as only a program can create them. Each is reported, and not adapted.

use diana_limiter::{Limiter, Unbuildable, Verdict};
use diana_policy::key::Seed;
use diana_policy::{Policy, Rule};
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use std::rc::Rc;

use super::fleet_limiter;

/// The problem of a policy with one `global` rule, after a change.
fn wrong(change: impl FnOnce(&mut Policy)) -> Option<Unbuildable> {
    built(true, change).err()
}

/// As above, with a Redis or without.
fn built(has_redis: bool, change: impl FnOnce(&mut Policy)) -> Result<Limiter, Unbuildable> {
    built_in(Rc::default(), has_redis, change)
}

fn built_in(
    data: Rc<FakeSharedData>,
    has_redis: bool,
    change: impl FnOnce(&mut Policy),
) -> Result<Limiter, Unbuildable> {
    let text = b"limits: [{Url: /, rules: [{name: r, actor: account, unit: hour, rpu: 5, scope: global}]}]";
    let mut policy = diana_config::Reader::default().policy(text).unwrap();
    change(&mut policy);
    let seed = Seed { k0: 1, k1: 2 };
    match has_redis {
        true => fleet_limiter(policy, seed, data),
        false => Limiter::standalone(policy, seed, data),
    }
}

fn wrong_rule(change: impl FnOnce(&mut Rule)) -> Option<Unbuildable> {
    wrong(|policy| change(&mut policy.limits[0].rules[0]))
}

fn unbuildable(name: &str, why: &'static str) -> Option<Unbuildable> {
    Some(Unbuildable { name: name.into(), why })
}

#[test]
fn invalid_policy_is_refused() {
    assert_eq!(wrong(|_| {}), None);
    let wrong_algo = wrong_rule(|rule| rule.algo = "XY");
    assert_eq!(wrong_algo, unbuildable("r", "unknown algorithm"));
    assert_eq!(wrong_algo.unwrap().to_string(), "`r`: unknown algorithm");
    assert_eq!(wrong_rule(|rule| rule.quota.cost = 6), unbuildable("r", "its quota is invalid"));
    assert_eq!(
        wrong_rule(|rule| rule.quota.warm_up = Some(1_000_000)),
        unbuildable("r", "its algorithm does not support `scope: global`")
    );
    let warm_up = |policy: &mut Policy| policy.limits[0].rules[0].quota.warm_up = Some(1_000_000);
    assert!(built(false, warm_up).is_ok(), "each gateway counts for itself");
    assert_eq!(
        wrong(|policy| policy.actors[0].sources[0].kind = "nobody"),
        unbuildable("account", "unknown source")
    );
}

/// Ticks between two calls of a worker for its maintenance.
#[test]
fn tick_interval_depends_on_the_rules() {
    let interval = |rule: &str| {
        let text = format!("limits: [{{Url: /, rules: [{{actor: account, unit: day, {rule}}}]}}]");
        alone(&text).tick_interval()
    };
    for (rule, wanted) in [
        // Leases are returned soon.
        ("algo: W, rpu: 5, scope: gateway", 12_500),
        ("algo: TB, rpu: 5, scope: gateway", 12_500),
        // There are no leases of queue positions.
        ("algo: LB, rpu: 100000, max_delay: 9s, scope: gateway", 100_000),
        ("algo: W, rpu: 5, scope: local", 1_000_000),
        ("algo: W, rpu: 5, scope: local, hot: {over: 9, per: 1s}", 100_000),
        ("algo: W, rpu: 5, scope: local, quota: {accounts: 1000}", 1_000_000),
        // Under any plan.
        (
            "algo: LB, rpu: 100000, max_delay: 9s, scope: gateway, plans: {of: {a: {rpu: 90000}}}",
            100_000,
        ),
        ("algo: W, rpu: 0, scope: gateway, plans: {of: {a: {rpu: 9}}}", 12_500),
        (
            "algo: TB, rpu: 5, max_delay: 9s, scope: gateway, plans: {of: {a: {rpu: 9, max_delay: 0s}}}",
            12_500,
        ),
        ("algo: W, rpu: 5, scope: local, plans: {of: {a: {rpu: 9}}}", 1_000_000),
        (
            "algo: W, rpu: 5, scope: global, quota: {accounts: 1000}, plans: {of: {a: {rpu: 9}}}",
            100_000,
        ),
        // The rule with the shortest interval determines it.
        (
            "algo: W, rpu: 5, scope: local}, {actor: account, unit: day, algo: W, rpu: 5, scope: gateway",
            12_500,
        ),
        (
            "algo: W, rpu: 5, scope: local}, {actor: account, unit: day, algo: LB, rpu: 100000, max_delay: 9s, scope: gateway",
            100_000,
        ),
        // Quotas have no leases.
        ("algo: W, rpu: 5, scope: global, quota: {accounts: 1000}", 100_000),
    ] {
        assert_eq!(interval(rule), wanted, "{rule}");
    }
}

fn alone(text: &str) -> Limiter {
    super::limiter(text, Rc::new(FakeSharedData::default()))
}

/// The host reads headers only if they are used.
#[test]
fn headers_are_read_if_a_plan_needs_one() {
    for (plans, reads) in [
        ("", false),
        (", plans: {of: {a: {rpu: 9}}}", false),
        (", plans: {by: [{jwt_claim: plan, payload: p}], of: {a: {rpu: 9}}}", false),
        (", plans: {by: [{header: x-plan}], of: {a: {rpu: 9}}}", true),
    ] {
        let actors = "actors: {net: [{client_address: {}}]}";
        let rules = format!("rules: [{{actor: net, unit: day, rpu: 5, scope: local{plans}}}]");
        let limiter = alone(&format!("{actors}\nlimits: [{{Url: /, {rules}}}]"));
        assert_eq!(limiter.reads_headers(), reads, "{plans}");
    }
}

/// A new limiter uses the other workers' state of Redis from its first request on.
#[test]
fn new_limiter_starts_in_degraded_mode_without_redis() {
    for is_away in [true, false] {
        let data = Rc::default();
        if is_away {
            crate::redis::client::Worker::of(&data).fail(0);
        }
        let mut limiter = built_in(data, true, |_| {}).unwrap();
        let request = FakeRequest::get("/").header("x-account-id", "ann");
        let verdict = limiter.decide(&request, 0, &FakeClock::default());
        assert_eq!(matches!(verdict, Verdict::Pending { .. }), !is_away, "{verdict:?}");
    }
}
