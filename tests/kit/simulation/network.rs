//! The way to Redis and back.

use diana_core::port;
use diana_core::time::Micros;
use fastrand::Rng;

use super::EPOCH;
use super::plan::{Line, Plan};
use super::worker::Response;
use crate::model;

/// What Redis spends on a call, in ticks of its processor: a connection, a password, the script, and the end
/// of the connection. `tests/redis/speed.rs` prints both on the machine at hand; these are of a busy one.
const CALL: f64 = 75.0;

/// What it spends on each ask of a call.
const ASK: f64 = 15.0;

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
    /// When Redis has done all that it was asked for, and how long it has worked.
    free: f64,
    pub busy: f64,
    /// Calls made, and those among them that came to nothing.
    pub calls: u64,
    pub failed: u64,
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
        Network { line: plan.line.clone(), redis, free: 0.0, busy: 0.0, calls: 0, failed: 0 }
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
        let latency = self.line.latency;
        let mut way = || latency / 4 + rng.u64(0..=latency / 2);
        let (there, back) = (now + way(), way());
        let given_up = now + call.timeout;
        let lost = rng.u64(0..1000) < self.line.lost;
        let away = self.line.away.contains(&there) && gateway < self.line.cut_off;
        if away || lost && rng.bool() {
            return Fate::Lost(given_up, self.nothing(token));
        }
        let call = Call { token, body: call.body, given_up, back: (!lost).then_some(back) };
        Fate::Arrives(there, call)
    }

    /// A call reaches Redis. When its answer comes, and which.
    pub fn arrive(&mut self, call: Call, now: Micros) -> (Micros, Response) {
        let begins = if self.line.queues { self.free.max(now as f64) } else { now as f64 };
        let decided = begins as Micros;
        let before = self.redis.asks();
        let body = self.redis.answer(&call.body, EPOCH + decided);
        let work = CALL + ASK * (self.redis.asks() - before) as f64;
        self.busy += work;
        self.free = begins + work;
        let comes = call.back.map(|back| (begins + work) as Micros + back);
        match comes.filter(|comes| *comes < call.given_up) {
            Some(comes) => (comes, Response { token: call.token, status: 200, body, decided }),
            None => (call.given_up, self.nothing(call.token)),
        }
    }

    /// The host says that no answer came.
    fn nothing(&mut self, token: u32) -> Response {
        self.failed += 1;
        Response { token, status: 504, body: Vec::new(), decided: 0 }
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
