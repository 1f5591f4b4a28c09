//! Redis that is several, reached through Envoy's own proxy by the files of envoy/redis/ as users get them.

mod bad;
mod cluster;
mod faults;
mod nodes;
mod numbers;
mod rights;
mod rotation;
mod sentinel;
mod shards;
mod tls;
mod together;

use super::{Fleet, GATEWAYS, WORKERS, counts_with_others};
use crate::harness::{Gateway, start_all};
use std::time::{Duration, Instant};

/// What the gateways wait for Redis, in microseconds.
const TIMEOUT: u64 = 250_000;

/// What one of the files leads to.
trait Way {
    /// The name of the file.
    const FILE: &'static str;

    /// Where the nodes are that the file names, in the order of the ports 17001, 17002 … in it.
    fn ports(&self) -> Vec<u16>;
}

/// A gateway by a file, in whose text more is replaced. It waits longer for Redis than the file says: other work on the
/// machine can take as long.
#[track_caller]
fn gateway<W: Way>(way: &W, replaced: &[(&str, &str)], limits: &str) -> Gateway {
    let ports: Vec<(String, String)> = (17001..)
        .zip(way.ports())
        // Not at once, as a port may be one that comes later in the file.
        .map(|(old, new)| (format!("port_value: {old}"), format!("port_value: !{new}")))
        .collect();
    let mut all: Vec<(&str, &str)> = ports.iter().map(|(old, new)| (&**old, &**new)).collect();
    all.extend([("port_value: !", "port_value: "), ("fleet", "shop")]);
    let timeout = format!("timeout: {}ms", TIMEOUT / 1_000);
    all.extend([("timeout: 50ms", &*timeout), ("timeout: 0.03s", "timeout: 0.15s")]);
    all.extend(replaced);
    let rules =
        |redis: &_| format!("namespace: shop\nresponse: {{status: 429}}\nredis: {redis}\n{limits}");
    Gateway::as_in(W::FILE, &all, rules).workers(WORKERS).without_access_log().precise_timers()
}

/// A fleet whose gateways are all the same.
#[track_caller]
fn start<W: Way>(way: W, gateway: &Gateway) -> Fleet<W> {
    let gateways = [0; GATEWAYS].map(|_| gateway.clone());
    Fleet { envoys: start_all(&gateways).into(), redis: way, wires: vec![] }
}

/// Sends requests until all workers count together; fails if answers do not get through.
#[track_caller]
fn reach_redis<R>(fleet: &Fleet<R>, path: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !fleet.envoys.iter().all(counts_with_others) {
        fleet.envoys.iter().for_each(|envoy| drop(envoy.statuses(4, path, &[])));
        if Instant::now() > deadline {
            let log = fleet.envoys[0].log();
            let said = log.lines().rfind(|line| line.contains("relied upon"));
            panic!(
                "POST does not reach redis_proxy or its answer is lost: {}",
                said.unwrap_or(&log)
            );
        }
    }
}
