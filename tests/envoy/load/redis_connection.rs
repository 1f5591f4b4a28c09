//! The connections between the filter and Redis under load.

use std::time::Duration;

use crate::harness::{Gateway, OpenLoad, Redis, request};

/// Redis closes each connection after a reply. A connection that is being closed must not carry the
/// next call.
#[test]
fn calls_under_load_are_answered() {
    let by = |caller: usize| request("GET", "/", &[("x-account-id", &format!("caller-{caller}"))]);
    let requests: Vec<Vec<u8>> = (0..1_000).map(by).collect();
    let rules = "namespace: shop\nredis: {cluster: diana_redis, timeout: 1s}\n\
                 limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 1, scope: global}]}]";
    let filter = Gateway::with(rules).workers(2);
    for gateway in [Gateway::redis, Gateway::redis_by_listener] {
        let redis = Redis::start();
        let envoy = gateway(filter.clone(), redis.port).start();
        let before = redis.info("total_connections_received");
        let load = OpenLoad {
            gateways: &[envoy.port],
            rate: 500,
            lasting: Duration::from_secs(2),
            connections: 50,
            requests: &requests,
        };
        let hits = load.fire();
        assert!(hits.iter().all(|hit| hit.status == 200), "{hits:?}");
        let connections = redis.info("total_connections_received") - before - 1;
        let metric = |name: &str| envoy.sum(&format!("wasmcustom.diana.shop.fleet.{name}"));
        let (trips, failed) = (metric("trips"), metric("failed"));
        println!("{trips} calls by {connections} connections, {failed} failed");
        envoy.assert_unharmed();
    }
}
