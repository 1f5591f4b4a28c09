//! Responses of a configuration server, and its state in shared data: with any earlier values, a
//! valid document is applied soon after it becomes available.

use diana_policy::Policy;
use diana_policy::port::{Answer, SharedData};
use diana_policy::time::{Micros, SECOND};
use diana_worker::remote::{Access, PollOutcome, Poller, READ_INTERVAL};
use fastrand::Rng;
use kit::fake::{FakeCallout, FakeEnvironment, FakeSharedData};
use std::collections::HashMap;

const EVERY: Micros = 10 * SECOND;
const LOCAL: &str = "limits: []\nremote: {cluster: centre, path: /rules, value: /rules}";
const GOOD: &[u8] =
    br#"{"rules": "limits: [{Url: /, rules: [{name: good, actor: all, unit: day, rpu: 5}]}]"}"#;

struct Worker {
    poller: Poller,
    callout: FakeCallout,
    answered: usize,
    rule: String,
}

impl Worker {
    fn new(id: u64, data: &FakeSharedData) -> Worker {
        let policy = diana_config::Reader::default()
            .policy(LOCAL.as_bytes())
            .unwrap_or_else(|problems| panic!("{problems}"));
        let (own, remote) = (policy.own(), policy.remote.expect("there is a centre"));
        let environment = FakeEnvironment(HashMap::new());
        let poller = Poller::new(remote, own, "test", &environment, (id, SECOND));
        let mut poller = poller.expect("no header is missing");
        let rule = poller.last_good(data).map(|policy| name(&policy)).unwrap_or_default();
        Worker { poller, callout: FakeCallout::default(), answered: 0, rule }
    }

    fn step(&mut self, now: Micros, data: &FakeSharedData, body: &[u8], status: Option<u16>) {
        let access = Access { data, callout: &self.callout, now };
        if self.poller.next() <= now {
            let outcome = self.poller.tick(&access);
            take(&mut self.rule, outcome);
        }
        while self.answered < self.callout.sent.borrow().len() {
            let fetch = || Some(body.to_vec());
            let answer = Answer { status, size: body.len(), body: &fetch, header: &|_| None };
            let outcome = self.poller.on_reply(self.answered as u32, &answer, &access);
            self.answered += 1;
            take(&mut self.rule, outcome);
        }
    }
}

fn take(rule: &mut String, outcome: PollOutcome) {
    for line in outcome.successes.iter().chain(&outcome.failures) {
        assert!(line.len() < 10_000, "{line}");
    }
    if let Some(policy) = outcome.policy {
        *rule = name(&policy);
    }
}

fn name(policy: &Policy) -> String {
    let first = policy.limits.first().and_then(|limit| limit.rules.first());
    first.map(|rule| rule.name.clone()).unwrap_or_default()
}

pub fn run(input: &[u8]) {
    fastrand::feed(input);
    let mut rng = Rng::with_seed(0);
    let data = FakeSharedData::default();
    let mut now = 1000 * SECOND;
    let mut workers = [Worker::new(1, &data), Worker::new(2, &data)];
    for _ in 0..rng.u8(0..12) {
        let status = [Some(200), Some(200), Some(503), None][rng.usize(0..4)];
        let body = if rng.bool() { GOOD.to_vec() } else { rng.rest(200) };
        for _ in 0..rng.u8(1..50) {
            now += READ_INTERVAL / 2;
            workers.iter_mut().for_each(|worker| worker.step(now, &data, &body, status));
        }
        if rng.bool() {
            damage(&data, &mut rng);
        }
        if rng.u8(0..4) == 0 {
            workers[rng.usize(0..2)] = Worker::new(rng.u64(1..9), &data);
        }
    }
    workers[0] = Worker::new(9, &data);
    damage(&data, &mut rng);
    for _ in 0..(2 * EVERY + 4 * SECOND) / (READ_INTERVAL / 2) {
        now += READ_INTERVAL / 2;
        workers.iter_mut().for_each(|worker| worker.step(now, &data, GOOD, Some(200)));
    }
    let rules = workers.each_ref().map(|worker| worker.rule.as_str());
    assert_eq!(rules, ["good"; 2]);
}

fn damage(data: &FakeSharedData, rng: &mut Rng) {
    let keys = data.keys();
    if let Some(name) = rng.choice(&keys)
        && let Some((mut bytes, _)) = data.get(name)
    {
        match rng.u8(0..5) {
            0 => bytes = rng.rest(100),
            1 => bytes.truncate(rng.usize(0..=bytes.len())),
            _ => {
                for word in bytes.chunks_mut(8) {
                    if rng.u8(0..3) == 0 {
                        let value = rng.u64(..) >> rng.u8(0..64);
                        word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
                    }
                }
            }
        }
        data.set(name, &bytes);
    }
}
