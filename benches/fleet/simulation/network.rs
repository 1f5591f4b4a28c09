//! The network to Redis.

use diana_policy::port;
use diana_policy::time::Micros;
use fastrand::Rng;

use super::EPOCH;
use super::plan::{Line, Plan, Proxied};
use super::worker::Response;
use kit::model;
use kit::model::proxy::{Proxy, split};

/// The processor time of Redis in ticks. `tests/redis/speed.rs` prints it for a machine. These
/// values are from a busy one.
struct Cost {
    /// Per call of the script, including overhead.
    script: f64,
    /// Per question of a call.
    ask: f64,
}

/// With direct calls of gateways: a connection, the password, the script, and the end of the
/// connection.
const DIRECT: Cost = Cost { script: 75.0, ask: 15.0 };

/// With persistent connections of Envoy's proxy: transfer and the script. Measured with 1 and with
/// 16 questions per call.
const KEPT: Cost = Cost { script: 89.0, ask: 17.0 };

/// The proxy's timeout per shard, as a fraction of the whole timeout.
const PROXY: f64 = 0.6;

/// A simulated Redis.
pub trait Redis {
    /// The response to a call at the wall clock `time`.
    fn answer(&mut self, body: &[u8], time: Micros) -> Vec<u8>;

    /// Decided questions so far.
    fn asks(&self) -> u64;
}

pub struct Network<R> {
    line: Line,
    redis: R,
    nodes: Vec<Node>,
    /// The number of calls, and of those that failed completely or in part.
    pub calls: u64,
    pub failed: u64,
    /// Calls of the script.
    pub scripts: u64,
}

/// One process of Redis.
#[derive(Clone, Default)]
struct Node {
    /// When it has completed all work, and its total working time.
    free: f64,
    busy: f64,
}

/// The result of a call of the script.
struct Decided {
    /// The instants of the decision, and of the response.
    at: Micros,
    ends: Micros,
    answer: Vec<u8>,
}

/// A call in transit to Redis.
pub struct Call {
    token: u32,
    body: Vec<u8>,
    /// The deadline of its response.
    given_up: Micros,
    /// The delay of its response. `None` if it will be lost.
    back: Option<Micros>,
}

/// The outcome of a call.
pub enum Fate {
    /// It reaches Redis at this instant.
    Arrives(Micros, Call),
    /// The host reports a failure at this instant.
    Lost(Micros, Response),
}

impl<R: Redis> Network<R> {
    pub fn new(plan: &Plan, redis: R) -> Network<R> {
        let nodes = plan.line.proxy.map_or(1, |proxy| proxy.nodes);
        let nodes = vec![Node::default(); nodes];
        Network { line: plan.line.clone(), redis, nodes, calls: 0, failed: 0, scripts: 0 }
    }

    /// A gateway makes a call.
    pub fn leave(
        &mut self,
        gateway: usize,
        token: u32,
        call: port::Call,
        now: Micros,
        rng: &mut Rng,
    ) -> Fate {
        self.calls += 1;
        let (there, back) = (now + self.way(rng), self.way(rng));
        let given_up = now + call.timeout;
        let lost = rng.u64(0..1000) < self.line.lost;
        let away = self.line.away.contains(&there) && gateway < self.line.cut_off;
        if away || lost && rng.bool() {
            return Fate::Lost(given_up, self.nothing(token));
        }
        let call = Call { token, body: call.body, given_up, back: (!lost).then_some(back) };
        Fate::Arrives(there, call)
    }

    /// The delay of one direction.
    fn way(&self, rng: &mut Rng) -> Micros {
        let latency = self.line.latency;
        latency / 4 + rng.u64(0..=latency / 2)
    }

    /// A call reaches Redis. Returns the arrival of its response, and the response.
    pub fn arrive(&mut self, call: Call, now: Micros, rng: &mut Rng) -> (Micros, Response) {
        let Call { token, body, given_up, back } = call;
        let (comes, body, decided) = match self.line.proxy {
            Some(proxied) => self.pass_on(proxied, &body, now, rng),
            None => {
                let Decided { at, ends, answer } = self.decide(0, &body, &DIRECT, now);
                (ends, answer, vec![(0, at)])
            }
        };
        match back.map(|back| comes + back).filter(|comes| *comes < given_up) {
            Some(comes) => (comes, Response { token, status: 200, body, decided }),
            None => (given_up, self.nothing(token)),
        }
    }

    /// The proxy splits a call into one per shard, all concurrent. Returns the arrival of the
    /// responses without the delay that all calls have, the responses, and the instants of the
    /// decisions.
    fn pass_on(
        &mut self,
        Proxied { parts, nodes }: Proxied,
        body: &[u8],
        now: Micros,
        rng: &mut Rng,
    ) -> (Micros, Vec<u8>, Vec<(usize, Micros)>) {
        let patience = now + (self.line.timeout as f64 * PROXY) as Micros;
        let (mut last, mut answers, mut decided, mut failed) = (now, Vec::new(), Vec::new(), false);
        for (number, (part, post)) in split(body).into_iter().enumerate() {
            let Decided { at, ends, answer } = self.decide(part * nodes / parts, &post, &KEPT, now);
            // The shortest delay is part of every call.
            let longer = if number == 0 { 0 } else { self.way(rng) - self.line.latency / 4 };
            let comes = ends + longer;
            match answer.strip_suffix(b"+OK\r\n").filter(|_| comes < patience) {
                Some(answer) => {
                    answers.extend(answer);
                    decided.push((part, at));
                }
                None => {
                    failed = true;
                    answers.extend(b"-upstream failure\r\n");
                }
            }
            last = last.max(comes.min(patience));
        }
        self.failed += u64::from(failed);
        answers.extend(b"+OK\r\n");
        (last, answers, decided)
    }

    /// One Redis decides about a call of the script.
    fn decide(&mut self, node: usize, post: &[u8], cost: &Cost, now: Micros) -> Decided {
        let node = &mut self.nodes[node];
        let begins = if self.line.queues { node.free.max(now as f64) } else { now as f64 };
        let at = begins as Micros;
        let before = self.redis.asks();
        let answer = self.redis.answer(post, EPOCH + at);
        let work = cost.script + cost.ask * (self.redis.asks() - before) as f64;
        node.busy += work;
        node.free = begins + work;
        self.scripts += 1;
        Decided { at, ends: (begins + work) as Micros, answer }
    }

    /// The total working time of all nodes.
    pub fn busy(&self) -> f64 {
        self.nodes.iter().map(|node| node.busy).sum()
    }

    /// The working time of the busiest node.
    pub fn busiest(&self) -> f64 {
        self.nodes.iter().map(|node| node.busy).fold(0.0, f64::max)
    }

    /// The host reports a timeout.
    fn nothing(&mut self, token: u32) -> Response {
        self.failed += 1;
        Response { token, status: 504, body: Vec::new(), decided: Vec::new() }
    }

    /// Decided questions.
    pub fn asks(&self) -> u64 {
        self.redis.asks()
    }
}

impl Redis for model::redis::Redis {
    fn answer(&mut self, body: &[u8], time: Micros) -> Vec<u8> {
        model::redis::Redis::answer(self, body, time)
    }

    fn asks(&self) -> u64 {
        self.asks
    }
}

impl Redis for Proxy {
    fn answer(&mut self, body: &[u8], time: Micros) -> Vec<u8> {
        Proxy::answer(self, body, time)
    }

    fn asks(&self) -> u64 {
        Proxy::asks(self)
    }
}
