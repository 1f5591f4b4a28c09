//! A flood of callers that send one request each: memory is bounded, and a refused caller stays
//! refused.

use std::thread;

use crate::harness::{Envoy, Gateway, Http2, Outcome};

/// One permit is added per hour. Neither a caller of the flood nor a shared overflow bucket uses up
/// the burst.
const RULES: &str = "
limits: [{Url: /, rules: [{actor: account, unit: hour, rpu: 1, burst: 5000}]}]
keys: 100000
";
const CONNECTIONS: usize = 8;
const BATCH: usize = 100;
const ROUND: usize = 150_000;

/// Sends one request for each of these callers, in batches. Returns the number of admitted ones.
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

/// Sends one request for each caller of a round. Returns the memory of Envoy afterwards, in KiB.
fn flood(envoy: &Envoy, round: usize) -> u64 {
    thread::scope(|scope| {
        for part in 0..CONNECTIONS {
            let callers = (round * ROUND + part..(round + 1) * ROUND).step_by(CONNECTIONS);
            scope.spawn(move || send(envoy, callers.map(|caller| format!("caller-{caller}"))));
        }
    });
    envoy.memory()
}

#[test]
fn flood_of_callers_takes_bounded_memory() {
    let envoy = Gateway::with(RULES).workers(2).without_access_log().give_memory_back().start();
    let victim = |requests| send(&envoy, (0..requests).map(|_| "victim".to_owned()));
    assert_eq!(victim(5_100), 5_000);
    let memory: Vec<u64> = (0..8).map(|round| flood(&envoy, round)).collect();
    println!("KiB after each {ROUND} callers: {memory:?}");
    // The allocator needs a round or two until it has all pages for such traffic.
    let early = memory[1].max(memory[2]).max(memory[3]);
    assert!(memory[7] * 100 <= early * 105, "{memory:?} KiB");
    assert_eq!(victim(100), 0);
    envoy.assert_unharmed();
}
