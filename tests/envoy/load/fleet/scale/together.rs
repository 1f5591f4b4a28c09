//! Gateways count together by each of the files: exactly the limit, whichever way requests come, and by no more rights
//! than envoy/redis/users.conf gives.

use super::cluster::Cluster;
use super::sentinel::Sentinels;
use super::shards::Shards;
use super::{Fleet, GATEWAYS, TIMEOUT, Way, gateway, reach_redis, start};
use crate::harness::{NO_EXCUSE, Redis, Reply, alone, try_until_undisturbed};
use crate::load::fleet::modes::{Modes, alone_within, without_cause};

const LIMIT: usize = 40;
const REQUESTS: usize = 100;

/// Rules that have the script do all that it can, and one that shows whether the gateways count together.
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

impl<R> Fleet<R> {
    /// How many of the requests of a caller are let through, which go to all gateways in turn.
    #[track_caller]
    fn admitted(&self, path: &str, account: &str) -> usize {
        let send = |number: usize| {
            let envoy = &self.envoys[number % self.envoys.len()];
            envoy.get(path, &[("x-account-id", account)]).status
        };
        let statuses: Vec<u16> = (0..REQUESTS).map(send).collect();
        assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
        statuses.iter().filter(|status| **status == 200).count()
    }
}

/// Each caller gets exactly its limit, unless a gateway went alone, which only a machine that stood still excuses.
#[track_caller]
fn count_exactly<R>(fleet: &Fleet<R>) {
    reach_redis(fleet, "/together");
    let mut trial = 0;
    try_until_undisturbed("exact limits", || {
        trial += 1;
        let modes = Modes::watch(&fleet.envoys);
        let callers = EXACT.into_iter().flat_map(|path| ["ada", "grace"].map(|name| (path, name)));
        let counts: Vec<_> = callers
            .map(|(path, name)| (path, fleet.admitted(path, &format!("{name}-{trial}"))))
            .collect();
        reach_redis(fleet, "/together");
        let alone = modes.end();
        let most = LIMIT + alone_within(&alone, &(0..u64::MAX)) as usize * LIMIT.div_ceil(GATEWAYS);
        assert!(counts.iter().all(|(_, count)| *count <= most), "{counts:?}; {NO_EXCUSE}");
        let exact = counts.iter().all(|(_, count)| *count == LIMIT);
        assert!(exact || !alone.is_empty(), "{counts:?}; {NO_EXCUSE}");
        ((), without_cause(&alone, TIMEOUT))
    });
    for envoy in fleet.envoys.iter() {
        assert_eq!(envoy.statuses(3, "/line", &[]), [200; 3]);
    }
    fleet.assert_unharmed();
}

#[track_caller]
fn count_together<W: Way>(way: W, nodes: impl Fn(&W) -> &[Redis]) {
    let gateway = gateway(&way, &[], RULES);
    let fleet = start(way, &gateway);
    count_exactly(&fleet);
    for node in nodes(&fleet.redis) {
        assert_eq!(denied(node), "");
    }
}

/// What somebody wanted to do who may not, but for the PING that replicas and sentinels send before they log in.
fn denied(node: &Redis) -> String {
    let Reply::Array(denied) = node.command(&["ACL", "LOG"]) else { panic!("a list") };
    let texts = denied.iter().map(|entry| format!("{entry:?}\n"));
    let is_greeting =
        |text: &String| text.contains(r#"Bulk("ping")"#) && text.contains(r#"Bulk("default")"#);
    texts.filter(|text| !is_greeting(text)).collect()
}

#[test]
fn in_a_cluster() {
    alone();
    count_together(Cluster::start(None), |cluster| cluster.nodes.all());
}

#[test]
fn in_shards() {
    alone();
    count_together(Shards::start(), |shards| shards.nodes.all());
}

#[test]
fn behind_sentinels() {
    alone();
    count_together(Sentinels::start(None), |sentinels| sentinels.nodes.all());
}

#[test]
fn by_a_password_alone() {
    alone();
    let shards = Shards::without_users();
    let user = "auth_username: { inline_string: diana }";
    let gateway = gateway(&shards, &[(user, "")], RULES);
    count_exactly(&start(shards, &gateway));
}
