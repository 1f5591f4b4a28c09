//! Several Redis servers through Envoy's Redis proxy, with the shipped files of envoy/redis/.

mod cluster;
mod faults;
mod nodes;
mod outages;
mod permissions;
mod rotation;
mod sentinel;
mod shards;
mod tls;
mod topologies;

use super::measure::TIMEOUT;
use super::{Fleet, GATEWAYS, WORKERS, counts_in_fleet, mode};
use crate::harness::{Gateway, eventually, start_all};

/// The servers of one of the files.
trait Servers {
    /// The name of the file.
    const FILE: &'static str;

    /// The ports of the servers, in the order of the ports 17001, 17002 … in the file.
    fn ports(&self) -> Vec<u16>;
}

/// A gateway with the configuration of a file, after further replacements. Its timeout for Redis is
/// longer than in the file.
#[track_caller]
fn gateway<S: Servers>(servers: &S, replaced: &[(&str, &str)], limits: &str) -> Gateway {
    let ports: Vec<(String, String)> = (17001..)
        .zip(servers.ports())
        // In two steps, since a new port may equal one that is replaced later.
        .map(|(old, new)| (format!("port_value: {old}"), format!("port_value: !{new}")))
        .collect();
    let mut all: Vec<(&str, &str)> = ports.iter().map(|(old, new)| (&**old, &**new)).collect();
    all.extend([("port_value: !", "port_value: "), ("fleet", "shop")]);
    let timeout = format!("timeout: {}ms", TIMEOUT.as_millis());
    all.extend([("timeout: 50ms", &*timeout), ("timeout: 0.03s", "timeout: 0.15s")]);
    all.extend(replaced);
    let rules =
        |redis: &_| format!("namespace: shop\nresponse: {{status: 429}}\nredis: {redis}\n{limits}");
    Gateway::as_in(S::FILE, &all, rules).workers(WORKERS).without_access_log().precise_timers()
}

/// A fleet of equal gateways.
#[track_caller]
fn start<S: Servers>(servers: S, gateway: &Gateway) -> Fleet<S> {
    let gateways = [0; GATEWAYS].map(|_| gateway.clone());
    Fleet { envoys: start_all(&gateways), redis: servers, wires: vec![] }
}

/// Sends requests until all workers count in Redis.
#[track_caller]
fn reach_redis<R>(fleet: &Fleet<R>, path: &str) {
    eventually("answers of Redis through redis_proxy", || {
        fleet.envoys.iter().for_each(|envoy| drop(envoy.statuses(4, path, &[])));
        fleet.envoys.iter().all(counts_in_fleet).then_some(())
    });
}
