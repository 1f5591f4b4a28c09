//! Rules from a configuration server: several workers, one shared memory, and a server with
//! arbitrary behaviour.

mod chaos;
mod instants;
mod leaders;
mod polling;
mod releases;
mod responses;
mod sharing;
mod tags;

use diana_policy::port::Answer;
use diana_policy::{Metric, Policy};
use diana_worker::remote::{Access, PollOutcome, Poller};
use kit::fake::{FakeCallout, FakeEnvironment, FakeSharedData};
use std::collections::HashMap;

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000;
const EVERY: u64 = 10 * SECOND;
/// The response time of the server.
const LATENCY: u64 = 20 * MILLISECOND;
/// The timeout of a call.
const TIMEOUT: u64 = SECOND;

const LOCAL: &str = "limits: []\nremote: {cluster: server, path: /rules}";

/// A document with a single rule of this name.
fn document(name: &str) -> String {
    format!("limits: [{{Url: /, rules: [{{name: {name}, actor: all, unit: day, rpu: 5}}]}}]")
}

/// The behaviour of the server.
#[derive(Debug, Clone, PartialEq)]
enum Server {
    Serves(String),
    /// Serves a text with this tag, and answers 304 to a request that has the tag.
    Tags(String, String),
    Responds(u16),
    BreaksOff,
    /// Envoy responds after a timeout.
    IsSilent,
    /// There is no response, not even from Envoy.
    IsLost,
    CannotBeCalled,
}

/// A worker with its results.
struct Worker {
    poller: Poller,
    callout: FakeCallout,
    answered: usize,
    /// The instants of its calls.
    sent: Vec<u64>,
    /// The name of the current rule.
    rule: String,
    lines: Vec<String>,
    counts: HashMap<&'static str, usize>,
    in_force: i64,
    /// Bytes of documents with a tag that it received.
    bytes: usize,
}

/// A gateway in simulated time, with independently ticking workers.
struct Gateway {
    now: u64,
    data: FakeSharedData,
    server: Server,
    workers: Vec<Worker>,
    started: u64,
}

impl Worker {
    fn new(config: &str, id: u64, born: u64, data: &FakeSharedData) -> Worker {
        let policy = crate::config::policy(config);
        let own = policy.own();
        let remote = policy.remote.unwrap();
        let variables = ["TOKEN", "DIANA_CONSUL_TOKEN"].map(|name| (name.into(), "secret".into()));
        let environment = FakeEnvironment(HashMap::from(variables));
        let mut poller = Poller::new(remote, own, "shop", &environment, (id, born)).unwrap();
        let rule = poller.last_good(data).map_or("own".into(), |policy| name(&policy));
        Worker {
            poller,
            callout: FakeCallout::default(),
            answered: 0,
            sent: Vec::new(),
            rule,
            lines: Vec::new(),
            counts: HashMap::new(),
            in_force: 0,
            bytes: 0,
        }
    }

    fn tick(&mut self, now: u64, data: &FakeSharedData) {
        let outcome = self.poller.tick(&Access { data, callout: &self.callout, now });
        self.sent.resize(self.callout.sent.borrow().len(), now);
        self.take(outcome);
    }

    /// Delivers the server's response to the oldest call.
    fn answer(&mut self, status: Option<u16>, body: &str, now: u64, data: &FakeSharedData) {
        self.answer_with(status, (body, None), now, data);
    }

    /// The same with a tag of the body.
    fn answer_with(
        &mut self,
        status: Option<u16>,
        (body, tag): (&str, Option<&str>),
        now: u64,
        data: &FakeSharedData,
    ) {
        let etag = || tag.map(|tag| tag.as_bytes().to_vec());
        let fetch = || Some(body.as_bytes().to_vec());
        let answer = Answer { status, size: body.len(), body: &fetch, etag: &etag };
        let access = Access { data, callout: &self.callout, now };
        let outcome = self.poller.on_reply(self.answered as u32, &answer, &access);
        self.answered += 1;
        self.take(outcome);
    }

