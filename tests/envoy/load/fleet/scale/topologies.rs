//! Gateways share limits with each of the files, with the permissions of envoy/redis/users.conf.

use super::cluster::Cluster;
use super::sentinel::Sentinels;
use super::shards::Shards;
use super::{Fleet, Servers, gateway, reach_redis, start};
use crate::harness::{Redis, Reply};

const LIMIT: usize = 40;
const REQUESTS: usize = 100;

/// Rules that use every part of the script, and one for the initial connection of the gateways.
const RULES: &str = "
limits:
  - {Url: /together, rules: [{actor: all, unit: second, rpu: 1000000, scope: global}]}
  - {Url: /window, rules: [{actor: account, unit: day, rpu: 40, algo: W, scope: global}]}
  - {Url: /sliding, rules: [{actor: account, unit: day, rpu: 40, algo: SW, scope: global}]}
  - {Url: /bucket, rules: [{actor: account, unit: day, rpu: 40, algo: TB, scope: global}]}
  - {Url: /quota, rules: [{actor: account, unit: day, rpu: 40, algo: W, scope: global, quota: {accounts: 1000, error: 0.0001}}]}
  - {Url: /ban, rules: [{actor: account, unit: day, rpu: 40, algo: W, scope: global,
      ban: {after: 100, within: 60s, for: 60s}}]}
  - {Url: /line, rules: [{actor: all, unit: second, rpu: 100, algo: LB, scope: global}]}
";
const EXACT: [&str; 5] = ["/window", "/sliding", "/bucket", "/quota", "/ban"];

/// The longest timeouts, as in the gate.
const PATIENT: [(&str, &str); 2] =
    [("timeout: 250ms", "timeout: 1s"), ("timeout: 0.15s", "timeout: 0.9s")];

/// Fails unless each caller gets exactly its limit by requests that go to all gateways in turn.
#[track_caller]
fn count_exactly<R>(fleet: &Fleet<R>) {
    reach_redis(fleet, "/together");
    for path in EXACT {
        for account in ["a", "b"] {
            let send = |number: usize| {
                let envoy = &fleet.envoys[number % fleet.envoys.len()];
                envoy.get(path, &[("x-account-id", account)]).status
            };
            let statuses: Vec<u16> = (0..REQUESTS).map(send).collect();
            assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
            let admitted = statuses.iter().filter(|status| **status == 200).count();
            assert_eq!(admitted, LIMIT, "{path}, {account}");
        }
    }
    for envoy in &fleet.envoys {
        assert_eq!(envoy.statuses(3, "/line", &[]), [200; 3]);
    }
    fleet.assert_unharmed();
}

#[track_caller]
fn assert_shared_limits<S: Servers>(servers: S, nodes: impl Fn(&S) -> &[Redis]) {
    let gateway = gateway(&servers, &PATIENT, RULES);
    let fleet = start(servers, &gateway);
    count_exactly(&fleet);
    for node in nodes(&fleet.redis) {
        assert_eq!(denied(node), "");
    }
}

/// The commands that were denied to a user, except the PING that replicas and sentinels send before
/// they authenticate.
fn denied(node: &Redis) -> String {
    let Reply::Array(denied) = node.command(&["ACL", "LOG"]) else { panic!("a list") };
    let texts = denied.iter().map(|entry| format!("{entry:?}\n"));
    let is_greeting =
        |text: &String| text.contains(r#"Bulk("ping")"#) && text.contains(r#"Bulk("default")"#);
    texts.filter(|text| !is_greeting(text)).collect()
}

#[test]
fn gateways_count_together_in_a_cluster() {
    assert_shared_limits(Cluster::start(None), |cluster| cluster.nodes.all());
}

#[test]
fn gateways_count_together_in_shards() {
    assert_shared_limits(Shards::start(), |shards| shards.nodes.all());
}

#[test]
fn gateways_count_together_behind_sentinels() {
    assert_shared_limits(Sentinels::start(None), |sentinels| sentinels.nodes.all());
}

#[test]
fn gateways_count_together_by_a_password_without_users() {
    let shards = Shards::without_users();
    let [op, filter] = PATIENT;
    let user = ("auth_username: { inline_string: diana }", "");
    let gateway = gateway(&shards, &[user, op, filter], RULES);
    count_exactly(&start(shards, &gateway));
}
