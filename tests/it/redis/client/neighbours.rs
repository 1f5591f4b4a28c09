//! Other rules under the namespace of a gateway.

use std::rc::Rc;

use diana_policy::time::SECOND;
use kit::fake::FakeSharedData;
use kit::model::redis::Redis;

use super::{Worker, at, ok};

/// A worker of the gateway with this shared data, and with rules of this number.
fn worker(data: &Rc<FakeSharedData>, rules: u64) -> Worker {
    plugin(data, "diana", rules)
}

/// The same of the plugin with this root id.
fn plugin(data: &Rc<FakeSharedData>, root_id: &str, rules: u64) -> Worker {
    let worker = Worker::of(data);
    Worker { client: worker.client.with_rules(root_id, rules), ..worker }
}

/// One request. Returns the logged lines about other rules.
fn request(worker: &mut Worker, redis: &mut Redis, now: u64) -> usize {
    worker.ask(1, now);
    worker.work(now);
    loop {
        let calls = worker.calls.fresh();
        if calls.is_empty() {
            break;
        }
        for (token, call) in calls {
            let body = redis.answer(&call.body, at(now).wall);
            worker.answer(token, &ok(body), now).unwrap();
        }
    }
    let lines = std::mem::take(&mut worker.client.log_lines);
    lines.iter().filter(|line| line.contains("other rules under this namespace")).count()
}

/// The lines of each worker that requests every second for a minute.
fn minute(workers: &mut [Worker], redis: &mut Redis, start: u64) -> Vec<usize> {
    let mut lines = vec![0; workers.len()];
    for second in 0..60 {
        for (worker, lines) in workers.iter_mut().zip(&mut lines) {
            *lines += request(worker, redis, start + second * SECOND);
        }
    }
    lines
}

#[test]
fn gateways_with_equal_rules_log_nothing() {
    let gateways = [Rc::default(), Rc::default()];
    let mut workers = [worker(&gateways[0], 7), worker(&gateways[1], 7)];
    assert_eq!(minute(&mut workers, &mut Redis::default(), SECOND), [0, 0]);
}

/// Both gateways log other rules, each by one of its workers.
#[test]
fn other_rules_are_logged_once_by_each_gateway() {
    let gateways = [Rc::default(), Rc::default()];
    let mut workers = [worker(&gateways[0], 7), worker(&gateways[0], 7), worker(&gateways[1], 8)];
    let mut redis = Redis::default();
    let lines = minute(&mut workers, &mut redis, SECOND);
    assert_eq!((lines[0] + lines[1], lines[2]), (1, 1), "{lines:?}");
    assert_eq!(minute(&mut workers, &mut redis, 61 * SECOND), [0, 0, 0]);
}

/// The former configuration serves its last connections for minutes.
#[test]
fn own_former_rules_are_no_other_rules() {
    let gateway = Rc::default();
    let mut redis = Redis::default();
    let mut workers = vec![worker(&gateway, 7)];
    assert_eq!(minute(&mut workers, &mut redis, SECOND), [0]);
    workers.push(worker(&gateway, 8));
    assert_eq!(minute(&mut workers, &mut redis, 61 * SECOND), [0, 0]);
}

/// Two plugins of one VM with one namespace. Each logs the rules of the other.
#[test]
fn rules_of_another_root_id_are_logged() {
    let gateway = Rc::default();
    let mut workers = [plugin(&gateway, "one", 7), plugin(&gateway, "two", 8)];
    assert_eq!(minute(&mut workers, &mut Redis::default(), SECOND), [1, 1]);
    let mut workers = [plugin(&gateway, "one", 9), plugin(&gateway, "two", 9)];
    assert_eq!(minute(&mut workers, &mut Redis::default(), 61 * SECOND), [0, 0]);
}
