//! Proxies without a Redis: the log and a metric name the cause, and each gateway is in degraded
//! mode.

use super::{Servers, gateway, mode};
use crate::harness::{Envoy, Redis, Wire, eventually, free_port, start_all};
use crate::load::fleet::is_degraded;

/// One port in place of all nodes of a cluster.
struct Port(u16);

impl Servers for Port {
    const FILE: &'static str = "cluster";

    fn ports(&self) -> Vec<u16> {
        vec![self.0; 3]
    }
}

const DAILY: &str = "
limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 10, algo: W, scope: global}]}]
";

/// Fails unless a gateway admits the whole limit, since it knows no other gateway, and reports the
/// failure.
#[track_caller]
fn counts_by_itself(envoy: &Envoy, failure: &str, reason: &str) {
    for caller in 0..10 {
        let account = format!("account-{caller}");
        let statuses = envoy.statuses(15, "/", &[("x-account-id", &account)]);
        assert_eq!(statuses, [[200; 10].as_slice(), &[429; 5]].concat(), "{reason}");
    }
    eventually(reason, || is_degraded(envoy).then_some(()));
    let line = eventually("a line of the log", || {
        let log = envoy.log();
        log.lines().find(|line| line.contains(" unavailable: ")).map(str::to_owned)
    });
    assert!(line.contains(reason), "{reason}: {line}");
    assert!(envoy.sum(&format!("wasmcustom.diana.shop.fleet.failed.{failure}")) > 0, "{failure}");
    assert_eq!(mode(envoy, "fleet"), 0);
    envoy.assert_unharmed();
}

#[test]
fn gateway_without_redis_names_the_cause() {
    let empty_cluster = Redis::with(
        vec![
            "cluster-enabled yes".into(),
            format!("cluster-port {}", free_port()),
            format!("cluster-config-file {}.conf", free_port()),
        ],
        vec![],
    );
    let closing = Wire::to(free_port());
    let missing = (
        "address: { pipe: { path: target/redis.sock } }",
        "address: { pipe: { path: target/none.sock } }",
    );
    let envoys = start_all(&[
        gateway(&Port(empty_cluster.port), &[], DAILY),
        gateway(&Port(closing.port), &[], DAILY),
        gateway(&Port(free_port()), &[], DAILY),
        gateway(&Port(empty_cluster.port), &[missing], DAILY),
    ]);
    for (number, envoy) in envoys.iter().enumerate() {
        match number {
            3 => counts_by_itself(envoy, "unreachable", "Envoy cannot connect to it"),
            _ => counts_by_itself(envoy, "nohost", "no upstream host"),
        }
    }
}
