//! The way to Redis through Envoy itself, without the filter: what gets through, and how each fault
//! of Redis or of the wire to it looks from the other end.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::harness::{
    Certificates, Envoy, Fault, Gateway, OpenLoad, Redis, Reply, Response, Wire, alone, eventually,
    exchange, free_port, pipeline, request, start_all,
};

const COUNT: &[&[&str]] = &[&["INCR", "count"], &["QUIT"]];

/// The bytes of a request that hands some commands to Redis.
fn post(commands: &[&[&str]]) -> Vec<u8> {
    let body = pipeline(commands);
    let mut bytes = request("POST", "/", &[("content-length", &body.len().to_string())]);
    bytes.extend(body);
    bytes
}

/// A gateway in front of Redis itself.
fn gateway(port: u16) -> Gateway {
    Gateway::with("limits: []").redis(port).into_redis()
}

/// The same by the way that envoy/fleet.yaml had before, which users may still have.
fn older_gateway(port: u16) -> Gateway {
    Gateway::with("limits: []").redis_by_listener(port).into_redis()
}

#[track_caller]
fn count(envoy: &Envoy) -> Response {
    exchange(envoy.port, &post(COUNT)).expect("an answer")
}

#[track_caller]
fn counts(envoy: &Envoy, expected: u32) {
    let answer = count(envoy);
    assert_eq!((answer.status, answer.body), (200, format!(":{expected}\r\n+OK\r\n")));
}

/// No answer in time. That it will be 200 has been said already, as soon as the connection was there.
/// And nothing stays behind.
#[track_caller]
fn breaks_off(envoy: &Envoy) {
    let error = exchange(envoy.port, &post(COUNT)).expect_err("half an answer");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    eventually("the connection to be closed", || {
        let redis =
            ["redis", "diana_redis"].map(|name| format!("cluster.{name}.upstream_cx_active"));
        (redis.iter().find_map(|name| envoy.stat(name)) == Some(0)).then_some(())
    });
}

#[test]
fn a_pipeline_reaches_redis_and_its_answers_come_back() {
    let redis = Redis::with_password("sesame");
    let envoy = gateway(redis.port).start();
    let answer = count(&envoy);
    assert!(answer.status == 200 && answer.body.starts_with("-NOAUTH "), "{answer:?}");
    let wrong = exchange(envoy.port, &post(&[&["AUTH", "simsim"], &["QUIT"]])).unwrap();
    assert!(wrong.body.starts_with("-WRONGPASS "), "{wrong:?}");
    let script = "return {KEYS[1], redis.call('INCR', KEYS[1]), 'x'}";
    let commands: [&[&str]; 3] = [&["AUTH", "sesame"], &["EVAL", script, "1", "count"], &["QUIT"]];
    let answer = exchange(envoy.port, &post(&commands)).unwrap();
    assert_eq!(answer.body, "+OK\r\n*3\r\n$5\r\ncount\r\n:1\r\n$1\r\nx\r\n+OK\r\n");
    assert_eq!(redis.command(&["GET", "count"]), Reply::Bulk("1".into()));
    redis.flush();
    assert_eq!(redis.command(&["GET", "count"]), Reply::Nil);
    envoy.assert_unharmed();
}

#[test]
fn a_long_pipeline_comes_back_whole() {
    let redis = Redis::start();
    let envoy = gateway(redis.port).start();
    let value = "x".repeat(100_000);
    let mut commands: Vec<&[&str]> = vec![&["INCR", "count"]; 2_000];
    let set: [&[&str]; 3] = [&["SET", "long", &value], &["GET", "long"], &["QUIT"]];
    commands.extend(set);
    let answer = exchange(envoy.port, &post(&commands)).unwrap();
    let numbers: String = (1..=2_000).map(|number| format!(":{number}\r\n")).collect();
    assert_eq!(answer.body, format!("{numbers}+OK\r\n$100000\r\n{value}\r\n+OK\r\n"));
}

/// Makes Redis listen for TLS as well, on the port that is returned.
fn tls(redis: &Redis, certificates: &Certificates) -> u16 {
    let port = free_port();
    for (setting, file) in [
        ("tls-cert-file", "server.pem"),
        ("tls-key-file", "server.key"),
        ("tls-ca-cert-file", "ca.pem"),
    ] {
        redis.configure(setting, certificates.folder().join(file).to_str().unwrap());
    }
    redis.configure("tls-auth-clients", "no");
    redis.configure("tls-port", &port.to_string());
    port
}

#[test]
fn over_tls() {
    let certificates = Certificates::new("redis");
    for gateway in [gateway, older_gateway] {
        over_tls_to(gateway, &certificates);
    }
}

fn over_tls_to(gateway: fn(u16) -> Gateway, certificates: &Certificates) {
    let mut redis = Redis::with_password("sesame");
    let port = tls(&redis, certificates);
    let to = |server: &str| {
        let socket = certificates.socket_to(server);
        gateway(port).redis_with(|redis| redis["transport_socket"] = socket.clone()).start()
    };
    let envoy = to("localhost");
    // More than the filter ever asks for. What Redis cannot write in one go, from 64 KiB on, is lost over TLS: it
    // drops the rest when it hears that the caller has said all.
    let value = "x".repeat(50_000);
    let commands: [&[&str]; 4] =
        [&["AUTH", "sesame"], &["SET", "long", &value], &["GET", "long"], &["QUIT"]];
    for _ in 0..20 {
        let answer = exchange(envoy.port, &post(&commands)).unwrap();
        assert_eq!(answer.body, format!("+OK\r\n+OK\r\n$50000\r\n{value}\r\n+OK\r\n"));
    }
    redis.freeze();
    // The handshake is part of connecting.
    assert_eq!(count(&envoy).status, 503);
    redis.thaw();
    let stranger = to("redis.example.com");
    assert_eq!(count(&stranger).status, 503);
    redis.kill();
    assert_eq!(count(&envoy).status, 503);
    envoy.assert_unharmed();
    stranger.assert_unharmed();
}

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
fn faults_of_redis() {
    let mut redis = Redis::start();
    let envoy = gateway(redis.port).start();
    counts(&envoy, 1);
    redis.freeze();
    breaks_off(&envoy);
    redis.thaw();
    // What it was told before it fell asleep it does when it wakes up.
    eventually("the late call", || {
        (redis.command(&["GET", "count"]) == Reply::Bulk("2".into())).then_some(())
    });
    counts(&envoy, 3);
    redis.kill();
    assert_eq!(count(&envoy).status, 503);
    redis.restart();
    counts(&envoy, 1);
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
