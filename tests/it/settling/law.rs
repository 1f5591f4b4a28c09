//! The law of what is settled: an oracle that remembers every reservation and settlement says what is charged, whatever
//! workers and callers do.

use std::rc::Rc;

use diana_core::engine::Engine;
use diana_core::key::Seed;
use diana_core::permit::{End, Permit};
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::SECOND;
use diana_core::verdict::Verdict;
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::seed;
use kit::store::gateway::START;

const LIMIT: u64 = 200;
const MOST: u64 = 40;
const CALLERS: usize = 3;

struct Worker {
    engine: Engine,
    tables: Tables,
}

struct Open {
    worker: usize,
    caller: usize,
    permit: Permit,
    since: u64,
}

struct World {
    workers: Vec<Worker>,
    data: Rc<FakeSharedData>,
    document: String,
    clock: FakeClock,
    reserve: u64,
    open: Vec<Open>,
    /// What each caller used, with what is reserved for its requests.
    used: [u64; CALLERS],
    /// What requests are in debt for.
    debts: u64,
    /// One request in so many uses anything.
    uses: u32,
    /// Whether what drains meanwhile does not come back, and what that may be so far, in permits times ticks.
    drains: bool,
    /// When something of a caller last came back.
    back: [u64; CALLERS],
    drained: u64,
}

impl World {
    fn new(algo: &str, scope: &str, rng: &mut Rng) -> World {
        let reserve = rng.u64(0..=10);
        // So slow that nothing comes back while a plan lasts.
        let document = format!(
            "limits: [{{Url: /, rules: [{{name: tokens, actor: account, unit: day, rpu: {LIMIT}, algo: {algo},
               scope: {scope}, cost: {{response: {{header: x-used}}, reserve: {reserve}, max: {MOST}}}}}]}}]"
        );
        let workers = if scope == "local" { 1 } else { rng.usize(1..4) };
        let clock = FakeClock::default();
        clock.0.set(START);
        let mut world = World {
            workers: Vec::new(),
            data: Rc::default(),
            document,
            clock,
            reserve,
            open: Vec::new(),
            used: [0; CALLERS],
            debts: 0,
            uses: 1,
            back: [0; CALLERS],
            drains: algo == "TB",
            drained: 0,
        };
        for _ in 0..workers {
            let mut tables = Tables::default();
            let engine = world.engine(&mut tables);
            world.workers.push(Worker { engine, tables });
        }
        world
    }

    fn engine(&self, tables: &mut Tables) -> Engine {
        let policy = diana_config::parse(self.document.as_bytes())
            .unwrap_or_else(|problems| panic!("{problems}"));
        let stores = Stores::new("test".into(), self.data.clone(), tables);
        Engine::new(policy, Seed { k0: 1, k1: 2 }, stores, None).unwrap()
    }

    fn pass(&mut self, ticks: u64) {
        self.clock.0.set(self.clock.0.get().later(ticks));
        for worker in &mut self.workers {
            worker.engine.tidy(self.clock.0.get());
        }
    }

    /// A request comes. Whether it goes on.
    fn request(&mut self, worker: usize, caller: usize) -> bool {
        let request = FakeRequest::get("/").header("x-account-id", caller.to_string());
        let engine = &mut self.workers[worker].engine;
        let mut verdict = engine.decide(&request, &self.clock);
        let needs = self.reserve.max(1);
        let fits = self.used[caller] + needs <= LIMIT;
        for _ in 0..20 {
            let Verdict::Ask { .. } = verdict else { break };
            // Others hold what it needs, and give it back.
            self.pass(SECOND / 50);
            let engine = &mut self.workers[worker].engine;
            let now = self.clock.0.get();
            let resumed = engine.work(now, &NoCallout);
            for resumed in resumed {
                let again = engine.resume(&resumed, now);
                let again =
                    again.unwrap_or_else(|| engine.decide_again(&resumed, &request, &self.clock));
                verdict = again;
            }
        }
        match verdict {
            Verdict::Admit(permit, _) => {
                assert!(fits, "{} of {LIMIT} were used, and {needs} more", self.used[caller]);
                self.used[caller] += self.reserve;
                let since = self.clock.0.get().mono;
                self.open.push(Open { worker, caller, permit, since });
                true
            }
            Verdict::Refuse(_) => {
                let used = self.used[caller] + self.drained.div_ceil(86_400 * SECOND);
                // Another worker hears of it after 20 ms.
                let now = self.clock.0.get().mono;
                let heard = self.workers.len() == 1 || now >= self.back[caller] + SECOND / 50;
                assert!(!heard || used + needs > LIMIT, "refused with {used} of {LIMIT} used");
                false
            }
            other => panic!("{other:?}"),
        }
    }

    /// The stream of some request ends.
    fn end(&mut self, rng: &mut Rng) {
        if self.open.is_empty() {
            return;
        }
        let Open { worker, caller, mut permit, since } =
            self.open.swap_remove(rng.usize(..self.open.len()));
        self.comes_back(caller, since);
        let engine = &mut self.workers[worker].engine;
        let now = self.clock.0.get();
        let end = if rng.u32(..self.uses) == 0 { rng.u8(..6) } else { 2 };
        let used = match end {
            0 => {
                permit.finish(End::Left);
                engine.take_back(now);
                0
            }
            1 => {
                engine.settle(permit, &FakeEnding::left(None), now);
                MOST
            }
            2 => {
                engine.settle(permit, &FakeEnding::unreachable(), now);
                0
            }
            _ => {
                let used = rng.u64(0..=MOST);
                let came = FakeEnding::answered(200).header("x-used", used.to_string());
                engine.hear_response(&mut permit, &came);
                engine.settle(permit, &FakeEnding::answered(200), now);
                used
            }
        };
        self.used[caller] = self.used[caller] - self.reserve + used;
        self.debts += used.saturating_sub(self.reserve);
    }

    /// Something may come back that was charged then.
    fn comes_back(&mut self, caller: usize, since: u64) {
        self.back[caller] = self.clock.0.get().mono;
        if self.drains {
            self.drained += (self.clock.0.get().mono - since) * LIMIT;
        }
    }

    /// The rules are read again, while requests are under way by the old ones.
    fn update(&mut self, worker: usize) {
        let mut tables = std::mem::take(&mut self.workers[worker].tables);
        let engine = self.engine(&mut tables);
        let now = self.clock.0.get();
        let mut ended = Vec::new();
        let (old, rest): (Vec<Open>, Vec<Open>) =
            std::mem::take(&mut self.open).into_iter().partition(|open| open.worker == worker);
        self.open = rest;
        for Open { caller, permit, since, .. } in old {
            self.comes_back(caller, since);
            ended.push((caller, permit));
        }
        self.workers[worker].tables = tables;
        let mut old = std::mem::replace(&mut self.workers[worker].engine, engine);
        for (caller, permit) in ended {
            old.settle(permit, &FakeEnding::unreachable(), now);
            self.used[caller] -= self.reserve;
        }
    }
}

