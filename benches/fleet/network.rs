//! The network between gateways and Redis, and the processors of Redis.

use diana_policy::port;
use diana_policy::time::{Micros, SECOND};
use fastrand::Rng;
use kit::model::proxy::{Proxy, split};

use crate::world::{EPOCH, Plan};

/// The time of a call of the script and of each ask in it, as `benches/redis` prints it on a busy machine: where gateways call
/// Redis directly, and where Envoy's proxy keeps connections.
const DIRECT: (f64, f64) = (75.0, 15.0);
const PROXIED: (f64, f64) = (89.0, 17.0);
/// The part of the timeout for which the proxy waits.
const PROXY_TIMEOUT: f64 = 0.6;

pub struct Network<'a> {
    plan: &'a Plan,
    pub proxy: Proxy,
    /// The time at which each primary is idle.
    idle: Vec<f64>,
    pub calls: u64,
    pub failed: u64,
    pub busy: f64,
}

/// A pending call to Redis.
pub struct Call {
    token: u32,
    body: Vec<u8>,
    pub arrives: Micros,
    timeout: Micros,
    /// How long the reply takes back, unless its timeout is known already.
    back: Option<Micros>,
}

pub struct Reply {
    pub token: u32,
    pub status: u16,
    pub body: Vec<u8>,
}

impl Network<'_> {
    pub fn new(plan: &Plan) -> Network<'_> {
        let (proxy, idle) = (Proxy::default(), vec![0.0; plan.shards.unwrap_or(1)]);
        Network { plan, proxy, idle, calls: 0, failed: 0, busy: 0.0 }
    }

    /// Sends a call. Returns it if it arrives, and its timeout if it can have no reply before.
    pub fn send(
        &mut self,
        token: u32,
        port::Call { body, timeout, .. }: port::Call,
        now: Micros,
        rng: &mut Rng,
    ) -> (Option<Call>, Option<(Micros, Reply)>) {
        self.calls += 1;
        let (arrives, back, timeout) = (now + self.way(rng), self.way(rng), now + timeout);
        let is_away = arrives % SECOND < self.plan.away && arrives >= SECOND;
        let is_lost = rng.u64(0..1000) < self.plan.lost || is_away;
        let is_answered = !is_lost && arrives < timeout;
        let call = Call { token, body, arrives, timeout, back: is_answered.then_some(back) };
        let no_reply = (!is_answered).then(|| (timeout, self.no_reply(token)));
        ((!is_lost || !is_away && rng.bool()).then_some(call), no_reply)
    }

    /// One way.
    fn way(&self, rng: &mut Rng) -> Micros {
        self.least() + rng.u64(0..=self.plan.latency * self.plan.spread / 100)
    }

    fn least(&self) -> Micros {
        self.plan.latency * (100 - self.plan.spread) / 200
    }

    /// The reply to a call that arrives, and its time, unless its timeout is known already. The proxy makes a call for each shard,
    /// all at once.
    pub fn arrive(&mut self, call: Call, now: Micros, rng: &mut Rng) -> Option<(Micros, Reply)> {
        let (mut last, mut body, mut is_whole) = (now, Vec::new(), true);
        let patience = now + (self.plan.timeout as f64 * PROXY_TIMEOUT) as Micros;
        for (number, (shard, post)) in split(&call.body).into_iter().enumerate() {
            // All calls share the shortest way back.
            let longer = if number > 0 { self.way(rng) - self.least() } else { 0 };
            let (ends, answer) = self.decide(shard, &post, now);
            let is_late = self.plan.shards.is_some() && ends + longer >= patience;
            is_whole &= !is_late;
            last = last.max(if is_late { patience } else { ends + longer });
            let answer = answer.strip_suffix(b"+OK\r\n").filter(|_| !is_late);
            body.extend_from_slice(answer.unwrap_or(b"-upstream failure\r\n"));
        }
        body.extend(b"+OK\r\n");
        let at = last + call.back?;
        if at >= call.timeout {
            return Some((call.timeout, self.no_reply(call.token)));
        }
        self.failed += u64::from(!is_whole);
        Some((at, Reply { token: call.token, status: 200, body }))
    }

    /// A call of the script: the time at which it ends, and the answer.
    fn decide(&mut self, shard: usize, post: &[u8], now: Micros) -> (Micros, Vec<u8>) {
        let ((script, ask), begins) = match self.plan.shards {
            Some(_) => (PROXIED, self.idle[shard].max(now as f64)),
            None => (DIRECT, now as f64),
        };
        let before = self.proxy.asks();
        let answer = self.proxy.answer(post, EPOCH + begins as Micros);
        let work = script + ask * (self.proxy.asks() - before) as f64;
        self.busy += work;
        self.idle[shard] = begins + work;
        ((begins + work) as Micros, answer)
    }

    fn no_reply(&mut self, token: u32) -> Reply {
        self.failed += 1;
        Reply { token, status: 504, body: Vec::new() }
    }
}
