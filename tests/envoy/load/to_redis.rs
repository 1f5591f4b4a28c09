//! The way to Redis through Envoy itself, under load and with faults of the wire.

use std::time::{Duration, Instant};

use crate::harness::{
    Envoy, Fault, Gateway, OpenLoad, Redis, Reply, Wire, alone, eventually, request, start_all,
};
use crate::to_redis::{COUNT, breaks_off, count, counts, gateway, older_gateway, post};

/// Redis closes each connection. One that is being closed must not get the next call, which the filter makes
/// while it hears the answer to the one before.
#[test]
fn each_call_of_the_filter_has_a_connection_of_its_own() {
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
            gateways: &[(envoy.port, 1)],
            rate: 500,
            lasting: Duration::from_secs(2),
            patience: 50,
            requests: &requests,
        };
        assert!(load.fire().iter().all(|hit| hit.shot.status == 200));
        // One is that which asks.
        let connections = redis.info("total_connections_received") - before - 1;
        eventually("as many calls as connections", || {
            let trips = envoy.stat("wasmcustom.diana.shop.fleet.trips");
            (trips == Some(connections)).then_some(())
        });
        assert_eq!(envoy.sum("wasmcustom.diana.shop.fleet.failed"), 0, "{}", envoy.log());
        envoy.assert_unharmed();
    }
}

#[test]
fn faults_of_the_wire() {
    for gateway in [gateway, older_gateway] {
        faults_of_the_wire_to(gateway);
    }
}

fn faults_of_the_wire_to(gateway: fn(u16) -> Gateway) {
    let redis = Redis::start();
    let mut wire = Wire::to(redis.port);
    let envoy = gateway(wire.port).start();
    counts(&envoy, 1);
    wire.set(Fault::Late(Duration::from_millis(100)));
    let start = Instant::now();
    counts(&envoy, 2);
    assert!(start.elapsed() >= Duration::from_millis(100));
    // Half an answer looks as whole as any: who reads it must find out.
    wire.set(Fault::Short(3));
    let answer = count(&envoy);
    assert_eq!((answer.status, answer.body.as_str()), (200, ":3\r"));
    wire.set(Fault::Short(0));
    let answer = count(&envoy);
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    wire.set(Fault::Garbage("220 smtp.example.com\r\n"));
    let answer = count(&envoy);
    assert_eq!((answer.status, answer.body.as_str()), (200, "220 smtp.example.com\r\n"));
    wire.set(Fault::Refused);
    assert_eq!(count(&envoy).status, 503);
    let before = wire.calls();
    wire.set(Fault::Silent);
    let start = Instant::now();
    breaks_off(&envoy);
    assert!(start.elapsed() >= Duration::from_millis(500));
    assert_eq!(wire.calls(), before + 1);
    wire.set(Fault::None);
    counts(&envoy, 5);
    // All but the one that broke off; only the late one took long.
    eventually("all times to be merged", || {
        let times = envoy.histogram("http.gateway.downstream_rq_time")?;
        (times.count() == 7).then(|| assert_eq!((times.above(50.0), times.above(200.0)), (1, 0)))
    });
    envoy.assert_unharmed();
}

#[test]
fn three_gateways_share_a_redis_and_clocks_may_differ() {
    alone();
    let redis = Redis::start();
    let wires = [0; 3].map(|_| Wire::to(redis.port));
    let [first, second, third] = [0, 1, 2].map(|number| gateway(wires[number].port).workers(2));
    let envoys = start_all(&[first, second.clock_ahead(3_600), third.clock_ahead(-3_600)]);
    let hour = |envoy: &Envoy| {
        let date = count(envoy).header("date").unwrap().to_owned();
        let mut parts = date.split([' ', ':']).skip(4).map(|part| part.parse::<i64>().unwrap());
        parts.next().unwrap() * 60 + parts.next().unwrap()
    };
    let hours: Vec<i64> = envoys.iter().map(hour).collect();
    for (ahead, minutes) in [(1, 60), (2, -60)] {
        let off = (hours[ahead] - hours[0] - minutes).rem_euclid(1_440);
        assert!([0, 1, 1_439].contains(&off), "{hours:?}");
    }
    redis.flush();
    let gateways = [(envoys[0].port, 90), (envoys[1].port, 5), (envoys[2].port, 5)];
    let load = OpenLoad {
        gateways: &gateways,
        rate: 500,
        lasting: Duration::from_secs(2),
        patience: 50,
        requests: &[post(COUNT)],
    };
    let hits = load.fire();
    assert_eq!(hits.len(), 1_000);
    assert!(hits.iter().all(|hit| hit.shot.status == 200));
    assert_eq!([900, 50, 50], [0, 1, 2].map(|n| hits.iter().filter(|h| h.gateway == n).count()));
    assert_eq!(redis.command(&["GET", "count"]), Reply::Bulk("1000".into()));
    assert!(wires[0].calls() >= 900 && wires[1].calls() >= 50, "each through its own wire");
    let most = hits.iter().map(|hit| hit.wait()).max().unwrap();
    println!(
        "the longest wait was {most:?}; Redis took {} commands",
        redis.info("total_commands_processed")
    );
    envoys.iter().for_each(Envoy::assert_unharmed);
}
