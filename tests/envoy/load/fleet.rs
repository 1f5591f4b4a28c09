//! Rules that three gateways of two workers each count together, in a real Redis.

mod centre;
mod exact;
mod faults;
mod in_flight;
mod modes;
mod operator;
mod plans;
mod quotas;
mod roots;
mod scale;
mod settling;
mod still;
mod totals;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::harness::{
    Client, Envoy, Gateway, Histogram, Hit, OpenLoad, PASSWORD, Redis, Shot, Wire, eventually,
    request, start_all,
};

const GATEWAYS: usize = 3;
const WORKERS: u32 = 2;
const SECOND: u64 = 1_000_000;

/// Each gateway has a wire of its own to one Redis, or none to a Redis that is several.
struct Fleet<R = Redis> {
    redis: R,
    wires: Vec<Wire>,
    envoys: Arc<Vec<Envoy>>,
}

/// A gateway of the namespace `shop` that waits for Redis no longer than `timeout` microseconds, and
/// refuses with a status that Envoy itself never gives.
fn gateway(timeout: u64, limits: &str, port: u16) -> Gateway {
    let redis = format!(
        "redis: {{cluster: diana_redis, timeout: {}ms, password_env: PASSWORD}}",
        timeout / 1_000
    );
    Gateway::with(&format!("namespace: shop\nresponse: {{status: 429}}\n{redis}\n{limits}"))
        .workers(WORKERS)
        .variable("PASSWORD", PASSWORD)
        .without_access_log()
        .precise_timers()
        .redis(port)
}

impl Fleet {
    fn start(timeout: u64, limits: &str) -> Fleet {
        Fleet::start_with(|port, _| gateway(timeout, limits, port))
    }

    /// With gateways that may differ, each of which reaches Redis by a port.
    fn start_with(gateway: impl Fn(u16, usize) -> Gateway) -> Fleet {
        let redis = Redis::with_password(PASSWORD);
        let wires: Vec<Wire> = (0..GATEWAYS).map(|_| Wire::to(redis.port)).collect();
        let each = |(number, wire): (usize, &Wire)| gateway(wire.port, number);
        let gateways: Vec<Gateway> = wires.iter().enumerate().map(each).collect();
        Fleet { envoys: start_all(&gateways).into(), redis, wires }
    }

    /// Without wires, at which a Redis that is gone would look otherwise.
    fn start_at_redis(timeout: u64, limits: &str) -> Fleet {
        let redis = Redis::with_password(PASSWORD);
        let gateway = gateway(timeout, limits, redis.port);
        let gateways = [0; GATEWAYS].map(|_| gateway.clone());
        Fleet { envoys: start_all(&gateways).into(), redis, wires: vec![] }
    }
}

impl<R> Fleet<R> {
    /// The ports of the gateways, and their shares of a load.
    fn shared_as(&self, shares: [u32; GATEWAYS]) -> Vec<(u16, u32)> {
        self.envoys.iter().map(|envoy| envoy.port).zip(shares).collect()
    }

    /// Sends GETs until all workers know of each other and count together.
    #[track_caller]
    fn comes_together(&self, path: &str) {
        let load = OpenLoad {
            gateways: &self.shared_as([1; GATEWAYS]),
            rate: 100,
            lasting: Duration::from_secs(60),
            // No multiple of the gateways, or each sender would come to one of them only, with a connection that may
            // lead to the same worker as all others.
            patience: 10 * GATEWAYS + 1,
            requests: &[request("GET", path, &[])],
        };
        load.fire_during(|| self.is_together_again());
    }

    /// Waits until all workers that serve requests count together.
    #[track_caller]
    fn is_together_again(&self) {
        eventually("the fleet to count together", || {
            self.envoys.iter().all(counts_with_others).then_some(())
        });
    }

    /// How long requests have waited for Redis at each gateway. There may be no load at this time.
    #[track_caller]
    fn waits(&self) -> Vec<Histogram> {
        self.envoys.iter().map(waits).collect()
    }

    #[track_caller]
    fn assert_unharmed(&self) {
        self.envoys.iter().for_each(Envoy::assert_unharmed);
    }
}

/// How many workers of a gateway count in a mode.
fn mode(envoy: &Envoy, mode: &str) -> u64 {
    envoy.stat(&format!("wasmcustom.diana.shop.mode.{mode}")).unwrap_or(0)
}

fn counts_with_others(envoy: &Envoy) -> bool {
    (mode(envoy, "gateway"), mode(envoy, "fleet")) == (0, WORKERS.into())
}

fn counts_alone(envoy: &Envoy) -> bool {
    (mode(envoy, "gateway"), mode(envoy, "fleet")) == (WORKERS.into(), 0)
}

/// How long requests have waited for Redis, in microseconds.
#[track_caller]
fn waits(envoy: &Envoy) -> Histogram {
    // Envoy merges all histograms at once, and now and then.
    let completed = envoy.stat("http.gateway.downstream_rq_completed").unwrap();
    eventually("all times to be merged", || {
        let times = envoy.histogram("http.gateway.downstream_rq_time")?;
        (times.count() >= completed).then_some(())
    });
    envoy.histogram("wasmcustom.diana.shop.fleet.wait_us").unwrap_or_default()
}

/// The requests that were let through, in the order of the answers.
fn admitted<'h>(hits: impl IntoIterator<Item = &'h Hit>) -> Vec<Shot> {
    let shots = hits.into_iter().map(|hit| hit.shot);
    let mut shots: Vec<Shot> = shots.filter(|shot| shot.status == 200).collect();
    shots.sort_by_key(|shot| shot.received);
    shots
}

/// Fails unless each was let through or refused by a rule.
#[track_caller]
fn assert_none_failed(hits: &[Hit]) {
    let failed: Vec<_> = hits.iter().filter(|hit| ![200, 429].contains(&hit.shot.status)).collect();
    assert!(failed.is_empty(), "{} of {} failed: {failed:?}", failed.len(), hits.len());
}

/// How many of so many equal requests are let through, of which each of these ports has a connection at once.
fn at_once(ports: impl Iterator<Item = u16>, bytes: &[u8], of: usize) -> usize {
    let next = AtomicUsize::new(0);
    let send = |port: u16| {
        let mut client = Client::connect(port).unwrap();
        let mut admitted = 0;
        while next.fetch_add(1, Ordering::Relaxed) < of {
            let status = client.send(bytes).unwrap().status;
            assert!([200, 429].contains(&status), "{status}");
            admitted += usize::from(status == 200);
        }
        admitted
    };
    let send = &send;
    thread::scope(|scope| {
        let threads: Vec<_> = ports.map(|port| scope.spawn(move || send(port))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}
