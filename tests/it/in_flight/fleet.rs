//! Gateways that count requests in flight together in a Redis, with an oracle that remembers which are. Calls and answers
//! get lost, Redis is away, and configurations change.

mod away;
mod law;

use diana_core::engine::{Engine, Resumed};
use diana_core::permit::Permit;
use diana_core::port::Answer;
use diana_core::time::{Micros, Now, SECOND};
use diana_core::verdict::Verdict;
use fastrand::Rng;
use kit::fake::{FakeCallout, FakeClock};
use kit::in_flight;
use kit::model::redis::Redis;
use kit::model::wire::{Asking, commands};
use kit::seed;
use kit::store::gateway::START;

const LIMIT: usize = 4;
const CALLERS: usize = 3;
const MILLISECOND: Micros = SECOND / 1000;

/// How often a gateway sees to what it holds.
const TICK: Micros = SECOND / 10;

/// Within this time whatever nobody holds any more is free.
const AGAIN: Micros = 2 * SECOND;

/// For how long a place counts of which Redis has not heard that it is held.
const GRANTED: Micros = SECOND;

/// After this time without a word Redis may have forgotten what a gateway holds.
const FORGETS: Micros = SECOND;

/// A request in flight.
struct Open {
    caller: usize,
    permit: Permit,
    known: Known,
}

/// Whether Redis knows of it.
#[derive(PartialEq)]
enum Known {
    /// It was granted at this instant.
    Granted(Micros),
    Held,
    Forgotten,
}

/// A gateway of one worker.
struct Gateway {
    engine: Engine,
    callout: FakeCallout,
    /// By what it signs what it settles.
    name: Vec<u8>,
    done: usize,
    ticked: Micros,
    /// Whether Redis hears of it.
    cut: bool,
    /// The requests that wait, by their tickets.
    asked: in_flight::Asked,
    open: Vec<Open>,
    /// When Redis last heard that it lives.
    told: Micros,
}

struct Fleet {
    redis: Redis,
    clock: FakeClock,
    gateways: Vec<Gateway>,
    rng: Rng,
    /// How many calls and answers of a thousand get lost.
    lossy: u32,
    admitted: usize,
    refused: usize,
}

fn gateway(random: u64, now: Micros) -> Gateway {
    Gateway {
        engine: in_flight::engine(LIMIT, 20 * MILLISECOND, random),
        callout: FakeCallout::default(),
        name: format!("{random:016x}").into_bytes(),
        done: 0,
        ticked: now,
        cut: false,
        asked: Vec::new(),
        open: Vec::new(),
        told: now,
    }
}

impl Fleet {
    fn new(gateways: u64) -> Fleet {
        let mut rng = Rng::with_seed(seed::next());
        let clock = FakeClock::default();
        clock.0.set(START.later(rng.u64(..10 * SECOND)));
        let now = clock.0.get().mono;
        let gateways = (0..gateways).map(|_| gateway(rng.u64(..), now)).collect();
        let redis = Redis::default();
        Fleet { redis, clock, gateways, rng, lossy: 0, admitted: 0, refused: 0 }
    }

    fn now(&self) -> Now {
        self.clock.0.get()
    }

    /// Requests of a caller in flight of which Redis has to know.
    fn open(&self, caller: usize) -> usize {
        let counts = |it: &&Open| match it.known {
            _ if it.caller != caller => false,
            Known::Granted(at) => self.now().mono < at + GRANTED,
            Known::Held => true,
            Known::Forgotten => false,
        };
        self.gateways.iter().flat_map(|it| &it.open).filter(counts).count()
    }

    fn request(&mut self, at: usize, caller: usize) {
        let verdict = self.gateways[at].engine.decide(&in_flight::request(caller), &self.clock);
        self.take(at, caller, verdict);
    }

    fn take(&mut self, at: usize, caller: usize, verdict: Verdict) {
        match verdict {
            Verdict::Ask { ticket } => self.gateways[at].asked.push((ticket, caller)),
            Verdict::Admit(permit, _) => {
                let now = self.now().mono;
                let it = &mut self.gateways[at];
                if it.open.iter().all(|open| open.known == Known::Forgotten) {
                    it.told = now;
                }
                it.open.push(Open { caller, permit, known: Known::Granted(now) });
                self.admitted += 1;
                assert!(self.open(caller) <= LIMIT, "{} in flight", self.open(caller));
            }
            Verdict::Refuse(_) => self.refused += 1,
            other => panic!("{other:?}"),
        }
    }

