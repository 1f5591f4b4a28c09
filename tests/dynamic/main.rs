//! The dynamic module in a fake Envoy: several workers at once, updates, held requests, calls, and clients that leave. Envoy's
//! memory is as short-lived here as its interface permits, so that the address sanitizer finds each use after that.

#![allow(unsafe_code, reason = "the fake implements a C interface")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod callbacks;
mod config;
mod gateway;
mod hooks;
mod orders;
mod pipe;
mod stream;
mod worker;

use std::env;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;

use fastrand::Rng;
use gateway::Gateway;
use kit::seed;
use worker::{Tally, Worker};

const WORKERS: usize = 4;

/// The variable of a process of one test alone, and its value.
const APART: &str = "DIANA_TEST_APART";
const TOKEN: &str = "a token of 24 characters";

/// Returns true in a process of this test alone, which it runs otherwise: other tests would see its variables, its threads or its
/// limits.
fn is_apart(test: &str) -> bool {
    let is_apart = env::var_os(APART).is_some();
    if !is_apart {
        let mut apart = Command::new(env::current_exe().unwrap());
        assert!(apart.args(["--exact", test]).env(APART, TOKEN).status().unwrap().success());
    }
    is_apart
}

/// Requests of each worker.
const REQUESTS: usize = 3_000;

/// Requests of Envoy's main thread.
const CALLS: u64 = 300;

/// The permits of the rule `exact`, which return within hours.
const EXACT: usize = 1_000;

/// The permits of the rule `grpc`, which only denied calls use.
const DENIED: usize = 200;

/// The rules of an update. All but the last one stay.
fn document(update: usize) -> String {
    format!(
        "namespace: fake
actors: {{account: [{{header: x-account}}], plan: [{{metadata: [login, plan]}}]}}
redis: {{cluster: redis, timeout: 20ms, password_secret: {{name: password}}}}
limits:
- {{Url: /exact, rules: [{{name: exact, actor: all, unit: 30d, rpu: {EXACT}, scope: gateway}}]}}
- {{Url: /held, rules: [{{name: held, actor: all, unit: second, rpu: 300, algo: LB, max_delay: 20ms, scope: gateway}}]}}
- {{Url: /fleet, rules: [{{name: fleet, actor: account, unit: second, rpu: 50, scope: global}}]}}
- {{Url: /open, rules: [{{name: open, actor: account, in_flight: 2, scope: gateway}}]}}
- {{Url: /plan, rules: [{{name: plan, actor: plan, unit: second, rpu: 20, scope: local}}]}}
- {{Url: /used, rules: [{{name: used, actor: account, algo: W, unit: minute, rpu: 100, scope: local, cost: {{response: {{header: x-used}}, reserve: 1, max: 9}}}}]}}
- {{Url: /upload, rules: [{{name: upload, actor: account, algo: W, unit: minute, rpu: 100, scope: gateway, cost: {{response: {{bytes: request}}, reserve: 1, max: 9}}}}]}}
- {{Url: /grpc, rules: [{{name: grpc, actor: all, algo: W, unit: 30d, rpu: {DENIED}, scope: gateway, count: {{grpc_status: [16]}}}}]}}
- {{Url: /marked, rules: [{{name: marked, actor: account, algo: W, unit: second, rpu: 1, scope: gateway, over: {{mark: x-tier, value: spill}}}}]}}
- {{Url: /update, rules: [{{name: update, actor: account, unit: second, rpu: {}, scope: local}}]}}
",
        10 + update
    )
}

#[test]
fn no_memory_is_used_after_its_end() {
    let mut random = Rng::with_seed(seed::next());
    let gateway = Gateway::start();
    gateway.update(&document(0)).expect("the document is valid");
    // Calls of Envoy itself through the filter in a cluster. Envoy names the first worker for its main thread.
    let mut calls = Worker::new(gateway, 0, random.u64(..));
    let mut call = 0..CALLS;
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let seed = random.u64(..);
                scope.spawn(move || Worker::new(gateway, number, seed).run(REQUESTS))
            })
            .collect();
        // This thread is Envoy's main thread.
        let mut update = 0;
        while !call.is_empty() || workers.iter().any(|worker| !worker.is_finished()) {
            gateway.run_events();
            if random.u8(..) < 8 {
                update += 1;
                gateway.update(&document(update)).expect("the document is valid");
                assert!(gateway.update("limits: [{Url: /, rules: []}, x]").is_none());
            }
            if random.bool() {
                gateway.look();
            }
            if let Some(id) = call.next() {
                calls.serve(id);
            }
            gateway.drain();
            thread::yield_now();
        }
        workers.into_iter().map(|worker| worker.join().expect("no hook panics")).collect()
    });
    calls.use_up();
    let calls = calls.finish();
    gateway.end();
    let admitted: usize = tallies.iter().chain([&calls]).map(|it| it.admitted_exactly).sum();
    assert_eq!(admitted, EXACT, "{tallies:?}");
    let denied: usize = tallies.iter().chain([&calls]).map(|it| it.denied).sum();
    assert_eq!(denied, DENIED, "{tallies:?}");
    for tally in &tallies {
        assert_eq!(tally.passed + tally.refused + tally.left, REQUESTS, "{tallies:?}");
        assert!(tally.held > 0 && tally.refused > 0, "{tallies:?}");
    }
    // Another thread would resume them.
    assert!(calls.passed > 0 && calls.held == 0, "{calls:?}");
    assert_eq!(callbacks::CAUGHT.load(Ordering::SeqCst), 0, "no hook panics");
    assert!(gateway.marked.load(Ordering::SeqCst) > 0, "some requests are over a limit");
    assert!(gateway.changes.load(Ordering::SeqCst) > 0, "metrics leave without requests");
    assert!(gateway.looks.load(Ordering::SeqCst) > 1, "the absent secret is read again");
}

/// The plan of half of the requests is a text, and of the others a number: each has the permits of the rule.
#[test]
fn plan_in_metadata_is_read_in_each_request() {
    if !is_apart("plan_in_metadata_is_read_in_each_request") {
        return;
    }
    const LIMIT: usize = 300;
    let gateway = Gateway::start();
    let rule = format!("{{name: plan, actor: plan, unit: 30d, rpu: {LIMIT}, scope: gateway}}");
    let document = format!(
        "actors: {{plan: [{{metadata: [login, plan]}}]}}\nlimits: [{{Url: /plan, rules: [{rule}]}}]"
    );
    gateway.update(&document).expect("the document is valid");
    let mut worker = Worker::new(gateway, 0, seed::next());
    for id in [callbacks::TEXT, callbacks::NUMBER] {
        (0..2 * LIMIT).for_each(|_| worker.serve_alone(id, "/plan"));
    }
    let tally = worker.finish();
    gateway.end();
    assert_eq!((tally.passed, tally.refused), (2 * LIMIT, 2 * LIMIT));
}
