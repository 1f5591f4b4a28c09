//! Two workers that settle or count requests in flight, while another writer damages their shared
//! data.

use std::rc::Rc;

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_store::permit::Permit;
use fastrand::Rng;

use crate::ending::FakeEnding;
use crate::fake::{FakeClock, FakeSharedData};
use crate::store::gateway::START;

use super::request;

/// The number of concurrent requests that each rule admits.
const LIMIT: usize = 3;

const RULES: [&str; 3] = [
    "in_flight: 3",
    "unit: second, rpu: 6, algo: W, cost: {response: {header: x-used}, reserve: 2, max: 9}",
    "unit: second, rpu: 3, algo: SW, count: {status: [401]}",
];

const CALLERS: usize = 4;

/// Machines are up for weeks.
const UPTIME: Micros = 30 * 86_400 * SECOND;

/// The time after which damaged values have no effect.
const FORGOTTEN: Micros = 70 * SECOND;

struct Gateway {
    document: String,
    data: Rc<FakeSharedData>,
    limiters: [Limiter; 2],
    clock: FakeClock,
    open: Vec<(usize, Permit)>,
}

/// Whatever is written to shared data, nothing overflows, and in the end each caller has the right
/// number of slots.
pub fn play(rng: &mut Rng) {
    let number = rng.usize(..RULES.len());
    let rule = RULES[number];
    let mut gateway = Gateway::new(rule);
    for _ in 0..rng.usize(..150) {
        gateway.act(rng);
    }
    while !gateway.open.is_empty() {
        gateway.end(rng);
    }
    // The damaged value may contain the slots of a living worker.
    (0..2).for_each(|worker| gateway.kill(worker));
    gateway.wait(FORGOTTEN);
    // A request that finds slots of a dead worker has it removed.
    for caller in 0..CALLERS {
        if gateway.request(0, caller) {
            gateway.end(rng);
        }
    }
    gateway.wait(2 * SECOND);
    for caller in 0..CALLERS {
        let admitted = (0..2 * LIMIT).filter(|turn| gateway.request(turn % 2, caller)).count();
        // A damaged number may count as the usage of years.
        let most_only = number > 0;
        let is_right = if most_only { admitted <= LIMIT } else { admitted == LIMIT };
        assert!(is_right, "{rule}: {admitted} at once");
    }
}

impl Gateway {
    fn new(rule: &str) -> Gateway {
        let document =
            format!("keys: 1000\nlimits: [{{Url: /, rules: [{{actor: device, {rule}}}]}}]");
        let data = Rc::new(FakeSharedData::default());
        let limiters = [(); 2].map(|()| limiter(&document, &data));
        let clock = FakeClock::at(START.later(UPTIME));
        Gateway { document, data, limiters, clock, open: Vec::new() }
    }

    fn act(&mut self, rng: &mut Rng) {
        self.clock.0.set(self.clock.0.get().later(rng.u64(..SECOND / 20)));
        match rng.u8(..20) {
            0 => self.wait(rng.u64(..2 * SECOND)),
            1 => self.kill(rng.usize(..2)),
            2..4 => self.damage(rng),
            4..8 => self.end(rng),
            _ => _ = self.request(rng.usize(..2), rng.usize(..CALLERS)),
        }
    }

    /// A worker dies and is replaced.
    fn kill(&mut self, worker: usize) {
        self.open.retain(|(of, _)| *of != worker);
        self.limiters[worker] = limiter(&self.document, &self.data);
    }

    fn wait(&mut self, ticks: Micros) {
        let end = self.clock.0.get().later(ticks);
        while self.clock.0.get().mono < end.mono {
            self.clock.0.set(self.clock.0.get().later(SECOND / 10));
            for limiter in &mut self.limiters {
                limiter.maintain(self.clock.0.get());
            }
        }
    }

    /// Returns true if a request is admitted.
    fn request(&mut self, worker: usize, caller: usize) -> bool {
        let verdict = self.limiters[worker].decide(&request(caller), 0, &self.clock);
        let Verdict::Admit(permit, _) = verdict else { return false };
        self.open.push((worker, permit));
        true
    }

    fn end(&mut self, rng: &mut Rng) {
        if self.open.is_empty() {
            return;
        }
        let place = rng.usize(..self.open.len());
        let (worker, mut permit) = self.open.swap_remove(place);
        let status = if rng.bool() { 200 } else { 401 };
        let ending = FakeEnding::answered(status).header("x-used", rng.u8(..12).to_string());
        let limiter = &mut self.limiters[worker];
        limiter.on_response(&mut permit, &ending);
        limiter.finish(permit, &ending, self.clock.0.get());
    }

    /// Another writer damages a value, at most once per instant.
    fn damage(&mut self, rng: &mut Rng) {
        self.clock.0.set(self.clock.0.get().later(SECOND / 100));
        let keys = self.data.keys();
        let Some(key) = rng.choice(&keys) else { return };
        let Some((mut bytes, _)) = self.data.get(key) else { return };
        match rng.u8(..8) {
            0 => bytes = (0..rng.usize(..60)).map(|_| rng.u8(..)).collect(),
            1 => bytes.truncate(rng.usize(..=bytes.len())),
            2 => bytes.iter_mut().skip(8).for_each(|byte| *byte = 0xff),
            _ => {
                let (words, _) = bytes.as_chunks_mut::<8>();
                for word in words.iter_mut().skip(1) {
                    if rng.u8(..3) == 0 {
                        *word = (rng.u64(..) >> rng.u8(..64)).to_le_bytes();
                    }
                }
            }
        }
        self.data.set(key, &bytes);
    }
}

fn limiter(document: &str, data: &Rc<FakeSharedData>) -> Limiter {
    let policy = diana_config::Reader::default()
        .policy(document.as_bytes())
        .unwrap_or_else(|all| panic!("{all}"));
    Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, data.clone())
        .unwrap_or_else(|why| panic!("{why}"))
}
