//! Rules that ask Redis after they have decided, in fleets with calls and replies that are lost, doubled and late: no request
//! waits, everything admitted is charged once, and the excess is what gateways admit until a reply contains it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use diana_policy::key::{Key, KeyHasher, Seed};
use diana_policy::port::Answer;
use diana_policy::time::{Micros, Now, SECOND};
use diana_redis::protocol::resp::{Value, values};
use diana_store::process::Process;
use diana_worker::{Root, Stream};
use fastrand::Rng;
use kit::fake::{FakeRequest, FakeSharedData};
use kit::host::{FakeHost, StreamOutcome};
use kit::model::REPORT;
use kit::model::redis::Redis;
use kit::model::wire::{Asking, commands};
use kit::seed;

/// The secret that callers are hashed with.
const SEED: Seed = Seed { k0: 1, k1: 2 };
const ROOT: u32 = 0;
/// Of each gateway.
const WORKERS: usize = 2;
/// No window of a day ends in the worlds.
const NOON: Micros = 20_000 * 86_400 * SECOND + 43_200 * SECOND;

struct Fleet {
    gateways: usize,
    rule: String,
    /// Of a hundred calls, those that get lost, and those with a lost reply.
    lost: u64,
    /// Ticks of a call to Redis, and of the reply.
    latency: Micros,
    /// Requests a second, to all gateways together.
    demand: u64,
    is_native: bool,
}

struct Worker {
    host: FakeHost,
    worker: diana_worker::Worker,
    root: Root,
    streams: u32,
}

enum Event {
    Request,
    Arrival { worker: usize, token: Option<u32>, body: Rc<Vec<u8>> },
    Reply { worker: usize, token: u32, status: u16, body: Vec<u8> },
}

/// The permits of a batch of settlements.
#[derive(Default)]
struct Batch {
    permits: u64,
    is_replied: bool,
}

struct World<'f> {
    fleet: &'f Fleet,
    rng: Rng,
    now: Rc<Cell<Now>>,
    workers: Vec<Worker>,
    redis: Redis,
    events: BTreeMap<(Micros, u64), Event>,
    added: u64,
    heals: bool,
    /// Calls without a reply, by worker and token.
    calls: BTreeMap<(usize, u32), Rc<Vec<u8>>>,
    /// By sender and number.
    batches: BTreeMap<(Vec<u8>, u64), Batch>,
    /// The instants of the admitted requests.
    admitted: Vec<Micros>,
    /// Of each gateway: permits that no reply contains, and the most of them.
    unknown: Vec<u64>,
    most_unknown: Vec<u64>,
    /// Charged permits, as Redis reported them last.
    charged: u64,
    was_alone: bool,
}

