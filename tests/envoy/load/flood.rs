//! A flood of callers who never come again: memory stays where it is, and whoever was refused before
//! is refused after it.

use std::thread;

use crate::harness::{Envoy, Gateway, Http2, Outcome, alone};

/// A permit an hour would come back, and a burst that neither a bucket shared by many of the flood
/// nor any of them uses up.
const RULES: &str = "
limits: [{Url: /, rules: [{actor: account, unit: hour, rpu: 1, burst: 5000}]}]
keys: 100000
";
const CONNECTIONS: usize = 8;
const BATCH: usize = 100;

/// Sends one request for each of these callers, a hundred on their way at a time. How many of them
/// were admitted.
fn send(envoy: &Envoy, callers: impl Iterator<Item = String>) -> usize {
    let mut client = Http2::connect(envoy.port).unwrap();
    let mut callers = callers.peekable();
    let mut admitted = 0;
    while callers.peek().is_some() {
        let batch = callers.by_ref().take(BATCH);
        let sent = batch.map(|caller| client.request("/", &[("x-account-id", &caller)], None));
        let sent = sent.count();
        client.flush().unwrap();
        let answers = (0..sent).map(|_| client.answer().unwrap());
        admitted += answers.filter(|(_, outcome)| *outcome == Outcome::Ok).count();
    }
    admitted
}

/// One request of each of the callers from `from` to `to`.
fn flood(envoy: &Envoy, from: usize, to: usize) {
    thread::scope(|scope| {
        for part in 0..CONNECTIONS {
            let callers = (from + part..to).step_by(CONNECTIONS);
            scope.spawn(move || send(envoy, callers.map(|caller| format!("caller-{caller}"))));
        }
    });
}

#[test]
fn two_million_callers_take_no_more_memory_than_two_hundred_thousand() {
    alone();
    let envoy = Gateway::with(RULES).workers(2).without_access_log().give_memory_back().start();
    let victim = |requests| send(&envoy, (0..requests).map(|_| "victim".to_owned()));
    assert_eq!(victim(5_100), 5_000);
    // What the allocator needs for such traffic it has only after the first round, and gives some of it back at times.
    let round = |_| {
        flood(&envoy, 0, 200_000);
        envoy.memory()
    };
    let early = (0..5).map(round).skip(1).max().unwrap();
    flood(&envoy, 200_000, 2_000_000);
    let late = envoy.memory();
    println!("{early} KiB, then {late} KiB");
    assert!(late * 100 <= early * 102, "{early} KiB, then {late} KiB");
    assert_eq!(victim(100), 0);
    envoy.assert_unharmed();
}
