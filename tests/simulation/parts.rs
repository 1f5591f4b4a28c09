//! Rules of one request that lie in several parts of Redis: accounts and devices, each with a rule of its own.

mod numbers;
mod plan;
mod worker;

use std::rc::Rc;

use diana_core::time::{Micros, Now, SECOND};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::model::proxy::Proxy;
use kit::seed;

use plan::{Plan, random};
use worker::{Done, Who, Worker};

const MILLISECOND: Micros = SECOND / 1000;
const EPOCH: Micros = 1_700_000_000 * SECOND;

/// Workers that have called by then know of each other.
const ACQUAINTED: Micros = 3 * SECOND;

/// What a call may take there or back; and what a request waits at most for what others hold.
const LATENCY: Micros = 6 * MILLISECOND;
const PATIENCE: Micros = 300 * MILLISECOND;

/// From then on a request that waits may be refused since others, whose requests take more, still try for what it
/// needs.
const LONGEST: Micros = 180 * MILLISECOND;

/// A call on its way there, or an answer on its way back.
struct Way {
    due: Micros,
    worker: usize,
    token: u32,
    there: Option<Vec<u8>>,
    back: Option<Vec<u8>>,
}

struct World {
    plan: Plan,
    rng: Rng,
    proxy: Proxy,
    workers: Vec<Worker>,
    ways: Vec<Way>,
    done: Vec<Done>,
}

impl World {
    fn new(plan: Plan) -> World {
        let mut rng = Rng::with_seed(plan.seed);
        let configuration = plan.configuration(plan.parts);
        let clocks = |rng: &mut Rng| Now { mono: rng.u64(0..1 << 40), wall: EPOCH };
        let mut workers = Vec::new();
        for _ in 0..plan.gateways {
            let (data, clocks) = (Rc::new(FakeSharedData::default()), clocks(&mut rng));
            let worker = |_| Worker::new(&configuration, &data, clocks, rng.u64(1..));
            workers.extend((0..plan.workers).map(worker));
        }
        let (proxy, ways, done) = (Proxy::default(), Vec::new(), Vec::new());
        World { plan, rng, proxy, workers, ways, done }
    }

    /// Lets requests come for so long, and all that follows from them happen.
    fn run(&mut self, lasts: Micros) {
        self.run_with(lasts, |_, _| ());
    }

    /// As [`World::run`], and something else at any time.
    fn run_with(&mut self, lasts: Micros, mut something: impl FnMut(&mut World, Micros)) {
        let acquainted = self.plan.acquainted;
        for now in (0..lasts + SECOND).step_by(MILLISECOND as usize) {
            something(self, now);
            if now > acquainted && now < lasts {
                self.happen(now);
            }
            for number in 0..self.workers.len() {
                let early = now <= acquainted && now % (SECOND / 2) == 0;
                if early || now > acquainted && now < lasts && self.rng.u8(0..3) == 0 {
                    let who = match early {
                        true => (1000 + number, 1000 + now as usize + number, 1),
                        false => self.anybody(),
                    };
                    let done = self.workers[number].request(who, now);
                    self.done.extend(done);
                }
            }
            self.pass(now);
        }
        let waits: usize = self.workers.iter().map(Worker::waits).sum();
        assert_eq!(waits, 0, "requests are stranded");
    }

    fn anybody(&mut self) -> Who {
        let Plan { accounts, devices, most, .. } = self.plan;
        (self.rng.usize(0..accounts), self.rng.usize(0..devices), self.rng.u64(1..=most))
    }

    /// What goes wrong.
    fn happen(&mut self, now: Micros) {
        let Plan { moves, leaves, parts, goes, .. } = self.plan;
        let goes = goes.filter(|(_, at)| *at <= now);
        self.proxy.away.extend(goes.map(|(part, _)| part));
        if self.rng.u64(0..1000) < moves {
            let part = self.rng.usize(0..parts);
            if !self.proxy.away.remove(&part) {
                self.proxy.away.insert(part);
            }
        }
        if self.rng.u64(0..1000) < leaves {
            let number = self.rng.usize(0..self.workers.len());
            self.workers[number].leave(self.rng.usize(..), now);
        }
    }

    /// A millisecond passes.
    fn pass(&mut self, now: Micros) {
        let (due, rest): (Vec<Way>, Vec<Way>) =
            std::mem::take(&mut self.ways).into_iter().partition(|way| way.due <= now);
        self.ways = rest;
        let mut answers = vec![Vec::new(); self.workers.len()];
        for Way { worker, token, there, back, .. } in due {
            let Some(body) = there else {
                answers[worker].push((token, back));
                continue;
            };
            let back = self.proxy.answer(&body, EPOCH + now);
            let is_lost = self.rng.u64(0..1000) < self.plan.lost && now > self.plan.acquainted;
            let takes = if is_lost { 30 * MILLISECOND } else { self.rng.u64(0..LATENCY) };
            let back = (!is_lost).then_some(back);
            self.ways.push(Way { due: now + takes, worker, token, there: None, back });
        }
        for (number, worker) in self.workers.iter_mut().enumerate() {
            self.done.extend(worker.work(&answers[number], now));
            for (token, call) in worker.calls() {
                let is_lost = self.rng.u64(0..1000) < self.plan.lost && now > self.plan.acquainted;
                let takes = if is_lost { 30 * MILLISECOND } else { self.rng.u64(0..LATENCY) };
                let there = (!is_lost).then_some(call.body);
                self.ways.push(Way { due: now + takes, worker: number, token, there, back: None });
            }
        }
    }

