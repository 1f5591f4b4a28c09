//! Two gateways of two workers share limits in one Redis: sequential requests to each feature, with
//! exact counts.

use crate::harness::{Envoy, Gateway, Redis, eventually, start_all};
use crate::operator::{TOKEN, operate};

const RULES: &str = r#"
namespace: shop
response: {status: 429}
redis: {cluster: diana_redis, timeout: 1s}
admin: {path: /.diana, token_env: DIANA_TOKEN}
plans: {tiers: {by: [{header: x-plan}], of: {free: {rpu: 20}, gold: {rpu: 30}}}}
limits:
  - {Url: /window, rules: [{name: window, actor: account, unit: day, rpu: 20, algo: W, scope: global}]}
  - {Url: /sliding, rules: [{actor: account, unit: day, rpu: 20, algo: SW, scope: global}]}
  - {Url: /bucket, rules: [{actor: account, unit: day, rpu: 20, algo: TB, scope: global}]}
  - {Url: /quota, rules: [{actor: account, unit: day, rpu: 20, algo: W, scope: global, quota: {accounts: 1000, error: 0.0001}}]}
  - {Url: /plans, rules: [{actor: account, unit: day, rpu: 20, algo: W, scope: global, plans: tiers}]}
  - {Url: /two, rules: [{actor: account, unit: day, rpu: 20, algo: W, scope: global},
      {actor: address, unit: day, rpu: 1000, algo: SW, scope: global}]}
"#;

const LIMIT: usize = 20;
const REQUESTS: usize = 50;

/// Two gateways with one Redis.
fn fleet() -> (Redis, Vec<Envoy>) {
    let redis = Redis::start();
    let gateway = Gateway::with(RULES).workers(2).variable("DIANA_TOKEN", TOKEN).redis(redis.port);
    let envoys = start_all(&[gateway.clone(), gateway]);
    (redis, envoys)
}

/// The number of a caller's admitted requests, sent to the gateways in turn.
fn admitted(envoys: &[Envoy], path: &str, headers: &[(&str, &str)]) -> usize {
    let statuses: Vec<u16> = (0..REQUESTS)
        .map(|number| envoys[number % envoys.len()].get(path, headers).status)
        .collect();
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    statuses.iter().filter(|status| **status == 200).count()
}

#[test]
fn gateways_share_each_kind_of_limit_exactly() {
    let (_redis, envoys) = fleet();
    for path in ["/window", "/sliding", "/bucket", "/quota", "/plans", "/two"] {
        for account in ["a", "b"] {
            let account = [("x-account-id", account)];
            assert_eq!(admitted(&envoys, path, &account), LIMIT, "{path} {account:?}");
        }
    }
    let gold = [("x-account-id", "c"), ("x-plan", "gold")];
    assert_eq!(admitted(&envoys, "/plans", &gold), 30);
    envoys.iter().for_each(Envoy::assert_unharmed);
}

#[test]
fn reset_at_one_gateway_counts_at_the_other() {
    let (_redis, envoys) = fleet();
    let account = [("x-account-id", "a")];
    assert_eq!(admitted(&envoys, "/window", &account), LIMIT);
    let (status, answer) = operate(&envoys[0], "POST", "/reset?rule=window&actor.account=a");
    assert_eq!(status, 200, "{answer}");
    // The other gateway may cache its last refusal for a moment.
    eventually("the reset at the other gateway", || {
        (envoys[1].get("/window", &account).status == 200).then_some(())
    });
    assert_eq!(admitted(&envoys, "/window", &account), LIMIT - 1);
    envoys.iter().for_each(Envoy::assert_unharmed);
}

#[test]
fn gateways_rejoin_when_redis_returns() {
    let (mut redis, envoys) = fleet();
    let ask = |envoy: &Envoy, account: &str| envoy.get("/window", &[("x-account-id", account)]);
    envoys.iter().for_each(|envoy| assert_eq!(ask(envoy, "a").status, 200));
    redis.kill();
    let together = |envoy: &Envoy| {
        let mode = |name| envoy.metric_of("shop", &format!("mode.{name}")).unwrap_or(0);
        mode("gateway") == 0 && mode("fleet") > 0
    };
    for envoy in &envoys {
        eventually("the gateway to count alone", || {
            assert!([200, 429].contains(&ask(envoy, "b").status));
            (!together(envoy)).then_some(())
        });
    }
    redis.restart();
    for envoy in &envoys {
        eventually("the gateway to count in Redis again", || {
            assert!([200, 429].contains(&ask(envoy, "c").status));
            together(envoy).then_some(())
        });
    }
    assert_eq!(admitted(&envoys, "/window", &[("x-account-id", "d")]), LIMIT);
    envoys.iter().for_each(Envoy::assert_unharmed);
}
