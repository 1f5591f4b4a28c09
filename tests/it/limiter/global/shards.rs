//! Rules of one request in several shards of Redis.

use diana_policy::port::Call;
use diana_policy::redis::OnFailure;
use diana_policy::time::SECOND;
use kit::fake::FakeRequest;
use kit::model::Asked;
use kit::model::proxy::Proxy;
use kit::model::wire::{Asking, commands};
use kit::store::gateway::START;

use super::Worker;

const TEXT: &str = "
actors: {account: [{header: x-account-id}], device: [{header: x-device-id}]}
redis: {cluster: redis, proxied: true, parts: 64}
limits:
  - Url: /
    rules:
      - {actor: account, unit: day, rpu: 1, algo: W, scope: global}
      - {actor: device, unit: second, rpu: 100, algo: LB, scope: global}
";

fn request(account: &str) -> FakeRequest {
    FakeRequest::get("/").header("x-account-id", account).header("x-device-id", "phone")
}

/// Sends a request to a new gateway after some seconds. Returns the number of admitted requests,
/// and of questions decided for it.
fn one(proxy: &mut Proxy, account: &str, seconds: u64) -> (usize, u64) {
    let before = proxy.asks();
    let mut worker = Worker::of(TEXT, OnFailure::Gateway);
    worker.clock.0.set(START.later(seconds * SECOND));
    worker.request(&request(account));
    worker.steps(400, &mut |call, time| Some(proxy.answer(&call.body, time)));
    (worker.admitted(), proxy.asks() - before)
}

#[test]
fn queue_position_is_taken_after_all_other_shards_agree() {
    let mut proxy = Proxy::default();
    assert_eq!(one(&mut proxy, "ann", 0), (1, 2));
    // A queue position could not be returned.
    assert_eq!(one(&mut proxy, "ann", 1), (0, 1));
    assert_eq!(one(&mut proxy, "bob", 2), (1, 2));
    assert_eq!(proxy.parts(), 4, "the first part, two accounts and a device");
}

/// They are in the shard of their first actor, and can use its whole room.
#[test]
fn compound_caller_may_use_the_keys_of_all_shards() {
    let rule = "{actor: [account, device], unit: day, rpu: 1, algo: W, scope: global}";
    let (head, _) = TEXT.split_once("      - {").unwrap();
    let text = format!("keys: 1000\n{head}      - {rule}\n");
    let mut proxy = Proxy::default();
    let mut worker = Worker::of(&text, OnFailure::Gateway);
    for device in 0..600 {
        let device = format!("phone-{device}");
        let request =
            FakeRequest::get("/").header("x-account-id", "ann").header("x-device-id", device);
        worker.request(&request);
        worker.steps(5, &mut |call, time| Some(proxy.answer(&call.body, time)));
    }
    assert_eq!(worker.admitted(), 600);
    assert!(proxy.parts() <= 2, "the first part, and that of the account");
}

/// For each rule that a call charges, whether the charge is tentative.
fn tentative(call: &Call) -> Vec<bool> {
    let commands = commands(&call.body);
    let (_, calls) = commands.split_last().expect("commands");
    let mut all = Vec::new();
    for words in calls {
        let mut asking = Asking::read(words);
        while let Some((rules, _)) = asking.ask() {
            all.extend((0..rules).map(|_| asking.rule(0, 0).1.tentative));
        }
    }
    all
}

/// Charges are tentative while another rule, in another shard or in the gateway, may still refuse
/// the request. The permits count as outstanding until then.
#[test]
fn revocable_charge_is_tentative() {
    let fleet = |actor| format!("{{actor: {actor}, unit: day, rpu: 100, algo: W, scope: global}}");
    let other = "{actor: account, unit: hour, rpu: 100, algo: SW, scope: global}";
    let here = "{actor: account, unit: day, rpu: 100, algo: W, scope: local}";
    let line = "{actor: device, unit: second, rpu: 100, algo: LB, scope: global}";
    let (head, _) = TEXT.split_once("      - {").unwrap();
    let account = fleet("account");
    for (rules, wanted) in [
        (vec![&*account], vec![false]),
        (vec![&*account, other], vec![false, false]),
        (vec![&*account, here], vec![true]),
        (vec![here, &*account], vec![true]),
        (vec![&*account, &*fleet("device")], vec![true, true]),
        // Queue positions are requested after all other rules have agreed.
        (vec![&*account, line], vec![true]),
        (vec![line], vec![false]),
    ] {
        let text = format!("{head}      - {}\n", rules.join("\n      - "));
        let mut worker = Worker::of(&text, OnFailure::Gateway);
        let mut proxy = Proxy::default();
        worker.request(&request("ann"));
        worker.steps(400, &mut |call, time| Some(proxy.answer(&call.body, time)));
        let sent = worker.callout.sent.borrow().len();
        worker.request(&request("bob"));
        worker.work(worker.clock.0.get().later(1));
        let calls = worker.callout.sent.borrow();
        let found: Vec<bool> = calls[sent..].iter().flat_map(tentative).collect();
        assert_eq!(found, wanted, "{rules:?}");
    }
}

/// The questions about a request for each rule, in a fleet of 64 shards with room for 1000
/// callers.
fn questions(rules: &str) -> Vec<Asked> {
    let (head, _) = TEXT.split_once("      - {").unwrap();
    let mut worker =
        Worker::of(&format!("keys: 1000\n{head}      - {rules}\n"), OnFailure::Gateway);
    let mut proxy = Proxy::default();
    worker.request(&request("bob"));
    worker.steps(400, &mut |call, time| Some(proxy.answer(&call.body, time)));
    let sent = worker.callout.sent.borrow().len();
    worker.request(&request("ann"));
    worker.work(worker.clock.0.get().later(1));
    let mut all = Vec::new();
    for call in &worker.callout.sent.borrow()[sent..] {
        let commands = commands(&call.body);
        for words in commands.split_last().unwrap().1 {
            let mut asking = Asking::read(words);
            while let Some((rules, _)) = asking.ask() {
                all.extend((0..rules).map(|_| asking.rule(0, 0).1));
            }
        }
    }
    all
}

/// Callers by one actor are evenly distributed over all shards.
#[test]
fn simple_caller_has_its_shards_share_of_keys() {
    let keys = |actor: &str| {
        questions(&format!("{{actor: {actor}, unit: day, rpu: 9, algo: W, scope: global}}"))[0].keys
    };
    assert_eq!(keys("[account, device]"), 1000);
    assert!((1000 / 64..200).contains(&keys("account")), "{}", keys("account"));
}

/// So that no unusable part of a block remains.
#[test]
fn lease_is_a_multiple_of_the_cost() {
    let unit = |algo: &str, cost: &str| {
        let rule = format!(
            "{{actor: account, unit: second, rpu: 9, algo: {algo}, cost: {cost}, scope: global}}"
        );
        questions(&rule)[0].unit_cost
    };
    let in_header = "{header: x-cost, max: 3}";
    for (algo, cost, wanted) in [
        ("W", "3", 3),
        ("TB", "3", 3),
        ("LB", "3", 3),
        ("W", in_header, 1),
        ("TB", in_header, 1),
        ("LB", in_header, 3),
    ] {
        assert_eq!(unit(algo, cost), wanted, "{algo}, {cost}");
    }
}
