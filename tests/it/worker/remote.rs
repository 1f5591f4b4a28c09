//! Rules from a configuration server: several workers, one shared memory, and a server with
//! arbitrary behaviour.

mod chaos;
mod in_force;
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
use kit::fake::{FakeCallout, FakeEnvironment, FakeSharedData, NODE};
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
    /// The number of gateways, as it knows it.
    gateways: u64,
}

/// A gateway in simulated time, with independently ticking workers.
struct Gateway {
    now: u64,
    data: FakeSharedData,
    server: Server,
    workers: Vec<Worker>,
    started: u64,
    /// Called with the document that a poll names, and the rules of all workers at that instant.
    on_poll: Option<OnPoll>,
}

type OnPoll = Box<dyn FnMut(&str, &[&str])>;

impl Worker {
    fn new(config: &str, id: u64, born: u64, data: &FakeSharedData) -> Worker {
        let policy = crate::config::policy(config);
        let own = policy.own();
        let remote = policy.remote.unwrap();
        let variables = [("TOKEN", "secret"), ("DIANA_CONSUL_TOKEN", "secret"), (NODE, "pod-1")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let environment = FakeEnvironment(HashMap::from(variables));
        let mut poller = Poller::new(remote, own, "shop", &environment, (id, born)).unwrap();
        let rule = poller.last_good(data).map_or("own".into(), |policy| name(&policy));
        poller.apply();
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
            gateways: 0,
        }
    }

    fn tick(&mut self, now: u64, data: &FakeSharedData) {
        let outcome = self.poller.tick(&Access { data, callout: &self.callout, now });
        self.sent.resize(self.callout.sent.borrow().len(), now);
        self.take(outcome);
    }

    /// Delivers the server's response to the oldest call.
    fn answer(&mut self, status: Option<u16>, body: &str, now: u64, data: &FakeSharedData) {
        self.answer_with(status, (body, None, None), now, data);
    }

    /// The same with a tag of the body, and the number of gateways.
    fn answer_with(
        &mut self,
        status: Option<u16>,
        (body, tag, gateways): (&str, Option<&str>, Option<u64>),
        now: u64,
        data: &FakeSharedData,
    ) {
        let value = |name: &str| match name {
            "etag" => tag.map(str::to_owned),
            _ => gateways.map(|number| number.to_string()),
        };
        let header = |name: &str| value(name).map(String::into_bytes);
        let fetch = || Some(body.as_bytes().to_vec());
        let answer = Answer { status, size: body.len(), body: &fetch, header: &header };
        let access = Access { data, callout: &self.callout, now };
        let outcome = self.poller.on_reply(self.answered as u32, &answer, &access);
        self.answered += 1;
        self.take(outcome);
    }

    /// The tag that the oldest call without a response has.
    fn condition(&self) -> Option<String> {
        self.header(self.answered, "if-none-match")
    }

    /// The value of a header of a call.
    fn header(&self, call: usize, name: &str) -> Option<String> {
        let sent = self.callout.sent.borrow();
        let mut headers = sent.get(call)?.headers.iter();
        headers.find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn take(&mut self, outcome: PollOutcome) {
        self.gateways = outcome.gateways;
        self.lines.extend(outcome.successes.into_iter().chain(outcome.failures));
        outcome
            .count
            .into_iter()
            .for_each(|metric| *self.counts.entry(metric.name()).or_default() += 1);
        self.in_force += outcome.in_force;
        if let Some(policy) = outcome.policy {
            self.rule = name(&policy);
            self.poller.apply();
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
        let mut gateway = Gateway {
            now: 1_000 * SECOND,
            data,
            server,
            workers: Vec::new(),
            started: 0,
            on_poll: None,
        };
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
            let Gateway { now, data, server, workers, on_poll, .. } = self;
            for at in 0..workers.len() {
                let worker = &mut workers[at];
                let sent = worker.sent.len();
                worker
                    .callout
                    .refusal
                    .set((*server == Server::CannotBeCalled).then_some("no cluster"));
                if worker.poller.next() <= *now {
                    worker.tick(*now, data);
                }
                if let Some(on_poll) = on_poll.as_mut().filter(|_| worker.sent.len() > sent) {
                    let named = worker.header(sent, "x-diana-document").unwrap();
                    let rules: Vec<&str> = workers.iter().map(|it| it.rule.as_str()).collect();
                    on_poll(&named, &rules);
                }
                let worker = &mut workers[at];
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
                        worker.answer_with(Some(status), (body, Some(tag), None), *now, data);
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
