//! Three gateways of two workers each that share limits in one real Redis.

mod faults;
mod measure;
mod scale;
mod updates;

use std::time::Duration;

use crate::harness::{
    Envoy, Gateway, Hit, OpenLoad, PASSWORD, Redis, Wire, eventually, request, start_all,
};

const GATEWAYS: usize = 3;
const WORKERS: u32 = 2;

/// Each gateway has a connection with faults to Redis, or none if it connects directly.
struct Fleet<R = Redis> {
    redis: R,
    wires: Vec<Wire>,
    envoys: Vec<Envoy>,
}

/// A gateway of the namespace `shop`. It refuses with a status that Envoy itself never sends.
fn gateway(timeout: Duration, limits: &str, port: u16) -> Gateway {
    let timeout = timeout.as_millis();
    let redis =
        format!("redis: {{cluster: diana_redis, timeout: {timeout}ms, password_env: PASSWORD}}");
    Gateway::with(&format!("namespace: shop\nresponse: {{status: 429}}\n{redis}\n{limits}"))
        .workers(WORKERS)
        .variable("PASSWORD", PASSWORD)
        .without_access_log()
        .precise_timers()
        .redis(port)
}

impl Fleet {
    /// Starts gateways with a connection to Redis at the given port.
    fn start_with(gateway: impl Fn(u16) -> Gateway) -> Fleet {
        let redis = Redis::with_password(PASSWORD);
        let wires: Vec<Wire> = (0..GATEWAYS).map(|_| Wire::to(redis.port)).collect();
        let gateways: Vec<Gateway> = wires.iter().map(|wire| gateway(wire.port)).collect();
        Fleet { envoys: start_all(&gateways), redis, wires }
    }

    /// Starts gateways without such connections, which would hide the effects of a stopped Redis.
    fn start_at_redis(timeout: Duration, limits: &str) -> Fleet {
        let redis = Redis::with_password(PASSWORD);
        let gateway = gateway(timeout, limits, redis.port);
        Fleet { envoys: start_all(&[0; GATEWAYS].map(|_| gateway.clone())), redis, wires: vec![] }
    }
}

impl<R> Fleet<R> {
    fn ports(&self) -> Vec<u16> {
        self.envoys.iter().map(|envoy| envoy.port).collect()
    }

    /// Sends GETs until all workers count in Redis.
    #[track_caller]
    fn load_until_together(&self, path: &str) {
        let load = OpenLoad {
            gateways: &self.ports(),
            rate: 100,
            lasting: Duration::from_secs(60),
            // Coprime to the number of gateways, so that each connection reaches all of them in
            // turn.
            connections: 10 * GATEWAYS + 1,
            requests: &[request("GET", path, &[])],
        };
        load.fire_during(|| self.wait_until_together());
    }

    /// Waits until all workers that serve requests count in Redis.
    #[track_caller]
    fn wait_until_together(&self) {
        eventually("the fleet to count together", || {
            self.envoys.iter().all(counts_in_fleet).then_some(())
        });
    }

    #[track_caller]
    fn assert_unharmed(&self) {
        self.envoys.iter().for_each(Envoy::assert_unharmed);
    }
}

/// The number of workers of a gateway in a mode.
fn mode(envoy: &Envoy, mode: &str) -> u64 {
    envoy.metric_of("shop", &format!("mode.{mode}")).unwrap_or(0)
}

fn counts_in_fleet(envoy: &Envoy) -> bool {
    (mode(envoy, "gateway"), mode(envoy, "fleet")) == (0, WORKERS.into())
}

fn is_degraded(envoy: &Envoy) -> bool {
    (mode(envoy, "gateway"), mode(envoy, "fleet")) == (WORKERS.into(), 0)
}

/// Fails unless each request was admitted or refused by a rule.
#[track_caller]
fn assert_none_failed(hits: &[Hit]) {
    let failed: Vec<_> = hits.iter().filter(|hit| ![200, 429].contains(&hit.status)).collect();
    assert!(failed.is_empty(), "{} of {} failed: {failed:?}", failed.len(), hits.len());
}
