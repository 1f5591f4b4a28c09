//! The law of permits: reserved permits are used or returned, exactly once. Requests arrive, are
//! admitted and leave at any instant, while the configuration changes. Each held request waits
//! exactly until the first free instant of the model.

use std::rc::Rc;

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::time::Micros;
use diana_store::permit::{End, Permit};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_worker::hold::Queue;
use fastrand::Rng;
use kit::fake::{FakeClock, FakeMetrics, FakeSharedData};
use kit::seed;

use super::from;
use crate::support::queue::Model;
use kit::store::gateway::START;

const CALLERS: usize = 3;

/// Ticks between two turns.
const INTERVAL: Micros = 100_000;

/// Maximum delay of a caller's requests.
const LONGEST: Micros = 3 * INTERVAL;

/// A held request: its limiter and its caller.
struct Waiting {
    stream: u32,
    limiter: usize,
    caller: usize,
}

/// Statistics that show sufficient variety.
#[derive(Debug, Default)]
struct Seen {
    at_once: usize,
    held: usize,
    refused: usize,
    served: usize,
    left: usize,
    /// Clients of a replaced limiter that left.
    late: usize,
}

struct World {
    text: String,
    data: Rc<FakeSharedData>,
    tables: Tables,
    clock: FakeClock,
    /// The last one decides. The others were replaced.
    limiters: Vec<Limiter>,
    queue: Queue,
    /// Determines the position that becomes free when a client leaves.
    model: Model,
    waiting: Vec<Waiting>,
    streams: u32,
    /// The last taken turn of each caller.
    last: [Option<Micros>; CALLERS],
    seen: Seen,
}

