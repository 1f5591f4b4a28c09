//! Requests in flight in a fleet on a real Redis, with an oracle that remembers which are. Calls and answers get lost.

mod law;

use std::cell::Cell;
use std::rc::Rc;

use diana_core::engine::{Engine, Resumed};
use diana_core::permit::Permit;
use diana_core::port::{Answer, Clock};
use diana_core::time::{Micros, Now, SECOND};
use diana_core::verdict::Verdict;
use fastrand::Rng;
use kit::fake::FakeCallout;
use kit::in_flight;
use kit::seed;
use kit::server::Server;

const LIMIT: usize = 4;
const CALLERS: usize = 3;

const MILLI: Micros = SECOND / 1000;
const AGAIN: Micros = 2 * SECOND;

/// Gateways go by the clock of their Redis.
struct ServerClock<'s>(&'s Server);

impl Clock for ServerClock<'_> {
    fn now(&self) -> Now {
        let ticks = self.0.now();
        Now { mono: ticks, wall: ticks }
    }
}

/// A gateway of one worker.
struct Gateway {
    engine: Engine,
    callout: FakeCallout,
    done: usize,
    under_way: Vec<UnderWay>,
    /// The requests that wait, by their tickets.
    asked: in_flight::Asked,
}

/// A call on its way to Redis, or its answer on the way back.
struct UnderWay {
    since: Micros,
    token: u32,
    bytes: Vec<u8>,
    is_answer: bool,
}

struct Open {
    caller: usize,
    gateway: usize,
    permit: Permit,
    /// Whether Redis was emptied meanwhile.
    forgotten: bool,
}

struct Fleet {
    server: Server,
    gateways: Vec<Gateway>,
    open: Vec<Open>,
    rng: Rng,
    /// How many calls and answers of a thousand get lost.
    lossy: Rc<Cell<u32>>,
    /// How long a call takes to get there, and an answer to come back.
    way: Micros,
    /// How many more of a caller may be in flight than the limit says, since Redis was emptied when it had not been told all.
    further: usize,
    admitted: usize,
    refused: usize,
}

fn gateway(random: u64, timeout: Micros) -> Gateway {
    let (engine, callout) = (in_flight::engine(LIMIT, timeout, random), FakeCallout::default());
    Gateway { engine, callout, done: 0, under_way: Vec::new(), asked: Vec::new() }
}

impl Fleet {
    fn new(gateways: u64) -> Fleet {
        Fleet::far(gateways, 0)
    }

    /// Redis is so far away, there or back.
    fn far(gateways: u64, way: Micros) -> Fleet {
        let timeout = SECOND / 50 + 8 * way;
        let mut rng = Rng::with_seed(seed::next());
        Fleet {
            server: Server::start(),
            gateways: (0..gateways).map(|_| gateway(rng.u64(..), timeout)).collect(),
            open: Vec::new(),
            rng,
            lossy: Rc::default(),
            way,
            further: 0,
            admitted: 0,
            refused: 0,
        }
    }

    fn open(&self, caller: usize) -> usize {
        self.open.iter().filter(|open| open.caller == caller).count()
    }

    /// A request of a caller comes to a gateway, which asks.
    fn request(&mut self, gateway: usize, caller: usize) {
        let it = &mut self.gateways[gateway];
        let verdict = it.engine.decide(&in_flight::request(caller), &ServerClock(&self.server));
        self.take(gateway, caller, verdict);
    }

    fn take(&mut self, gateway: usize, caller: usize, verdict: Verdict) {
        match verdict {
            Verdict::Ask { ticket } => self.gateways[gateway].asked.push((ticket, caller)),
            Verdict::Admit(permit, _) => {
                self.open.push(Open { caller, gateway, permit, forgotten: false });
                self.admitted += 1;
                let forgotten = |it: &&Open| it.caller == caller && it.forgotten;
                let forgotten = self.open.iter().filter(forgotten).count();
                let most = LIMIT + forgotten.max(self.further);
                assert!(self.open(caller) <= most, "{} of {most} in flight", self.open(caller));
            }
            Verdict::Refuse(_) => self.refused += 1,
            other => panic!("{other:?}"),
        }
    }

