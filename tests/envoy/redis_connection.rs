//! The connection to Redis through Envoy itself, without the filter: transferred data, and the
//! effect of each fault of Redis or of the network.

use std::io::ErrorKind;

use serde_json::Value;

use crate::harness::{
    Certificates, Envoy, Gateway, PASSWORD, Redis, Reply, Response, assert_no_trap, eventually,
    exchange, free_port, is_native, pipeline, request,
};

pub const COUNT: &[&[&str]] = &[&["INCR", "count"], &["QUIT"]];

/// The bytes of a request that forwards commands to Redis.
pub fn post(commands: &[&[&str]]) -> Vec<u8> {
    let body = pipeline(commands);
    let mut bytes = request("POST", "/", &[("content-length", &body.len().to_string())]);
    bytes.extend(body);
    bytes
}

/// A gateway with Redis as upstream.
pub fn gateway(port: u16) -> Gateway {
    Gateway::with("limits: []").redis(port).into_redis()
}

/// The same with the former configuration of envoy/fleet.yaml, which users may still have.
pub fn older_gateway(port: u16) -> Gateway {
    Gateway::with("limits: []").redis_by_listener(port).into_redis()
}

#[track_caller]
pub fn count(envoy: &Envoy) -> Response {
    exchange(envoy.port, &post(COUNT)).expect("an answer")
}

#[track_caller]
pub fn counts(envoy: &Envoy, expected: u32) {
    let answer = count(envoy);
    assert_eq!((answer.status, answer.body), (200, format!(":{expected}\r\n+OK\r\n")));
}

/// A reply that times out. The status 200 has already been sent when the connection opened. No
/// connection stays open.
#[track_caller]
pub fn breaks_off(envoy: &Envoy) {
    let error = exchange(envoy.port, &post(COUNT)).expect_err("half an answer");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    eventually("the connection to be closed", || {
        let redis =
            ["redis", "diana_redis"].map(|name| format!("cluster.{name}.upstream_cx_active"));
        (redis.iter().find_map(|name| envoy.stat(name)) == Some(0)).then_some(())
    });
}

#[test]
fn pipeline_reaches_redis_and_returns_replies() {
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
fn long_pipeline_returns_every_reply() {
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

/// Makes Redis also listen for TLS, on the returned port.
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
fn redis_is_reached_over_tls() {
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
    // More than the filter ever reads. Over TLS, Redis loses data that it cannot write at once,
    // from 64 KiB on: it drops the rest when the caller closes its direction.
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

#[test]
fn redis_faults_have_distinct_responses() {
    let mut redis = Redis::start();
    let envoy = gateway(redis.port).start();
    counts(&envoy, 1);
    redis.freeze();
    breaks_off(&envoy);
    redis.thaw();
    // After it continues, it executes the command that it received before it stopped.
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

/// Redis, its cluster, its name or its password is missing when a gateway starts.
#[test]
fn gateway_starts_and_serves_without_redis() {
    const RULES: &str = "
redis: {cluster: diana_redis, password_env: MISSING}
limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 2, algo: W, scope: global}]}]";
    let unknown_name = |cluster: &mut Value| {
        cluster["type"] = "STRICT_DNS".into();
        let address = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address";
        cluster.pointer_mut(address).unwrap()["address"] = "redis.invalid".into();
    };
    let redis = Redis::with_password(PASSWORD);
    let gateway = || Gateway::with(RULES);
    for (what, gateway) in [
        ("no cluster", gateway()),
        ("no Redis", gateway().redis(free_port())),
        ("no name", gateway().redis(redis.port).redis_with(unknown_name)),
        ("no password", gateway().redis(redis.port)),
    ] {
        let envoy = gateway.start();
        assert_eq!(envoy.statuses(3, "/", &[]), [200, 200, 503], "{what}");
        // Envoy writes its log a moment later.
        let missing = "`MISSING` is not in the environment";
        let log = eventually(missing, || Some(envoy.log()).filter(|log| log.contains(missing)));
        assert_eq!(log.matches(missing).count(), 1, "{what}: {log}");
        assert_no_trap(&log);
    }
}

/// The native module calls from Envoy's main thread, which has no internal listeners.
#[test]
fn log_names_the_direct_form_for_an_internal_listener() {
    const RULES: &str = "
redis: {cluster: diana_redis, timeout: 1s}
limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 2, algo: W, scope: global}]}]";
    if !is_native() {
        return;
    }
    let redis = Redis::start();
    let envoy = Gateway::with(RULES).redis_by_listener(redis.port).start();
    assert_eq!(envoy.statuses(3, "/", &[]), [200, 200, 503]);
    let direct = "use `pipe`, as in envoy/native-fleet.yaml";
    let log = eventually(direct, || Some(envoy.log()).filter(|log| log.contains(direct)));
    assert_eq!(log.matches(direct).count(), 1, "{log}");
    // A Redis that replied and is away now needs no such line.
    let mut redis = redis;
    let envoy = Gateway::with(RULES).redis(redis.port).start();
    assert_eq!(envoy.statuses(3, "/", &[]), [200, 200, 503]);
    redis.kill();
    eventually("degraded mode", || {
        envoy.get("/", &[]);
        envoy.log().contains("is unavailable").then_some(())
    });
    assert!(!envoy.log().contains(direct), "{}", envoy.log());
    envoy.assert_unharmed();
}