impl World {
    fn new(rng: &mut Rng) -> World {
        let scope = ["local", "gateway"][rng.usize(..2)];
        // A worker's cached refusal is not updated when another one returns a position.
        let queue = if scope == "local" { LONGEST / INTERVAL } else { 200 };
        let line = format!(
            "{{name: line, actor: account, unit: second, rpu: 10, algo: LB, max_delay: 20s,
               max_queue: {queue}, scope: {scope}}}"
        );
        let beside =
            "{name: beside, actor: account, unit: second, rpu: 1000, algo: W, scope: local}";
        let rules = match rng.u8(..3) {
            0 => line,
            1 => format!("{line}, {beside}"),
            _ => format!("{beside}, {line}"),
        };
        let clock = FakeClock::default();
        clock.0.set(START);
        let mut world = World {
            text: format!("limits: [{{Url: /, rules: [{rules}]}}]"),
            data: Rc::default(),
            tables: Tables::default(),
            clock,
            limiters: Vec::new(),
            queue: Queue::default(),
            model: Model::default(),
            waiting: Vec::new(),
            streams: 0,
            last: [None; CALLERS],
            seen: Seen::default(),
        };
        world.configure();
        world
    }

    fn configure(&mut self) {
        let policy = diana_config::Reader::default().policy(self.text.as_bytes());
        let policy = policy.unwrap_or_else(|problems| panic!("{problems}"));
        let stores = Stores::new("test".into(), self.data.clone(), &mut self.tables);
        self.limiters.push(Limiter::new(policy, Seed { k0: 7, k1: 9 }, stores, None).unwrap());
    }

    fn now(&self) -> Micros {
        self.clock.0.get().mono
    }

    /// The first free instant for a caller.
    fn free(&self, caller: usize) -> Micros {
        self.last[caller].map_or(0, |last| last + INTERVAL).max(self.now())
    }

    fn request(&mut self, caller: usize) {
        let (now, free, limiter) = (self.now(), self.free(caller), self.limiters.len() - 1);
        let verdict = self.limiters[limiter].decide(&from(&caller.to_string()), 0, &self.clock);
        match verdict {
            Verdict::Admit(permit, _) => {
                assert_eq!(free, now, "it had to be held");
                assert!(permit.is_none(), "there is nothing to give back");
                self.seen.at_once += 1;
            }
            Verdict::Hold(held) => {
                assert_eq!(held.until - now, free - now, "of caller {caller}");
                assert!(free > now && !held.position.is_none());
                let position = format!("{:?}", held.position);
                assert_eq!(
                    position.matches("OpenCharge").count(),
                    1,
                    "of one place in a line: {position}"
                );
                self.streams += 1;
                let stream = self.streams;
                self.waiting.push(Waiting { stream, limiter, caller });
                self.model.join(stream, limiter as u32, held.until, held.line);
                self.queue.join(stream, limiter as u32, *held);
                self.seen.held += 1;
            }
            Verdict::Refuse(_) => {
                assert!(free - now > LONGEST, "{} ticks are not too many", free - now);
                self.seen.refused += 1;
                return;
            }
            Verdict::Pending { .. } => panic!("nobody to ask"),
        }
        self.last[caller] = Some(free);
    }

    /// A client leaves. Its permit is closed or lost.
    fn leave(&mut self, rng: &mut Rng) {
        if self.waiting.is_empty() {
            return;
        }
        let Waiting { stream, limiter, caller } =
            self.waiting.swap_remove(rng.usize(..self.waiting.len()));
        let permit = self.queue.leave(stream).unwrap();
        let place = self.model.leave(stream).unwrap();
        match rng.bool() {
            true => permit.finish(End::Left),
            false => drop::<Permit>(permit),
        }
        // A limiter processes returns before its next request. Two limiters share one state.
        if self.limiters.len() > 1 || rng.bool() {
            self.limiters[limiter].return_charges(self.clock.0.get());
        }
        if self.last[caller] == Some(place) {
            self.last[caller] = Some(place - INTERVAL);
        }
        self.seen.left += 1;
        self.seen.late += usize::from(limiter + 1 < self.limiters.len());
    }

    /// Advances the clock, and releases requests at their turn.
    fn wait(&mut self, ticks: Micros) {
        self.clock.0.set(self.clock.0.get().later(ticks));
        let now = self.now();
        while let Some((stream, permit)) = self.queue.release(now) {
            assert_eq!(self.model.release(now), Some(stream));
            permit.finish(End::Served);
            self.waiting.retain(|waiting| waiting.stream != stream);
            self.seen.served += 1;
        }
        assert_eq!(self.model.release(now), None);
    }

    fn replace(&mut self, rng: &mut Rng) {
        self.configure();
        let (now, old) = (self.clock.0.get(), self.limiters.len() - 2);
        match rng.bool() {
            true => self.limiters[old].retire("test", now, &FakeMetrics::default()),
            false => _ = self.limiters[old].maintain(now),
        }
    }
}

#[test]
fn reserved_permits_are_used_or_returned_once() {
    let mut rng = Rng::with_seed(seed::next());
    let mut total = Seen::default();
    for _ in 0..200 {
        let mut world = World::new(&mut rng);
        for _ in 0..300 {
            match rng.u8(..100) {
                0..50 => world.request(rng.usize(..CALLERS)),
                50..68 => world.leave(&mut rng),
                68..97 => world.wait(rng.u64(..INTERVAL)),
                97 => world.wait(20 * INTERVAL),
                _ => world.replace(&mut rng),
            }
        }
        world.wait(1_000 * INTERVAL);
        assert!(world.waiting.is_empty() && world.queue.next().is_none());
        let Seen { at_once, held, refused, served, left, late } = world.seen;
        assert_eq!(held, served + left, "every request that was held went on or left");
        total.at_once += at_once;
        total.held += held;
        total.refused += refused;
        total.served += served;
        total.left += left;
        total.late += late;
    }
    let Seen { at_once, refused, served, left, late, .. } = total;
    let least = [at_once, refused, served, left, late].into_iter().min();
    assert!(least > Some(500), "too tame: {total:?}");
}
