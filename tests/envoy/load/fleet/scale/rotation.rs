//! The password of Redis changes while gateways count. They read the new one from the file of their
//! clusters or from a separate file, without a restart and without a failed request.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::cluster::Cluster;
use super::nodes::{Nodes, ok};
use super::shards::Shards;
use super::{Fleet, gateway, reach_redis, start};
use crate::harness::{Envoy, OpenLoad, PASSWORD, request};

const RULES: &str = "
limits: [{Url: /, rules: [{actor: all, unit: second, rpu: 30, algo: W, scope: global}]}]
";

const NEXT: &str = "simsim";

/// The source of the password in the files of envoy/redis/.
const SOURCE: &str = "{ environment_variable: DIANA_REDIS_PASSWORD }";

/// The number of authentication failures.
fn locked_out(envoy: &Envoy) -> u64 {
    let of = |name| envoy.sum(&format!("wasmcustom.diana.shop.fleet.failed.{name}"));
    ["noauth", "wrongpass", "noperm"].map(of).iter().sum()
}

/// Changes the password of Redis, while the gateways receive the new one.
#[track_caller]
fn change<R>(fleet: &Fleet<R>, nodes: &Nodes, learn: impl FnOnce()) {
    reach_redis(fleet, "/");
    let load = OpenLoad {
        gateways: &fleet.ports(),
        rate: 150,
        lasting: Duration::from_secs(60),
        connections: 60,
        requests: &[request("GET", "/", &[])],
    };
    let set = |rule: &str| {
        nodes.all().iter().for_each(|node| ok(node, &["ACL", "SETUSER", "diana", rule]));
    };
    let (hits, ()) = load.fire_during(|| {
        set(&format!(">{NEXT}"));
        learn();
        set(&format!("<{PASSWORD}"));
        // Connections with the old password are still authenticated.
        for node in nodes.all() {
            node.command(&["CLIENT", "KILL", "USER", "diana"]);
        }
        fleet.wait_until_together();
    });
    super::super::assert_none_failed(&hits);
    let refused: u64 = fleet.envoys.iter().map(locked_out).sum();
    println!("{refused} calls of Redis with the old password");
    fleet.assert_unharmed();
}

#[test]
fn password_changes_by_the_cluster_file() {
    let cluster = Cluster::start(None);
    let before = gateway(&cluster, &[], RULES).with_clusters_in_a_file();
    let source = (SOURCE, "{ inline_string: simsim }");
    let after = gateway(&cluster, &[source], RULES).with_clusters_in_a_file();
    let fleet = start(cluster, &before);
    change(&fleet, &fleet.redis.nodes, || {
        fleet.envoys.iter().for_each(|envoy| envoy.put_clusters(&after.clusters_in_file()));
    });
}

/// A separate file that Envoy reads at each connection.
struct PasswordFile(PathBuf);

impl PasswordFile {
    fn with(password: &str) -> PasswordFile {
        let name = format!("password-{}", std::process::id());
        let file = PasswordFile(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
        file.write(password);
        file
    }

    fn write(&self, password: &str) {
        fs::write(&self.0, password).unwrap();
    }
}

impl Drop for PasswordFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn password_changes_by_its_own_file() {
    let shards = Shards::start();
    let file = PasswordFile::with(PASSWORD);
    let source = format!("{{ filename: {} }}", file.0.display());
    let gateway = gateway(&shards, &[(SOURCE, &source)], RULES);
    let fleet = start(shards, &gateway);
    change(&fleet, &fleet.redis.nodes, || file.write(NEXT));
}
