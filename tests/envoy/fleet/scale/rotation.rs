//! A password of Redis that changes while gateways count: they learn the new one by the file of their clusters, without
//! a restart and without a request that fails.

use std::time::Duration;

use super::cluster::Cluster;
use super::nodes::ok;
use super::{gateway, reach_redis, start};
use crate::harness::{Envoy, OpenLoad, PASSWORD, alone, request};

const RULES: &str = "
limits: [{Url: /, rules: [{actor: all, unit: second, rpu: 30, algo: W, scope: global}]}]
";

const NEXT: &str = "simsim";

/// What Redis said against the password.
fn locked_out(envoy: &Envoy) -> u64 {
    let of = |name| envoy.sum(&format!("wasmcustom.diana.shop.fleet.failed.{name}"));
    ["noauth", "wrongpass", "noperm"].map(of).iter().sum()
}

#[test]
fn of_a_password_needs_no_restart() {
    alone();
    let cluster = Cluster::start(None);
    let before = gateway(&cluster, &[], RULES).with_clusters_in_a_file();
    let source = ("{ environment_variable: DIANA_REDIS_PASSWORD }", "{ inline_string: simsim }");
    let after = gateway(&cluster, &[source], RULES).with_clusters_in_a_file();
    let fleet = start(cluster, &before);
    reach_redis(&fleet, "/");
    let load = OpenLoad {
        gateways: &fleet.shared_as([1; super::GATEWAYS]),
        rate: 150,
        lasting: Duration::from_secs(60),
        patience: 60,
        requests: &[request("GET", "/", &[])],
    };
    let set = |rule: &str| {
        fleet
            .redis
            .nodes
            .all()
            .iter()
            .for_each(|node| ok(node, &["ACL", "SETUSER", "diana", rule]));
    };
    let (hits, ()) = load.fire_during(|| {
        set(&format!(">{NEXT}"));
        fleet.envoys.iter().for_each(|envoy| envoy.put_clusters(&after));
        set(&format!("<{PASSWORD}"));
        // Whoever logged in with the old password is still in.
        for node in fleet.redis.nodes.all() {
            node.command(&["CLIENT", "KILL", "USER", "diana"]);
        }
        fleet.is_together_again();
    });
    super::super::assert_none_failed(&hits);
    assert_eq!(fleet.envoys.iter().map(locked_out).sum::<u64>(), 0);
    fleet.assert_unharmed();
}
