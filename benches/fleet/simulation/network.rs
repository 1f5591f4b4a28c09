//! The way to Redis and back.

use diana_policy::port;
use diana_policy::time::Micros;
use fastrand::Rng;

use super::EPOCH;
use super::plan::{Line, Plan, Proxied};
use super::worker::Response;
use kit::model;
use kit::model::proxy::{Proxy, split};

/// What Redis spends, in ticks of its processor. `tests/redis/speed.rs` prints it on the machine at hand; these are
/// of a busy one.
struct Cost {
    /// On each call of the script, with all that goes with it.
    script: f64,
    /// On each ask of a call.
    ask: f64,
}

/// Where gateways call it themselves: a connection, a password, the script, and the end of the connection.
const DIRECT: Cost = Cost { script: 75.0, ask: 15.0 };

/// Where Envoy's proxy keeps connections: what is read and written, and the script. Seen with 1 and with 16 asks a call.
const KEPT: Cost = Cost { script: 89.0, ask: 17.0 };

/// Of the timeout, what the proxy waits for each part.
const PROXY: f64 = 0.6;

/// Who answers.
pub trait Redis {
    /// The answer to a call that comes when the clock shows `time`.
    fn answer(&mut self, body: &[u8], time: Micros) -> Vec<u8>;

    /// Asks that were decided so far.
    fn asks(&self) -> u64;
}

pub struct Network<R> {
    line: Line,
    redis: R,
    nodes: Vec<Node>,
    /// Calls made, and those among them that came to nothing, if only in part.
    pub calls: u64,
    pub failed: u64,
    /// Calls of the script.
    pub scripts: u64,
}

/// One process of Redis.
#[derive(Clone, Default)]
struct Node {
    /// When it has done all that it was asked for, and how long it has worked.
    free: f64,
    busy: f64,
}

/// What Redis makes of a call of the script.
struct Decided {
    /// When it decides, and when it has answered.
    at: Micros,
    ends: Micros,
    answer: Vec<u8>,
}

/// A call on its way to Redis.
pub struct Call {
    token: u32,
    body: Vec<u8>,
    /// When the answer comes at the latest.
    given_up: Micros,
    /// How long it takes back; nothing if it is going to be lost.
    back: Option<Micros>,
}

/// What becomes of a call.
pub enum Fate {
    /// It reaches Redis then.
    Arrives(Micros, Call),
    /// The host says then that no answer came.
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

    /// How long one way takes.
    fn way(&self, rng: &mut Rng) -> Micros {
        let latency = self.line.latency;
        latency / 4 + rng.u64(0..=latency / 2)
    }

    /// A call reaches Redis. When its answer comes, and which.
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

    /// What a proxy makes of a call: one for each part, all under way at once. When it has its answers, less the
    /// way back that all calls have; the answers, and when each part was decided about.
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
            // The quickest way back is part of every call's.
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

    /// How long all nodes have worked.
    pub fn busy(&self) -> f64 {
        self.nodes.iter().map(|node| node.busy).sum()
    }

    /// How long the one has worked that had most to do.
    pub fn busiest(&self) -> f64 {
        self.nodes.iter().map(|node| node.busy).fold(0.0, f64::max)
    }

    /// The host says that no answer came.
    fn nothing(&mut self, token: u32) -> Response {
        self.failed += 1;
        Response { token, status: 504, body: Vec::new(), decided: Vec::new() }
    }

    /// Asks that Redis decided.
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