    /// A gateway does what is due, and hears what Redis answers; unless that gets lost.
    fn work(&mut self, gateway: usize) {
        let now = ServerClock(&self.server).now();
        let it = &mut self.gateways[gateway];
        it.engine.tidy(now);
        let resumed = it.engine.work(now, &it.callout);
        self.resume(gateway, resumed);
        let it = &mut self.gateways[gateway];
        for call in it.callout.sent.borrow().iter().skip(it.done) {
            let (since, token, bytes) = (now.mono, it.done as u32, call.body.clone());
            it.under_way.push(UnderWay { since, token, bytes, is_answer: false });
            it.done += 1;
        }
        while let Some(arrived) = self.arrived(gateway) {
            if self.rng.u32(..1000) < self.lossy.get() {
                continue;
            }
            let UnderWay { token, bytes, is_answer, .. } = arrived;
            let it = &mut self.gateways[gateway];
            if !is_answer {
                let (since, bytes) = (now.mono, self.server.exchange(&bytes));
                it.under_way.push(UnderWay { since, token, bytes, is_answer: true });
                continue;
            }
            let size = bytes.len();
            let answer = Answer { status: Some(200), size, body: &|| Some(bytes.clone()) };
            let resumed = it.engine.answer(token, &answer, now).unwrap_or_default();
            self.resume(gateway, resumed);
        }
    }

    /// What has been on its way for long enough.
    fn arrived(&mut self, gateway: usize) -> Option<UnderWay> {
        let now = self.server.now();
        let all = &mut self.gateways[gateway].under_way;
        let at = all.iter().position(|it| it.since + self.way <= now)?;
        Some(all.remove(at))
    }

    fn resume(&mut self, gateway: usize, resumed: Vec<Resumed>) {
        for resumed in resumed {
            let it = &mut self.gateways[gateway];
            let (engine, asked) = (&mut it.engine, &mut it.asked);
            let (clock, rng) = (ServerClock(&self.server), &mut self.rng);
            if let Some((caller, verdict)) = in_flight::go_on(engine, asked, &resumed, &clock, rng)
            {
                self.take(gateway, caller, verdict);
            }
        }
    }

    fn end(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let Open { gateway, permit, .. } = self.open.swap_remove(self.rng.usize(..self.open.len()));
        let (now, engine) = (ServerClock(&self.server).now(), &mut self.gateways[gateway].engine);
        in_flight::end(engine, permit, now, &mut self.rng);
    }

    /// So many requests of a caller come to the first gateway.
    fn ask(&mut self, caller: usize, requests: usize) {
        for _ in 0..requests {
            self.request(0, caller);
            self.run(5 * MILLI);
        }
    }

    /// One of so many callers or of the gateways does something.
    fn act(&mut self, callers: usize) {
        let (gateway, caller) = (self.rng.usize(..self.gateways.len()), self.rng.usize(..callers));
        match self.rng.u8(..10) {
            0..5 => self.request(gateway, caller),
            5..7 => self.end(),
            _ => self.work(gateway),
        }
        self.server.advance(self.rng.u64(..200));
    }

    /// All of them do what is due, for a while.
    fn run(&mut self, time: Micros) {
        for _ in 0..time / MILLI {
            (0..self.gateways.len()).for_each(|gateway| self.work(gateway));
            self.server.advance(MILLI);
        }
    }

    /// Whether any request is in flight, or waits.
    fn is_busy(&self) -> bool {
        !self.open.is_empty() || self.gateways.iter().any(|it| !it.asked.is_empty())
    }

    /// Waits until Redis was told all that is in flight.
    fn tells_all(&mut self) {
        let told = |it: &Gateway| it.under_way.is_empty() && !it.engine.redis().ledgers.is_any();
        while !self.gateways.iter().all(told) {
            self.run(MILLI);
        }
    }

    /// Waits until each caller has just as many places as there are.
    fn all_are_free(&mut self) {
        while !self.open.is_empty() {
            self.end();
        }
        self.run(AGAIN);
        for caller in 0..CALLERS {
            for _ in 0..3 * LIMIT {
                let gateway = self.rng.usize(..self.gateways.len());
                self.request(gateway, caller);
                self.run(5 * MILLI);
            }
            // Some of their clients have left while they waited.
            assert_eq!(self.open(caller), LIMIT, "{caller}");
        }
        while !self.open.is_empty() {
            self.end();
        }
        self.run(500 * MILLI);
        assert_eq!(self.server.callers(), [""; 0]);
    }
}
