//! Two gateways of two workers share limits in one Redis: sequential requests to each feature, with
//! exact counts.

use crate::harness::{
    Envoy, Gateway, Redis, Wire, eventually, is_native, pipe_listener, start_all, start_whole,
};
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
  - {Url: /after, rules: [{name: after, actor: account, unit: day, rpu: 20, algo: W, scope: global, ask: after}]}
"#;

const LIMIT: usize = 20;
const REQUESTS: usize = 50;

/// Two gateways with one Redis, by a cluster.
fn fleet() -> (Redis, Vec<Envoy>) {
    fleet_of(RULES, Gateway::redis)
}

/// The same, by a pipe.
fn fleet_by_pipe() -> (Redis, Vec<Envoy>) {
    let rules = RULES.replace("cluster: diana_redis", "pipe: target/redis.sock");
    fleet_of(&rules, Gateway::redis_by_pipe)
}

fn fleet_of(rules: &str, with_redis: fn(Gateway, u16) -> Gateway) -> (Redis, Vec<Envoy>) {
    let redis = Redis::start();
    let gateway = Gateway::with(rules).workers(2).variable("DIANA_TOKEN", TOKEN);
    let gateway = with_redis(gateway, redis.port);
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
    share_each_kind_of_limit(&fleet().1);
}

#[test]
fn gateways_share_each_kind_of_limit_by_a_pipe() {
    if is_native() {
        share_each_kind_of_limit(&fleet_by_pipe().1);
    }
}

