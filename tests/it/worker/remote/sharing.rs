//! Changes of shared data.

use std::cell::RefCell;
use std::rc::Rc;

use diana_policy::port::SharedData;
use kit::fake::FakeSharedData;

use super::{EVERY, Gateway, LATENCY, LOCAL, MILLISECOND, SECOND, Server, Worker, document};

/// The key with the suffix `what`.
fn key(gateway: &Gateway, what: &str) -> String {
    gateway.data.keys().into_iter().find(|key| key.ends_with(what)).unwrap()
}

#[test]
fn polling_uses_four_keys() {
    let mut gateway = Gateway::serving("a");
    for number in 0..20 {
        gateway.serve(&format!("r{number}"));
        gateway.run(EVERY);
    }
    let keys = gateway.data.keys();
    assert_eq!(keys.len(), 4, "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with("diana/1/shop/remote/")), "{keys:?}");
    assert!(gateway.data.get(&key(&gateway, "/head")).unwrap().0.len() <= 64);
}

#[test]
fn damaged_document_is_never_applied_and_is_repaired() {
    let mut gateway = Gateway::serving("a");
    gateway.run(SECOND);
    gateway.data.set(&key(&gateway, "/document"), document("forged").as_bytes());
    gateway.start(LOCAL);
    assert_eq!(gateway.rules(), ["a", "a", "a", "a", "own"]);
    gateway.run(EVERY + SECOND);
    assert_eq!(gateway.rules(), ["a"; 5]);
}

#[test]
fn failed_write_of_a_document_polls_again() {
    let mut gateway = Gateway::serving("a");
    gateway.run(SECOND);
    let mut once = true;
    *gateway.data.before_swap.borrow_mut() = Some(Box::new(move |data, key| {
        if key.ends_with("/document") && std::mem::take(&mut once) {
            data.set(key, b"limits: []");
        }
    }));
    gateway.serve("b");
    gateway.run(EVERY + SECOND);
    assert_eq!(gateway.rules(), ["b"; 4]);
}

#[test]
fn damaged_head_is_replaced() {
    let mut gateway = Gateway::serving("a");
    gateway.run(SECOND);
    for damage in [&b""[..], b"x", &[0xff; 64], &[0; 64], &[1; 65]] {
        gateway.data.set(&key(&gateway, "/head"), damage);
        gateway.run(SECOND);
        assert_eq!(gateway.rules(), ["a"; 4]);
        gateway.serve("b");
        gateway.run(EVERY + SECOND);
        assert_eq!(gateway.rules(), ["b"; 4], "{damage:?}");
        gateway.serve("a");
        gateway.run(EVERY + SECOND);
    }
}

/// Calls `look` just before each write, with an instant at which the leader lives.
fn before_writes(gateway: &Gateway, mut look: impl FnMut(&FakeSharedData, u64) + 'static) {
    let head = key(gateway, "/head");
    *gateway.data.before_swap.borrow_mut() = Some(Box::new(move |data, _| {
        let bytes = data.get(&head).unwrap().0;
        let until = u64::from_le_bytes(bytes[24..32].try_into().unwrap());
        look(data, until - SECOND);
    }));
}

/// A worker starts during a change, and finds a document that is not yet current.
#[test]
fn read_during_a_change_is_harmless() {
    let mut gateway = Gateway::new(1, LOCAL, Server::Serves(document("a")));
    gateway.run(SECOND);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let rules = Rc::clone(&seen);
    before_writes(&gateway, move |data, now| {
        let mut fresh = Worker::new(LOCAL, 99, now, data);
        fresh.tick(now, data);
        rules.borrow_mut().push(fresh.rule);
    });
    for number in 0..20 {
        let name = if number % 2 == 0 { "b" } else { "a" };
        gateway.serve(name);
        gateway.run(EVERY + SECOND);
        assert_eq!(gateway.rules(), [name]);
    }
    for rule in ["own", "a", "b"] {
        assert!(seen.borrow().iter().any(|seen| seen == rule), "{rule} was never seen");
    }
    assert!(seen.borrow().iter().all(|rule| ["own", "a", "b"].contains(&rule.as_str())));
}

/// Another worker becomes the leader while the former one processes a response.
#[test]
fn leader_that_loses_the_lead_publishes_nothing() {
    let mut gateway = Gateway::new(1, LOCAL, Server::Serves(document("a")));
    gateway.run(SECOND);
    gateway.serve("b");
    gateway.run(EVERY - SECOND + 5 * MILLISECOND);
    assert_eq!(gateway.calls(), 2, "the answer is under way");
    let mut successor = Some(LOCAL.replace("}", ", timeout: 2s}"));
    before_writes(&gateway, move |data, now| {
        let Some(successor) = successor.take() else { return };
        let mut other = Worker::new(&successor, 99, u64::MAX, data);
        other.tick(now, data);
        assert_eq!(other.sent.len(), 1, "it leads and asks");
    });
    let Gateway { now, data, workers, .. } = &mut gateway;
    workers[0].answer(Some(200), &document("b"), *now + LATENCY, data);
    assert_eq!((workers[0].rule.as_str(), workers[0].count("fetched")), ("a", 1));
    *gateway.data.before_swap.borrow_mut() = None;
    let leader = gateway.data.get(&key(&gateway, "/head")).unwrap().0[..8].to_vec();
    assert_eq!(leader, 99_u64.to_le_bytes());
}