    /// Permits of what was let through by an instant, of an account (0) or of a device (1).
    fn used(&self, place: usize, whose: usize, by: Micros) -> u64 {
        let is_whose = |(account, device, _): Who| [account, device][place] == whose;
        let all = self.done.iter();
        let those = all.filter(|done| done.admitted && is_whose(done.who) && done.at <= by);
        those.map(|done| done.who.2).sum()
    }

    /// The most that anybody used of a rule.
    fn most(&self, place: usize) -> u64 {
        let callers = [self.plan.accounts, self.plan.devices][place];
        (0..callers).map(|whose| self.used(place, whose, Micros::MAX)).max().unwrap_or(0)
    }
}

#[test]
fn nobody_gets_one_too_many_and_who_fits_is_not_refused() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut refused, mut exhausted, mut apart, mut outwaited, mut beyond) = (0, 0, 0, 0, 0);
    for _ in 0..40 {
        let mut world = World::new(random(&mut rng, &["W", "TB"]));
        world.run(ACQUAINTED + 2 * SECOND);
        let plan = world.plan.clone();
        for place in [0, 1] {
            assert!(world.most(place) <= plan.rpu[place], "{plan:?}: {}", world.most(place));
            exhausted += usize::from(world.most(place) == plan.rpu[place]);
        }
        for done in world.done.iter().filter(|done| !done.admitted) {
            let whose = [done.who.0, done.who.1];
            let is_used = |place: usize| {
                world.used(place, whose[place], done.at + LATENCY) + done.who.2 > plan.rpu[place]
            };
            refused += 1;
            if plan.most > 1 && done.at - done.came >= LONGEST && !(is_used(0) || is_used(1)) {
                outwaited += 1;
                continue;
            }
            if done.is_beyond && !(is_used(0) || is_used(1)) {
                beyond += 1;
                continue;
            }
            assert!(is_used(0) || is_used(1), "{plan:?}: {done:?} was refused although it fitted");
        }
        let longest = world.done.iter().map(|done| done.at - done.came).max();
        assert!(longest <= Some(PATIENCE), "{plan:?}: {longest:?}");
        apart += usize::from(world.proxy.parts() > 2);
    }
    assert!(refused > 1000 && exhausted > 40, "too tame: {refused}, {exhausted}");
    assert!(outwaited < refused / 1000, "{outwaited} of {refused} outwaited");
    assert!(beyond < refused / 100, "{beyond} of {refused} were of a crowd");
    assert!(apart > 20, "too tame: {apart} fleets had callers in several parts");
}

#[test]
fn whatever_fails_between_parts_nobody_gets_more_than_gateways_alone_may_give() {
    let mut rng = Rng::with_seed(seed::next());
    let mut beyond = 0;
    for _ in 0..40 {
        let plan = random(&mut rng, &["W", "TB", "LB"]);
        let (lost, moves, leaves) = (rng.u64(0..60), rng.u64(0..40), rng.u64(0..100));
        let plan = Plan { lost, moves, leaves, acquainted: ACQUAINTED, ..plan };
        let mut world = World::new(plan);
        world.run(ACQUAINTED + 2 * SECOND);
        let plan = &world.plan;
        let gateways = plan.gateways as u64;
        // A leaky bucket gives new places all the time.
        for place in [0, 1].into_iter().filter(|place| plan.algo[*place] != "LB") {
            let rpu = plan.rpu[place];
            let (most, bound) = (world.most(place), rpu + gateways * rpu.div_ceil(gateways));
            assert!(most <= bound, "{plan:?}: {most} of {bound}");
            beyond += usize::from(most > rpu);
        }
    }
    assert!(beyond > 5, "too tame: {beyond}");
}

#[test]
fn with_a_part_away_only_its_callers_go_by_their_gateway() {
    let mut rng = Rng::with_seed(seed::next());
    let mut beyond = 0;
    for _ in 0..20 {
        let plan = Plan { accounts: 40, devices: 40, parts: 4, ..random(&mut rng, &["W", "TB"]) };
        let goes = Some((rng.usize(1..4), ACQUAINTED + rng.u64(0..SECOND)));
        let (gateways, workers, acquainted) = (2, 1, ACQUAINTED);
        let plan = Plan { rpu: [12, 12], most: 1, gateways, workers, acquainted, goes, ..plan };
        let mut world = World::new(plan);
        world.run(ACQUAINTED + 2 * SECOND);
        for place in [0, 1] {
            let used: Vec<u64> =
                (0..40).map(|whose| world.used(place, whose, Micros::MAX)).collect();
            assert!(used.iter().all(|used| *used <= 24), "{used:?}");
            // One of four parts is away.
            let over = used.iter().filter(|used| **used > 12).count();
            assert!(over < 20, "{used:?}");
            beyond += over;
        }
    }
    assert!(beyond > 5, "too tame: {beyond}");
}
