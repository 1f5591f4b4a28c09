//! Several roots in one VM that ask the same Redis: of two listeners, and of rules before and after a change.

use std::thread;
use std::time::Duration;

use super::mode;
use crate::harness::{
    Client, Clock, Complaint, Envoy, Fault, Gateway, NO_EXCUSE, Redis, Wire, alone, eventually,
    exchange, request, try_until_undisturbed,
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

/// Requests of each caller, which are all that it may send.
const LIMIT: usize = 120;

/// Sends all that callers may send, in turn and over connections that are kept until they are closed, and as much
/// again. How many were let through of each.
fn use_up(port: u16, callers: &[usize]) -> Vec<usize> {
    let mut client = Client::connect(port).unwrap();
    let mut admitted = vec![0; callers.len()];
    for _ in 0..2 * LIMIT {
        for (place, caller) in callers.iter().enumerate() {
            let answer = client.send(&by(*caller)).unwrap_or_else(|_| {
                client = Client::connect(port).unwrap();
                client.send(&by(*caller)).unwrap()
            });
            admitted[place] += usize::from(answer.status == 200);
            if answer.header("connection") == Some("close") {
                client = Client::connect(port).unwrap();
            }
        }
    }
    admitted
}

/// Who had a call out when its root ended asked again, and was charged twice.
#[test]
fn updates_that_drain_quickly_cost_nobody_a_permit() {
    alone();
    let redis = Redis::start();
    let mut wire = Wire::to(redis.port);
    wire.set(Fault::Late(Duration::from_millis(5)));
    let gateway = |number: u64| {
        let rules = rules(400 + number as u16, 1).replace("100000", &LIMIT.to_string());
        let rules = rules.replace("minute", "day").replace("100ms", "1s");
        Gateway::with(&rules)
            .without_access_log()
            .precise_timers()
            .redis(wire.port)
            .workers(2)
            .drains_for(1)
    };
    try_until_undisturbed("updates that drain quickly", || {
        let (envoy, clock) = (gateway(0).start(), Clock::new());
        let began = clock.now();
        let admitted: Vec<usize> = thread::scope(|scope| {
            let port = envoy.port;
            let busy: Vec<_> = (0..8)
                .map(|n| scope.spawn(move || use_up(port, &[n * 10, n * 10 + 1, n * 10 + 2])))
                .collect();
            let mut number = 0;
            while busy.iter().any(|thread| !thread.is_finished()) {
                number += 1;
                envoy.update(&gateway(number % 90));
                thread::sleep(Duration::from_millis(300));
            }
            println!("{number} updates");
            busy.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        envoy.assert_unharmed();
        if envoy.log().contains("cannot be relied upon") {
            // It gave its own part, too, and lost calls do not show.
            assert!(
                admitted.iter().all(|admitted| *admitted <= 2 * LIMIT),
                "{NO_EXCUSE}: {admitted:?}"
            );
            let what = format!("the gateway went alone: {admitted:?}");
            return (
                (),
                vec![Complaint::new(what, began..clock.now(), Duration::from_millis(250))],
            );
        }
        let lost = envoy.sum("wasmcustom.diana.shop.fleet.failed.lost");
        assert_eq!(lost, 0, "{NO_EXCUSE}: {admitted:?}");
        assert!(admitted.iter().all(|admitted| *admitted == LIMIT), "{NO_EXCUSE}: {admitted:?}");
        ((), vec![])
    });
}
