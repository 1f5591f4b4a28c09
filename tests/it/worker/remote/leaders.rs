//! Leaders that die, are late, or are replaced.

use super::{EVERY, Gateway, LATENCY, LOCAL, MILLISECOND, SECOND, Server, document};

#[test]
fn late_response_is_dropped() {
    let mut gateway = Gateway::serving("a");
    gateway.run(MILLISECOND);
    let leader = gateway.leader();
    let mut stalled = gateway.workers.remove(leader);
    gateway.serve("b");
    gateway.run(2 * SECOND);
    assert_eq!(gateway.rules(), ["b"; 3]);
    stalled.answer(Some(200), &document("a"), gateway.now, &gateway.data);
    assert_eq!((stalled.rule.as_str(), stalled.count("fetched")), ("own", 0));
    stalled.tick(gateway.now, &gateway.data);
    gateway.workers.push(stalled);
    gateway.run(3 * EVERY);
    assert_eq!(gateway.rules(), ["b"; 4]);
    assert_eq!(gateway.count("applied"), 4);
}

#[test]
fn new_worker_starts_with_the_last_good_rules() {
    let mut gateway = Gateway::serving("a");
    gateway.run(SECOND);
    gateway.server = Server::Responds(503);
    gateway.workers.clear();
    gateway.run(60 * SECOND);
    gateway.start(LOCAL);
    assert_eq!(gateway.rules(), ["a"], "before its first tick");
    gateway.run(MILLISECOND);
    assert_eq!((gateway.workers[0].in_force, gateway.count("applied")), (1, 0));
    gateway.serve("b");
    gateway.run(EVERY + SECOND);
    assert_eq!(gateway.rules(), ["b"]);
}

/// All settings that may change without changing the identity of the document.
const CHANGED: &str = "
limits: []
keys: 5
remote: {cluster: server, path: /rules, every: 2s, timeout: 500ms, headers: {x-token: new}}
";

#[test]
fn new_configuration_polls_at_once_and_keeps_the_rules() {
    let mut gateway = Gateway::serving("a");
    gateway.run(SECOND);
    (0..4).for_each(|_| gateway.start(CHANGED));
    assert_eq!(gateway.rules(), ["a"; 8]);
    gateway.serve("b");
    gateway.run(SECOND);
    assert_eq!(gateway.rules(), ["b"; 8], "the old roots follow while they drain");
    gateway.run(10 * EVERY);
    let calls: Vec<usize> = gateway.workers.iter().map(|worker| worker.sent.len()).collect();
    assert_eq!(calls[..4].iter().sum::<usize>(), 1, "the old ones have lost the lead: {calls:?}");
    assert_eq!(calls[4..].iter().filter(|&&calls| calls > 0).count(), 1, "{calls:?}");
    assert!(gateway.calls() >= 50, "every two seconds: {calls:?}");
    // The new workers end, and the remaining ones continue.
    gateway.workers.truncate(4);
    gateway.serve("c");
    gateway.run(EVERY + 3 * SECOND);
    assert_eq!(gateway.rules(), ["c"; 4]);
}

#[test]
fn changed_request_polls_at_once_and_logs_problems() {
    let mut gateway = Gateway::new(2, LOCAL, Server::Serves("limits: {}".into()));
    gateway.run(SECOND);
    let problems = gateway.lines();
    assert_eq!(problems.len(), 2, "{problems:?}");
    gateway.start(&LOCAL.replace('}', ", headers: {x-token: new}}"));
    gateway.run(SECOND);
    assert_eq!(gateway.workers[2].sent.len(), 1);
    assert_eq!(gateway.lines(), problems[1..], "it may be a release that reads it otherwise");
}

#[test]
fn another_remote_document_has_separate_state() {
    let other = LOCAL.replace("/rules", "/other");
    let mut gateway = Gateway::new(2, LOCAL, Server::Serves(document("a")));
    gateway.run(SECOND);
    gateway.serve("b");
    (0..2).for_each(|_| gateway.start(&other));
    assert_eq!(gateway.rules(), ["a", "a", "own", "own"]);
    gateway.run(SECOND);
    assert_eq!(gateway.rules(), ["a", "a", "b", "b"]);
    assert_eq!(gateway.calls(), 2, "each has its leader");
    gateway.run(EVERY + LATENCY);
    assert_eq!(gateway.rules(), ["b"; 4]);
}