#[track_caller]
fn share_each_kind_of_limit(envoys: &[Envoy]) {
    for path in ["/window", "/sliding", "/bucket", "/quota", "/plans", "/two"] {
        for account in ["a", "b"] {
            let account = [("x-account-id", account)];
            assert_eq!(admitted(envoys, path, &account), LIMIT, "{path} {account:?}");
        }
    }
    let gold = [("x-account-id", "c"), ("x-plan", "gold")];
    assert_eq!(admitted(envoys, "/plans", &gold), 30);
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

/// The workers of one gateway admit no more than the limit. A gateway that does not know the caller admits one request at
/// least. In the end Redis has charged all of them.
#[test]
fn requests_that_are_decided_first_are_charged_once() {
    decide_first(&fleet().1);
}

#[test]
fn requests_that_are_decided_first_are_charged_once_by_a_pipe() {
    if is_native() {
        decide_first(&fleet_by_pipe().1);
    }
}

#[track_caller]
fn decide_first(envoys: &[Envoy]) {
    let account = [("x-account-id", "a")];
    // Before the first reply of Redis a gateway does not know the secret of the fleet, by which callers are counted.
    envoys.iter().for_each(|envoy| assert_eq!(envoy.get("/window", &account).status, 200));
    let is_charged = |permits: usize| {
        eventually("the charge of all admitted requests", || {
            let (status, answer) = operate(&envoys[0], "GET", "/usage?rule=after&actor.account=a");
            assert_eq!(status, 200, "{answer}");
            (answer["callers"][0]["used"] == permits).then_some(())
        });
    };
    assert_eq!(admitted(&envoys[..1], "/after", &account), LIMIT);
    is_charged(LIMIT);
    let more = admitted(&envoys[1..], "/after", &account);
    assert!((1..=LIMIT).contains(&more), "{more}");
    is_charged(LIMIT + more);
    // Both know of each other now.
    eventually("a refusal of the second gateway", || {
        (envoys[1].get("/after", &account).status == 429).then_some(())
    });
    envoys.iter().for_each(Envoy::assert_unharmed);
}

#[test]
fn gateways_rejoin_when_redis_returns() {
    rejoin(fleet(), Redis::kill, Redis::restart);
}

#[test]
fn gateways_rejoin_by_a_pipe_when_redis_returns() {
    if is_native() {
        rejoin(fleet_by_pipe(), Redis::kill, Redis::restart);
        rejoin(fleet_by_pipe(), |redis| redis.freeze(), |redis| redis.thaw());
    }
}

/// Redis fails and returns, and no request fails.
#[track_caller]
fn rejoin((mut redis, envoys): (Redis, Vec<Envoy>), fail: fn(&mut Redis), revive: fn(&mut Redis)) {
    let ask = |envoy: &Envoy, account: &str| envoy.get("/window", &[("x-account-id", account)]);
    envoys.iter().for_each(|envoy| assert_eq!(ask(envoy, "a").status, 200));
    fail(&mut redis);
    let together = |envoy: &Envoy| {
        let mode = |name: &str| envoy.metric_of("shop", &format!("mode.{name}")).unwrap_or(0);
        mode("gateway") == 0 && mode("fleet") > 0
    };
    for envoy in &envoys {
        eventually("the gateway to count alone", || {
            assert!([200, 429].contains(&ask(envoy, "b").status));
            (!together(envoy)).then_some(())
        });
    }
    revive(&mut redis);
    for envoy in &envoys {
        eventually("the gateway to count in Redis again", || {
            assert!([200, 429].contains(&ask(envoy, "c").status));
            together(envoy).then_some(())
        });
    }
    assert_eq!(admitted(&envoys, "/window", &[("x-account-id", "d")]), LIMIT);
    envoys.iter().for_each(Envoy::assert_unharmed);
}

/// Two primaries behind one address.
#[test]
fn second_store_is_counted_and_logged_once() {
    let stores = [Redis::start(), Redis::start()];
    let wire = Wire::to_any_of(&stores.each_ref().map(|redis| redis.port));
    let by_pipe = RULES.replace("cluster: diana_redis", "pipe: target/redis.sock");
    let by_cluster: (&str, fn(Gateway, u16) -> Gateway) = (RULES, Gateway::redis);
    let mut ways = vec![by_cluster];
    if is_native() {
        ways.push((&by_pipe, Gateway::redis_by_pipe));
    }
    for (rules, with_redis) in ways {
        let gateway = Gateway::with(rules).workers(2).variable("DIANA_TOKEN", TOKEN);
        let envoy = with_redis(gateway, wire.port).start();
        let mut number = 0;
        eventually("the metric of several stores", || {
            number += 1;
            envoy.get("/window", &[("x-account-id", &number.to_string())]);
            (envoy.metric_of("shop", "fleet.split") > Some(2)).then_some(())
        });
        let line = "reach several stores";
        let log = eventually(line, || Some(envoy.log()).filter(|log| log.contains(line)));
        assert_eq!(log.matches(line).count(), 1, "{log}");
        envoy.assert_unharmed();
    }
}

#[test]
fn shipped_file_of_the_native_module_counts_in_redis() {
    if !is_native() {
        return;
    }
    let redis = Redis::start();
    let envoy = start_whole("envoy/native-fleet.yaml", Some(redis.port));
    eventually("the gateway to count in Redis", || {
        assert!([200, 503].contains(&envoy.get("/", &[]).status));
        (envoy.metric_of("fleet", "mode.fleet") > Some(0)).then_some(())
    });
    envoy.assert_unharmed();
}

/// The listener comes, changes and goes by LDS.
#[test]
fn listener_of_the_pipe_may_change() {
    if !is_native() {
        return;
    }
    let redis = Redis::start();
    let rules = RULES.replace("cluster: diana_redis", "pipe: target/redis.sock");
    let gateway = Gateway::with(&rules).workers(2).cluster("redis", redis.port);
    let gateway = gateway.variable("DIANA_TOKEN", TOKEN);
    let envoys = [gateway.start()];
    let [envoy] = &envoys;
    let mode = |name: &str| envoy.metric_of("shop", &format!("mode.{name}")).unwrap_or(0);
    let waits_for = |what: &str, other: &str| {
        eventually(what, || {
            assert!([200, 429].contains(&envoy.get("/window", &[("x-account-id", "b")]).status));
            (mode(what) > 0 && mode(other) == 0).then_some(())
        });
    };
    waits_for("gateway", "fleet");
    assert!(envoy.log().contains("redis.sock`: cannot connect: "), "{}", envoy.log());
    let mut listener = pipe_listener();
    for name in ["first", "second"] {
        listener["filter_chains"][0]["filters"][0]["typed_config"]["stat_prefix"] = name.into();
        envoy.put_beside(&gateway, &[listener.clone()]);
        waits_for("fleet", "gateway");
        assert_eq!(admitted(&envoys, "/window", &[("x-account-id", name)]), LIMIT);
        eventually(name, || envoy.stat(&format!("tcp.{name}.downstream_cx_total")));
    }
    envoy.put_beside(&gateway, &[]);
    waits_for("gateway", "fleet");
    envoy.put_beside(&gateway, &[listener]);
    waits_for("fleet", "gateway");
    envoy.assert_unharmed();
}