/// Nobody to be asked.
struct NoCallout;

impl diana_core::port::Callout for NoCallout {
    fn send(&self, _call: &diana_core::port::Call) -> Result<u32, &'static str> {
        Err("nobody")
    }

    fn caller(&self) -> u32 {
        0
    }
}

/// How requests come.
struct Pace {
    steps: usize,
    /// Ticks that pass at a time.
    pause: u64,
    /// One in so many uses anything.
    uses: u32,
}

const SLOWLY: Pace = Pace { steps: 300, pause: SECOND / 5, uses: 1 };
/// So fast that permits are leased.
const FAST: Pace = Pace { steps: 3000, pause: SECOND / 500, uses: 300 };

fn follow(algo: &str, scope: &str, pace: &Pace, seed: u64) -> World {
    let &Pace { steps, pause, uses } = pace;
    let mut rng = Rng::with_seed(seed);
    println!("{algo} {scope} {steps} seed {seed}");
    let mut world = World::new(algo, scope, &mut rng);
    world.uses = uses;
    for _ in 0..steps {
        let worker = rng.usize(..world.workers.len());
        match rng.u8(..12) {
            0..=5 => {
                world.request(worker, rng.usize(..CALLERS));
            }
            6..=9 => world.end(&mut rng),
            10 => world.pass(rng.u64(..pause)),
            _ if rng.u8(..4) == 0 => world.update(worker),
            _ => {}
        }
    }
    while !world.open.is_empty() {
        world.end(&mut rng);
    }
    world.pass(SECOND);
    world
}

#[test]
fn what_was_used_is_what_is_charged() {
    let (mut debts, seed) = (0, seed::next());
    for scope in ["local", "gateway"] {
        for algo in ["W", "SW", "TB"] {
            for number in 0..40 {
                let pace = if number < 30 { &SLOWLY } else { &FAST };
                let world = follow(algo, scope, pace, seed.wrapping_add(number));
                debts += world.debts;
            }
        }
    }
    assert!(debts > 1000, "{debts}");
}