    /// The tag that the oldest call without a response has.
    fn condition(&self) -> Option<String> {
        let sent = self.callout.sent.borrow();
        let mut headers = sent.get(self.answered)?.headers.iter();
        headers.find(|(name, _)| name == "if-none-match").map(|(_, value)| value.clone())
    }

    fn take(&mut self, outcome: PollOutcome) {
        self.lines.extend(outcome.successes.into_iter().chain(outcome.failures));
        outcome
            .count
            .into_iter()
            .for_each(|metric| *self.counts.entry(metric.name()).or_default() += 1);
        self.in_force += outcome.in_force;
        if let Some(policy) = outcome.policy {
            self.rule = name(&policy);
            *self.counts.entry(Metric::RemoteApplied.name()).or_default() += 1;
        }
    }

    fn count(&self, what: &str) -> usize {
        self.counts.get(&*format!("remote.{what}")).copied().unwrap_or_default()
    }
}

impl Gateway {
    fn new(workers: usize, config: &str, server: Server) -> Gateway {
        let data = FakeSharedData::default();
        let mut gateway =
            Gateway { now: 1_000 * SECOND, data, server, workers: Vec::new(), started: 0 };
        (0..workers).for_each(|_| gateway.start(config));
        gateway
    }

    fn serving(name: &str) -> Gateway {
        Gateway::new(4, LOCAL, Server::Serves(document(name)))
    }

    fn serve(&mut self, name: &str) {
        self.server = Server::Serves(document(name));
    }

    fn start(&mut self, config: &str) {
        self.started += 1;
        self.workers.push(Worker::new(config, self.started, self.now, &self.data));
    }

    /// Advances the clock in steps of a millisecond.
    fn run(&mut self, ticks: u64) {
        for _ in 0..ticks / MILLISECOND {
            self.now += MILLISECOND;
            let Gateway { now, data, server, workers, .. } = self;
            for worker in workers {
                worker
                    .callout
                    .refusal
                    .set((*server == Server::CannotBeCalled).then_some("no cluster"));
                if worker.poller.next() <= *now {
                    worker.tick(*now, data);
                }
                let Some(&sent) = worker.sent.get(worker.answered) else { continue };
                let wait = if *server == Server::IsSilent { TIMEOUT } else { LATENCY };
                if *now - sent < wait {
                    continue;
                }
                match server {
                    Server::Serves(text) => worker.answer(Some(200), text, *now, data),
                    Server::Tags(text, tag) => {
                        let is_known = worker.condition().as_deref() == Some(tag);
                        worker.bytes += if is_known { 0 } else { text.len() };
                        let (status, body) = if is_known { (304, "") } else { (200, &**text) };
                        worker.answer_with(Some(status), (body, Some(tag)), *now, data);
                    }
                    Server::Responds(status) => worker.answer(Some(*status), "sorry", *now, data),
                    Server::BreaksOff => worker.answer(None, "", *now, data),
                    Server::IsSilent => worker.answer(Some(504), "timeout", *now, data),
                    Server::IsLost | Server::CannotBeCalled => {}
                }
            }
        }
    }

    /// The names of the current rules.
    fn rules(&self) -> Vec<&str> {
        self.workers.iter().map(|worker| worker.rule.as_str()).collect()
    }

    fn count(&self, what: &str) -> usize {
        self.workers.iter().map(|worker| worker.count(what)).sum()
    }

    /// The number of calls.
    fn calls(&self) -> usize {
        self.workers.iter().map(|worker| worker.sent.len()).sum()
    }

    /// Takes all log lines.
    fn lines(&mut self) -> Vec<String> {
        self.workers.iter_mut().flat_map(|worker| std::mem::take(&mut worker.lines)).collect()
    }

    /// The worker that made the last call.
    fn leader(&self) -> usize {
        let last = |worker: &Worker| worker.sent.last().copied();
        (0..self.workers.len()).max_by_key(|&at| last(&self.workers[at])).unwrap()
    }
}

fn name(policy: &Policy) -> String {
    policy.limits[0].rules[0].name.clone()
}