impl<'f> World<'f> {
    /// Workers with their first reply.
    fn new(fleet: &'f Fleet, seed: u64) -> World<'f> {
        let mut world = World::start(fleet, seed);
        world.begin();
        world
    }

    fn start(fleet: &'f Fleet, seed: u64) -> World<'f> {
        let mut rng = Rng::with_seed(seed);
        let now = Rc::new(Cell::new(Now { mono: 1 << 40, wall: NOON }));
        let mut workers = Vec::new();
        for gateway in 0..fleet.gateways {
            let data = Rc::new(FakeSharedData::default());
            let halves = u128::from(SEED.k1) << 64 | u128::from(SEED.k0);
            data.set("diana/1/fleet/seed", &halves.to_le_bytes());
            let process = fleet.is_native.then(|| &*Box::leak(Box::<Process>::default()));
            for worker in 0..WORKERS {
                let random = u128::from(rng.u64(1..u64::MAX)) + (gateway + worker) as u128;
                let data = data.clone();
                let host =
                    FakeHost { now: now.clone(), data, random, process, ..FakeHost::default() };
                host.roots.borrow_mut().insert(ROOT, (0, 0));
                host.take_decided();
                let text = format!(
                    "namespace: fleet\nredis: {{cluster: redis, timeout: 20ms, gateways: {}}}\n\
                     limits: [{{Url: /, rules: [{{actor: account, {}, scope: global, ask: after}}]}}]",
                    fleet.gateways, fleet.rule
                );
                let (worker, mut root) = (diana_worker::Worker::default(), Root::default());
                assert!(root.configure(text.as_bytes(), b"fleet", &worker, &host));
                workers.push(Worker { host, worker, root, streams: 0 });
            }
        }
        World {
            fleet,
            rng,
            now,
            workers,
            redis: Redis::default(),
            events: BTreeMap::new(),
            added: 0,
            heals: false,
            calls: BTreeMap::new(),
            batches: BTreeMap::new(),
            admitted: Vec::new(),
            unknown: vec![0; fleet.gateways],
            most_unknown: vec![0; fleet.gateways],
            charged: 0,
            was_alone: false,
        }
    }

    fn mono(&self) -> Micros {
        self.now.get().mono
    }

    fn add(&mut self, after: Micros, event: Event) {
        self.added += 1;
        self.events.insert((self.mono() + after, self.added), event);
    }

    /// Time passes.
    fn run(&mut self, ticks: Micros) {
        let end = self.mono() + ticks;
        loop {
            let timer = (0..self.workers.len())
                .filter_map(|worker| Some((self.workers[worker].host.next()?.0, worker)))
                .min();
            let event = self.events.keys().next().map(|it| it.0);
            let at = [timer.map(|it| it.0), event].into_iter().flatten().min().unwrap_or(end);
            if at >= end {
                self.set(end);
                return;
            }
            self.set(at);
            match timer.filter(|timer| timer.0 <= at) {
                Some((_, worker)) => {
                    let it = &mut self.workers[worker];
                    it.host.fire(ROOT);
                    it.host.begin(ROOT);
                    let steps = it.root.tick(&it.worker, &it.host);
                    it.host.take_all(steps);
                    self.after(worker);
                }
                None => {
                    let (_, event) = self.events.pop_first().expect("an event");
                    self.happens(event);
                }
            }
        }
    }

    fn set(&mut self, mono: Micros) {
        let now = self.now.get();
        self.now.set(now.later(mono.saturating_sub(now.mono)));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Request => {
                let worker = self.rng.usize(0..self.workers.len());
                self.request(worker);
                let mean = SECOND / self.fleet.demand;
                let gap = self.rng.u64(0..=2 * mean);
                if !self.heals {
                    self.add(gap, Event::Request);
                }
            }
            Event::Arrival { worker, token, body } => {
                let reply = self.redis.answer(&body, self.now.get().wall);
                self.see(&body, &reply);
                if let Some(token) = token
                    && (self.heals || self.rng.u64(0..100) >= self.fleet.lost)
                {
                    let late = self.rng.u64(0..=2 * self.fleet.latency);
                    self.add(late, Event::Reply { worker, token, status: 200, body: reply });
                }
            }
            Event::Reply { worker, token, status, body } => {
                let Some(call) = self.calls.remove(&(worker, token)) else { return };
                if let (200, Some((batch, ..))) = (status, reports(&call)) {
                    let batch = self.batches.get_mut(&batch).expect("Redis had it");
                    let permits = if batch.is_replied { 0 } else { batch.permits };
                    batch.is_replied = true;
                    let unknown = &mut self.unknown[worker / WORKERS];
                    *unknown = unknown.saturating_sub(permits);
                }
                let it = &mut self.workers[worker];
                let fetch = || Some(body.clone());
                let size = body.len();
                let answer = Answer { status: Some(status), size, body: &fetch, header: &|_| None };
                it.host.begin(ROOT);
                let steps = it.root.on_reply(token, &answer, &it.worker, &it.host);
                it.host.take_all(steps);
                self.after(worker);
            }
        }
    }

    /// The first request of each worker waits for its reply, which is not lost.
    fn begin(&mut self) {
        self.heals = true;
        for worker in 0..self.workers.len() {
            assert_ne!(self.decide(worker, "bob"), StreamOutcome::Goes, "it waits");
            self.after(worker);
        }
        self.run(SECOND);
        self.workers.iter().for_each(|it| drop(it.host.take_decided()));
        self.heals = false;
    }

    fn decide(&mut self, worker: usize, account: &str) -> StreamOutcome {
        let it = &mut self.workers[worker];
        it.streams += 1;
        let request = Rc::new(FakeRequest::get("/").header("x-account-id", account));
        it.host.streams.borrow_mut().insert(it.streams, request.clone());
        let instance = it.root.instance().expect("it is configured").clone();
        self.was_alone |= instance.is_degraded(caller());
        let mut stream = Stream::new(instance, it.streams);
        let step = stream.request(&*request, &it.worker, &it.host);
        it.host.take(it.streams, step);
        it.host.take_decided().pop().map_or(StreamOutcome::Goes, |it| it.outcome)
    }

    /// A request, which never waits.
    fn request(&mut self, worker: usize) {
        match self.decide(worker, "ann") {
            StreamOutcome::Goes => {
                let gateway = worker / WORKERS;
                self.admitted.push(self.mono());
                self.unknown[gateway] += 1;
                let most = &mut self.most_unknown[gateway];
                *most = self.unknown[gateway].max(*most);
            }
            StreamOutcome::Refused => {}
            other => panic!("{other:?}"),
        }
        self.after(worker);
    }

    /// Sends the calls of a worker.
    fn after(&mut self, worker: usize) {
        self.workers[worker].host.drop_rest();
        for (token, call) in self.workers[worker].host.take_calls() {
            let (way, body) = (self.rng.u64(0..=2 * self.fleet.latency), Rc::new(call.body));
            if self.heals || self.rng.u64(0..100) >= self.fleet.lost {
                self.add(way, Event::Arrival { worker, token: Some(token), body: body.clone() });
            }
            if self.fleet.lost > 0 && self.rng.u64(0..10) == 0 {
                let late = self.rng.u64(0..SECOND);
                self.add(late, Event::Arrival { worker, token: None, body: body.clone() });
            }
            self.add(call.timeout, Event::Reply { worker, token, status: 504, body: Vec::new() });
            self.calls.insert((worker, token), body);
        }
    }

    /// Reads the permits of a batch, and what Redis has charged.
    fn see(&mut self, body: &[u8], reply: &[u8]) {
        let Some((batch, permits, asks)) = reports(body) else { return };
        self.batches.entry(batch).or_insert(Batch { permits, is_replied: false });
        if let Some(charged) = charged(reply, asks) {
            // A repeated call gets its former answer.
            self.charged = self.charged.max(charged);
        }
    }

    /// Requests come for some seconds.
    fn serve(&mut self, seconds: Micros) {
        self.add(0, Event::Request);
        self.run(seconds * SECOND);
    }

    /// The most permits beyond the limit: all that gateways had admitted without a reply, but for one of them.
    fn most_over(&self) -> u64 {
        self.most_unknown.iter().sum::<u64>() - self.most_unknown.iter().min().unwrap()
    }
}

fn caller() -> Key {
    let mut hasher = KeyHasher::new(&SEED);
    hasher.part(0, b"ann");
    hasher.finish()
}

/// The sender and the number of a batch of settlements, its permits, and its number of reports.
fn reports(body: &[u8]) -> Option<((Vec<u8>, u64), u64, u64)> {
    let commands = commands(body);
    let mut asking = Asking::read(&commands[0]);
    let (sender, number, asks) = asking.settles?;
    let mut permits = 0;
    for _ in 0..asks {
        assert_eq!(asking.ask(), Some((1, 0)));
        let (_, asked, _) = asking.rule(0, 0);
        assert_eq!(asked.what, REPORT);
        permits += asked.debt;
    }
    Some(((sender.into(), number), permits, asks))
}

/// The charged permits by the last report of a reply, unless the reply is of a call that came too late.
fn charged(reply: &[u8], asks: u64) -> Option<u64> {
    let numbers = values(reply)?;
    let Some(Value::Array(numbers)) = numbers.first() else { return None };
    let at = 3 + 11 * (asks as usize - 1) + 8;
    match numbers.get(at) {
        Some(Value::Integer(charged)) => Some(charged.cast_unsigned()),
        _ => None,
    }
}

/// The most requests within the ticks of a unit.
fn most_within(admitted: &[Micros], unit: Micros) -> u64 {
    let within = |(from, first): (usize, &Micros)| {
        admitted[from..].iter().take_while(|at| **at < first + unit).count() as u64
    };
    admitted.iter().enumerate().map(within).max().unwrap_or(0)
}

#[test]
fn admitted_permits_are_charged_once() {
    let (mut alone, mut lossy) = (0, 0);
    for number in 0..30 {
        let lost = [0, 1, 2, 2, 30][number % 5];
        let mut rng = Rng::with_seed(seed::next());
        let fleet = Fleet {
            gateways: rng.usize(1..4),
            rule: "unit: day, rpu: 1000000, algo: window".into(),
            lost,
            latency: rng.u64(100..4000),
            demand: rng.u64(20..2000),
            is_native: rng.bool(),
        };
        let mut world = World::new(&fleet, rng.u64(..));
        world.serve(1);
        world.heals = true;
        world.run(5 * SECOND);
        alone += usize::from(world.was_alone);
        // Arrears come with the next report about the caller.
        (0..world.workers.len()).for_each(|worker| world.request(worker));
        world.run(SECOND);
        assert!(!world.admitted.is_empty());
        let admitted = world.admitted.len() as u64;
        // A worker that enforces the gateway's share leases permits, and may not spend them.
        let (charged, alone) = (world.charged, world.was_alone);
        let is_all = charged == admitted || alone && charged > admitted;
        assert!(is_all, "{charged} of {admitted}, {lost} % lost, alone: {alone}");
        lossy += usize::from(lost > 0 && !world.was_alone);
    }
    assert!(alone > 5 && lossy > 5, "{alone}, {lossy}");
}

#[test]
fn excess_is_what_no_reply_contained() {
    let mut over = 0;
    for number in 0..60 {
        let mut rng = Rng::with_seed(seed::next());
        let limit = rng.u64(1..40);
        let (algo, unit, name) = [
            ("window", 86_400, "day"),
            ("token bucket", 60, "minute"),
            ("sliding window", 2, "2s"),
            ("token bucket", 1, "second"),
        ][number % 4];
        let fleet = Fleet {
            gateways: rng.usize(1..6),
            rule: format!("unit: {name}, rpu: {limit}, algo: {algo}"),
            lost: if rng.bool() { 0 } else { rng.u64(1..4) },
            latency: rng.u64(100..4000),
            demand: rng.u64(10..3000),
            is_native: rng.bool(),
        };
        let mut world = World::new(&fleet, rng.u64(..));
        world.serve(4);
        if world.was_alone {
            continue;
        }
        let more = world.most_over();
        let unit = unit * SECOND;
        let span = if algo == "token bucket" { 4 * SECOND } else { unit };
        let refilled = if algo == "token bucket" { limit * 4 * SECOND / unit } else { 0 };
        let admitted = most_within(&world.admitted, span);
        let most = (limit + more).min(limit * fleet.gateways as u64) + refilled;
        assert!(
            admitted <= most,
            "{admitted} of {limit} + {more}: {} gateways, {}",
            fleet.gateways,
            fleet.rule
        );
        over += u64::from(admitted > limit + refilled);
        if fleet.demand > 1000 && algo != "sliding window" {
            assert!(
                admitted >= (limit + refilled) * 9 / 10,
                "{admitted} of {limit}: {}",
                fleet.rule
            );
        }
    }
    assert!(over > 5, "{over}");
}

/// The example of the page: ten gateways, 10 a minute, 200 at once.
#[test]
fn a_burst_at_ten_gateways_passes_ten_times() {
    let fleet = Fleet {
        gateways: 10,
        rule: "unit: minute, rpu: 10, algo: token bucket".into(),
        lost: 0,
        latency: 500,
        demand: 1,
        is_native: false,
    };
    let mut world = World::new(&fleet, 1);
    (0..200).for_each(|number| world.request(number % 20));
    assert_eq!(world.admitted.len(), 100);
    world.heals = true;
    world.run(SECOND);
    assert_eq!(world.charged, 100);
    // Those that got a reply before the others learn of them, since they are refused.
    world.run(SECOND);
    (0..20).for_each(|worker| world.request(worker));
    // The debt of 90 is paid before the next request passes.
    world.run(9 * 60 * SECOND - 6 * SECOND);
    (0..20).for_each(|worker| world.request(worker));
    assert_eq!(world.admitted.len(), 100);
    world.run(12 * SECOND);
    world.request(0);
    assert_eq!(world.admitted.len(), 101);
}
