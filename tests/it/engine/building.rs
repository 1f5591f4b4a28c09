//! Policies that no document means, as a program might make them: none is bent until something can be built.

use diana_core::engine::{Engine, Unbuildable};
use diana_core::key::Seed;
use diana_core::policy::{Policy, Rule};
use diana_core::redis::client::{Client, Endpoint};
use diana_core::redis::part::Parts;
use diana_core::redis::protocol::Login;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use kit::fake::FakeSharedData;
use std::rc::Rc;

/// What is wrong with a policy of one rule for the fleet, which was changed.
fn wrong(change: impl FnOnce(&mut Policy)) -> Option<Unbuildable> {
    built(true, change).err()
}

/// The same, with a Redis or without.
fn built(has_redis: bool, change: impl FnOnce(&mut Policy)) -> Result<Engine, Unbuildable> {
    let text = b"limits: [{Url: /, rules: [{name: r, actor: account, unit: hour, rpu: 5, scope: global}]}]";
    let mut policy = diana_config::parse(text).unwrap();
    change(&mut policy);
    let data = Rc::new(FakeSharedData::default());
    let mut tables = Tables::default();
    let stores = Stores::new("test".into(), data.clone(), &mut tables);
    let seed = Seed { k0: 1, k1: 2 };
    let way = Endpoint {
        cluster: "redis".into(),
        timeout: 20_000,
        login: Login::default(),
        parts: Parts::ONE,
    };
    let client = has_redis.then(|| Client::new(way, "test", data, seed, 7));
    Engine::new(policy, seed, stores, client)
}

fn wrong_rule(change: impl FnOnce(&mut Rule)) -> Option<Unbuildable> {
    wrong(|policy| change(&mut policy.limits[0].rules[0]))
}

fn says(name: &str, why: &'static str) -> Option<Unbuildable> {
    Some(Unbuildable { name: name.into(), why })
}

#[test]
fn what_nothing_can_be_built_from_is_refused() {
    assert_eq!(wrong(|_| {}), None);
    let wrong_algo = wrong_rule(|rule| rule.algo = "XY");
    assert_eq!(wrong_algo, says("r", "no such algorithm"));
    assert_eq!(wrong_algo.unwrap().to_string(), "`r`: no such algorithm");
    assert_eq!(wrong_rule(|rule| rule.quota.cost = 6), says("r", "its numbers mean nothing"));
    assert_eq!(
        wrong_rule(|rule| rule.quota.warm_up = Some(1_000_000)),
        says("r", "Redis cannot count by its algorithm")
    );
    let warm_up = |policy: &mut Policy| policy.limits[0].rules[0].quota.warm_up = Some(1_000_000);
    assert!(built(false, warm_up).is_ok(), "each gateway counts for itself");
    assert_eq!(
        wrong(|policy| policy.actors[0].sources[0].kind = "nobody"),
        says("account", "no such source")
    );
}

/// Ticks between two calls of a worker by which it sees to what is not asked for.
#[test]
fn a_worker_is_called_as_often_as_what_it_keeps_demands() {
    let interval = |rule: &str| {
        let text = format!("limits: [{{Url: /, rules: [{{actor: account, unit: day, {rule}}}]}}]");
        let data = Rc::new(FakeSharedData::default());
        let mut tables = Tables::default();
        let stores = Stores::new("test".into(), data, &mut tables);
        let policy =
            diana_config::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
        Engine::new(policy, Seed { k0: 1, k1: 2 }, stores, None).unwrap().tick_interval()
    };
    for (rule, wanted) in [
        // Permits go back soon.
        ("algo: W, rpu: 5, scope: gateway", 12_500),
        ("algo: TB, rpu: 5, scope: gateway", 12_500),
        // Nobody holds places in advance.
        ("algo: LB, rpu: 100000, max_delay: 9s, scope: gateway", 100_000),
        ("algo: W, rpu: 5, scope: local", 1_000_000),
        ("algo: W, rpu: 5, scope: local, hot: {over: 9, per: 1s}", 100_000),
        ("algo: W, rpu: 5, scope: local, quota: {accounts: 1000}", 1_000_000),
        // Quotas are not lent.
        ("algo: W, rpu: 5, scope: global, quota: {accounts: 1000}", 100_000),
    ] {
        assert_eq!(interval(rule), wanted, "{rule}");
    }
}
