//! Several roots in one VM that ask the same Redis: of two listeners, and of rules before and after a change.

use std::thread;
use std::time::Duration;

use super::mode;
use crate::harness::{
    Client, Envoy, Fault, Gateway, Redis, Wire, alone, eventually, exchange, request,
};

const UPDATES: u64 = 15;

/// Rules for the fleet, the same but for the status that says whose they are.
fn rules(status: u16, count: usize) -> String {
    let rule = |n| {
        format!("{{name: r{n}, actor: account, unit: minute, rpu: 100000, algo: W, scope: global}}")
    };
    let rules: Vec<String> = (0..count).map(rule).collect();
    format!(
        "namespace: shop\nresponse: {{status: {status}}}\n\
         redis: {{cluster: diana_redis, timeout: 100ms}}\n\
         limits: [{{Url: /, rules: [{}]}}]",
        rules.join(", ")
    )
}

fn gateway(status: u16, count: usize, redis: u16) -> Gateway {
    Gateway::with(&rules(status, count)).without_access_log().precise_timers().redis(redis)
}

/// A request of a caller of whom nothing is known yet.
fn by(caller: usize) -> Vec<u8> {
    request("GET", "/", &[("x-account-id", &format!("caller-{caller}"))])
}

/// Requests to a port fail until Redis answers again.
fn hiccup(envoy: &Envoy, wire: &mut Wire, port: u16) {
    wire.set(Fault::Silent);
    assert_eq!(exchange(port, &by(1_000)).unwrap().status, 200);
    eventually("Redis to be missed", || {
        envoy.log().contains("cannot be relied upon").then_some(())
    });
    wire.set(Fault::None);
    eventually("Redis to be back", || envoy.log().contains("is back").then_some(()));
    calm_down();
}

/// Until no root has anything to come back for. Nothing that can be seen tells.
fn calm_down() {
    thread::sleep(Duration::from_millis(1_500));
}

#[test]
fn a_hiccup_that_the_second_listener_sees_strands_nobody_on_the_first() {
    alone();
    let redis = Redis::start();
    let mut wire = Wire::to(redis.port);
    let envoy = gateway(429, 1, wire.port).second_listener(&rules(430, 1)).start();
    assert_eq!(exchange(envoy.port, &by(0)).unwrap().status, 200);
    calm_down();
    hiccup(&envoy, &mut wire, envoy.second_port());
    for caller in 1..20 {
        assert_eq!(exchange(envoy.port, &by(caller)).map(|answer| answer.status).unwrap(), 200);
    }
    envoy.assert_unharmed();
}

#[test]
fn a_hiccup_while_a_listener_drains_strands_nobody_there() {
    alone();
    let redis = Redis::start();
    let mut wire = Wire::to(redis.port);
    let envoy = gateway(429, 1, wire.port).start();
    let mut clients: Vec<Client> = (0..5).map(|_| Client::connect(envoy.port).unwrap()).collect();
    for client in &mut clients {
        assert_eq!(client.send(&by(0)).unwrap().status, 200);
    }
    envoy.update(&gateway(430, 1, wire.port));
    calm_down();
    hiccup(&envoy, &mut wire, envoy.port);
    for (caller, client) in (1..).zip(&mut clients) {
        client.write(&by(caller)).unwrap();
        assert_eq!(client.read().unwrap().status, 200);
        thread::sleep(Duration::from_millis(200));
    }
    envoy.assert_unharmed();
}

#[test]
fn many_updates_leave_neither_memory_nor_gauges_behind() {
    alone();
    // One after the other: a third generation of rules would be no leak, but needs room, once.
    let ended = |envoy: &Envoy| envoy.stat("listener_manager.total_listeners_draining") == Some(0);
    update_often(|gateway| gateway.drains_for(1), ended);
}

/// As Envoy does unless it is told otherwise: for ten minutes.
#[test]
fn nor_do_they_while_all_the_old_listeners_drain() {
    alone();
    update_often(|gateway| gateway, |_| true);
}

/// Updates gateways that drain so, each time after the last update `ended`.
fn update_often(draining: impl Fn(Gateway) -> Gateway, ended: impl Fn(&Envoy) -> bool) {
    let redis = Redis::start();
    let gateway =
        |number: u64| draining(gateway(400 + number as u16, 60, redis.port)).give_memory_back();
    let envoy = gateway(0).start();
    let mut memory = Vec::new();
    for number in 1..=UPDATES {
        for _ in 0..3 {
            assert_eq!(exchange(envoy.port, &by(0)).unwrap().status, 200);
        }
        envoy.update(&gateway(number));
        eventually("the old rules to be given up", || (mode(&envoy, "fleet") == 0).then_some(()));
        eventually("the old listener to be gone", || ended(&envoy).then_some(()));
        memory.push(envoy.memory());
    }
    assert_eq!(exchange(envoy.port, &by(0)).unwrap().status, 200);
    eventually("one worker to count with the fleet", || {
        (mode(&envoy, "fleet") == 1 && mode(&envoy, "gateway") == 0).then_some(())
    });
    println!("KiB after each update: {memory:?}");
    let (early, late) = (memory[3], memory[memory.len() - 1]);
    assert!(late < early + 40 * 1024, "{memory:?}");
    envoy.assert_unharmed();
}