    /// A gateway does what is due, and hears what Redis answers; unless that gets lost.
    fn work(&mut self, at: usize) {
        let now = self.now();
        let it = &mut self.gateways[at];
        if now.mono >= it.ticked + TICK {
            it.ticked = now.mono;
            let goes_on = it.engine.tidy(now) || now.mono >= it.told + FORGETS;
            let holds = it.open.iter().any(|open| open.known != Known::Forgotten);
            assert!(goes_on || !holds, "who is not called again says nothing");
        }
        let resumed = it.engine.work(now, &it.callout);
        self.resume(at, resumed);
        loop {
            let it = &mut self.gateways[at];
            let Some(call) = it.callout.sent.borrow().get(it.done).cloned() else { break };
            let token = it.done as u32;
            it.done += 1;
            let mut loses = || self.gateways[at].cut || self.rng.u32(..1000) < self.lossy;
            let (there, back) = (loses(), loses());
            let body = (!there).then(|| self.redis.answer(&call.body, now.wall));
            let body = body.filter(|_| !back);
            // Whoever hears nothing is told so by its proxy.
            let (status, body) = (body.as_ref().map(|_| 200), body.unwrap_or_default());
            let answer = Answer { status, size: body.len(), body: &|| Some(body.clone()) };
            let it = &mut self.gateways[at];
            let settles = Asking::read(&commands(&call.body)[0]).settles;
            // What another one left that has ended says nothing of this one.
            if status.is_some() && settles.is_some_and(|(sender, ..)| sender.ends_with(&it.name)) {
                it.told = now.mono;
            }
            let resumed = it.engine.answer(token, &answer, now).unwrap_or_default();
            self.resume(at, resumed);
        }
        self.learn(at);
    }

    /// What Redis knows of a gateway, after that has done what is due.
    fn learn(&mut self, at: usize) {
        let now = self.now().mono;
        let it = &mut self.gateways[at];
        let is_told = it.engine.redis().away() == 0 && !it.engine.redis().has_operations();
        for open in &mut it.open {
            match open.known {
                _ if now >= it.told + FORGETS => open.known = Known::Forgotten,
                Known::Granted(_) if is_told => open.known = Known::Held,
                _ => {}
            }
        }
    }

    fn resume(&mut self, at: usize, resumed: Vec<Resumed>) {
        for resumed in resumed {
            let it = &mut self.gateways[at];
            let (engine, asked) = (&mut it.engine, &mut it.asked);
            let (clock, rng) = (&self.clock, &mut self.rng);
            if let Some((caller, verdict)) = in_flight::go_on(engine, asked, &resumed, clock, rng) {
                self.take(at, caller, verdict);
            }
        }
    }

    /// Ends one of the requests of a gateway, in some way.
    fn end(&mut self, at: usize) {
        let now = self.now();
        let it = &mut self.gateways[at];
        if it.open.is_empty() {
            return;
        }
        let place = self.rng.usize(..it.open.len());
        let Open { permit, .. } = it.open.swap_remove(place);
        in_flight::end(&mut it.engine, permit, now, &mut self.rng);
    }

    fn end_all(&mut self) {
        for at in 0..self.gateways.len() {
            while !self.gateways[at].open.is_empty() {
                self.end(at);
            }
        }
    }

    /// A gateway has another configuration, which goes on with what the old one has not settled.
    fn update(&mut self, at: usize) {
        let now = self.now();
        let old = &mut self.gateways[at];
        if !old.asked.is_empty() || !old.open.is_empty() {
            return;
        }
        let mut new = gateway(self.rng.u64(..), now.mono);
        new.cut = old.cut;
        assert!(new.engine.inherit(&mut old.engine));
        self.gateways[at] = new;
    }

    /// All of them do what is due, for a while.
    fn run(&mut self, time: Micros) {
        let end = self.now().mono + time;
        while self.now().mono < end {
            (0..self.gateways.len()).for_each(|at| self.work(at));
            self.clock.0.set(self.now().later(MILLISECOND));
        }
    }

    /// Requests of a caller come to a gateway, more than there are places, so that all of these are taken.
    fn fill(&mut self, at: usize, caller: usize) {
        for _ in 0..4 * LIMIT {
            self.request(at, caller);
            self.run(3 * MILLISECOND);
        }
        assert_eq!(self.open(caller), LIMIT);
    }

    /// Each caller has just as many places as there are, and none is left behind.
    fn all_are_free(&mut self) {
        self.end_all();
        self.run(AGAIN);
        for caller in 0..CALLERS {
            for _ in 0..4 * LIMIT {
                let at = self.rng.usize(..self.gateways.len());
                self.request(at, caller);
                self.run(3 * MILLISECOND);
            }
            // Some of their clients have left while they waited.
            assert_eq!(self.open(caller), LIMIT, "{caller}");
        }
        self.end_all();
        self.run(SECOND / 2);
        assert_eq!(self.redis.in_flight.in_flight(), 0);
        for it in &mut self.gateways {
            assert!(!it.engine.tidy(self.clock.0.get()), "nothing is held");
            assert!(!it.engine.redis().has_operations());
        }
    }

    /// So many things happen at random.
    fn play(&mut self, steps: usize) {
        for _ in 0..steps {
            let at = self.rng.usize(..self.gateways.len());
            let caller = self.rng.usize(..CALLERS);
            match self.rng.u8(..40) {
                0..16 => self.request(at, caller),
                16..23 => self.end(at),
                23 => self.update(at),
                24 => {
                    let time = self.rng.u64(..SECOND / 2);
                    self.run(time);
                }
                _ => {
                    let time = self.rng.u64(..3 * MILLISECOND);
                    self.clock.0.set(self.now().later(time));
                    self.work(at);
                }
            }
        }
    }
}
