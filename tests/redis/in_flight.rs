//! Requests in flight in a fleet on a real Redis, with an oracle that remembers which are. Calls and answers get lost.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use diana_core::engine::{Engine, Resumed};
use diana_core::key::Seed;
use diana_core::permit::{End, Permit};
use diana_core::port::{Answer, Clock};
use diana_core::redis::client::{Client, Endpoint};
use diana_core::redis::part::Parts;
use diana_core::redis::protocol::Login;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::{Micros, Now, SECOND};
use diana_core::verdict::Verdict;
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::fake::{FakeCallout, FakeRequest, FakeSharedData};
use kit::seed;
use kit::server::Server;

const LIMIT: usize = 4;
const CALLERS: usize = 3;

const AGAIN: Duration = Duration::from_secs(2);

/// Redis has a clock of its own, so that the gateways go by the true one.
struct TrueClock(Instant);

impl Clock for TrueClock {
    fn now(&self) -> Now {
        let ticks = self.0.elapsed().as_micros() as Micros + 1_000_000 * SECOND;
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
    asked: Vec<(u64, usize)>,
}

/// A call on its way to Redis, or its answer on the way back.
struct UnderWay {
    since: Instant,
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
    clock: TrueClock,
    gateways: Vec<Gateway>,
    open: Vec<Open>,
    rng: Rng,
    /// How many calls and answers of a thousand get lost.
    lossy: Rc<Cell<u32>>,
    /// How long a call takes to get there, and an answer to come back.
    way: Duration,
    admitted: usize,
    refused: usize,
}

fn request(caller: usize) -> FakeRequest {
    FakeRequest::get("/").header("x-device-id", caller.to_string())
}

fn gateway(random: u64, timeout: Micros) -> Gateway {
    let document = format!(
        "limits: [{{Url: /, rules: [{{actor: device, in_flight: {LIMIT}, scope: global}}]}}]\n\
         redis: {{cluster: c, on_failure: deny}}"
    );
    let policy = diana_config::parse(document.as_bytes()).unwrap_or_else(|all| panic!("{all}"));
    let way = Endpoint { cluster: "c".into(), timeout, login: Login::default(), parts: Parts::ONE };
    let data = Rc::new(FakeSharedData::default());
    let seed = Seed { k0: 1, k1: 2 };
    let client = Client::new(way, "test", data.clone(), seed, random);
    let mut tables = Tables::default();
    let stores = Stores::new("test".into(), data, &mut tables);
    let engine = Engine::new(policy, seed, stores, Some(client)).unwrap();
    let callout = FakeCallout::default();
    Gateway { engine, callout, done: 0, under_way: Vec::new(), asked: Vec::new() }
}

impl Fleet {
    fn new(gateways: u64) -> Fleet {
        Fleet::far(gateways, Duration::ZERO)
    }

    /// Redis is so far away, there or back.
    fn far(gateways: u64, way: Duration) -> Fleet {
        let timeout = SECOND / 50 + 8 * way.as_micros() as Micros;
        let mut rng = Rng::with_seed(seed::fresh());
        Fleet {
            server: Server::start(),
            clock: TrueClock(Instant::now()),
            gateways: (0..gateways).map(|_| gateway(rng.u64(..), timeout)).collect(),
            open: Vec::new(),
            rng,
            lossy: Rc::default(),
            way,
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
        let verdict = it.engine.decide(&request(caller), &self.clock);
        self.take(gateway, caller, verdict);
    }

    fn take(&mut self, gateway: usize, caller: usize, verdict: Verdict) {
        match verdict {
            Verdict::Ask { ticket } => self.gateways[gateway].asked.push((ticket, caller)),
            Verdict::Admit(permit, _) => {
                self.open.push(Open { caller, gateway, permit, forgotten: false });
                self.admitted += 1;
                let forgotten = |it: &&Open| it.caller == caller && it.forgotten;
                let most = LIMIT + self.open.iter().filter(forgotten).count();
                assert!(self.open(caller) <= most, "{} of {most} in flight", self.open(caller));
            }
            Verdict::Refuse(_) => self.refused += 1,
            other => panic!("{other:?}"),
        }
    }

    /// A gateway does what is due, and hears what Redis answers; unless that gets lost.
    fn work(&mut self, gateway: usize) {
        let now = self.clock.now();
        let it = &mut self.gateways[gateway];
        it.engine.tidy(now);
        let resumed = it.engine.work(now, &it.callout);
        self.resume(gateway, resumed);
        let it = &mut self.gateways[gateway];
        for call in it.callout.sent.borrow().iter().skip(it.done) {
            let (since, token, bytes) = (Instant::now(), it.done as u32, call.body.clone());
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
                let (since, bytes) = (Instant::now(), self.server.exchange(&bytes));
                it.under_way.push(UnderWay { since, token, bytes, is_answer: true });
                continue;
            }
            let size = bytes.len();
            let answer = Answer { status: Some(200), size, body: &|| Some(bytes.clone()) };
            let resumed = it.engine.answer(token, &answer, self.clock.now()).unwrap_or_default();
            self.resume(gateway, resumed);
        }
    }

    /// What has been on its way for long enough.
    fn arrived(&mut self, gateway: usize) -> Option<UnderWay> {
        let all = &mut self.gateways[gateway].under_way;
        let at = all.iter().position(|it| it.since.elapsed() >= self.way)?;
        Some(all.remove(at))
    }

    fn resume(&mut self, gateway: usize, resumed: Vec<Resumed>) {
        for resumed in resumed {
            let it = &mut self.gateways[gateway];
            let place = it.asked.iter().position(|(ticket, _)| *ticket == resumed.ticket).unwrap();
            let (_, caller) = it.asked.swap_remove(place);
            let now = self.clock.now();
            if self.rng.u8(..10) == 0 {
                // Its client has left.
                it.engine.abandon(&resumed, now);
                continue;
            }
            let verdict = match it.engine.resume(&resumed, now) {
                Some(verdict) => verdict,
                None => it.engine.decide_again(&resumed, &request(caller), &self.clock),
            };
            self.take(gateway, caller, verdict);
        }
    }

    fn end(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let Open { gateway, permit, .. } = self.open.swap_remove(self.rng.usize(..self.open.len()));
        let (now, engine) = (self.clock.now(), &mut self.gateways[gateway].engine);
        match self.rng.bool() {
            true => engine.settle(permit, &FakeEnding::answered(200), now),
            false => {
                permit.finish(End::Left);
                engine.take_back(now);
            }
        }
    }

    /// All of them do what is due, for a while.
    fn run(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            (0..self.gateways.len()).for_each(|gateway| self.work(gateway));
            std::thread::sleep(Duration::from_millis(1));
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
                self.run(Duration::from_millis(5));
            }
            // Some of their clients have left while they waited.
            assert_eq!(self.open(caller), LIMIT, "{caller}");
        }
        while !self.open.is_empty() {
            self.end();
        }
        self.run(Duration::from_millis(500));
        assert_eq!(self.server.callers(), [""; 0]);
    }
}

#[test]
fn never_one_too_many_whatever_gets_lost_and_none_is_left_behind() {
    let mut fleet = Fleet::new(3);
    fleet.run(Duration::from_millis(50));
    for round in 0..3 {
        fleet.lossy.set([0, 20, 200][round]);
        for _ in 0..1_500 {
            let (gateway, caller) = (fleet.rng.usize(..3), fleet.rng.usize(..CALLERS));
            match fleet.rng.u8(..10) {
                0..5 => fleet.request(gateway, caller),
                5..7 => fleet.end(),
                _ => fleet.work(gateway),
            }
        }
        fleet.lossy.set(0);
        fleet.run(Duration::from_secs(1));
        fleet.all_are_free();
    }
    assert!(fleet.admitted > 150 && fleet.refused > 150, "{} {}", fleet.admitted, fleet.refused);
}

#[test]
fn what_a_gateway_held_that_died_is_free_again() {
    let mut fleet = Fleet::new(2);
    fleet.run(Duration::from_millis(50));
    while fleet.open(0) < LIMIT {
        let gateway = fleet.rng.usize(..2);
        fleet.request(gateway, 0);
        fleet.run(Duration::from_millis(5));
    }
    // Long requests keep theirs.
    fleet.run(AGAIN + AGAIN);
    for _ in 0..20 {
        fleet.request(0, 0);
        fleet.run(Duration::from_millis(5));
    }
    assert_eq!(fleet.open(0), LIMIT);
    let died = fleet.open.iter().filter(|open| open.gateway == 1).count();
    fleet.open.retain(|open| open.gateway == 0);
    fleet.gateways.truncate(1);
    fleet.run(AGAIN);
    for _ in 0..3 * LIMIT {
        fleet.request(0, 0);
        fleet.run(Duration::from_millis(5));
    }
    assert_eq!(fleet.open(0), LIMIT, "{died} were of the one that died");
}

/// How soon a worker says that it holds what it was given depends on how far away Redis is.
#[test]
fn never_one_too_many_however_far_away_redis_is() {
    let mut fleet = Fleet::far(2, Duration::from_millis(110));
    fleet.run(Duration::from_millis(500));
    for _ in 0..3_000 {
        let gateway = fleet.rng.usize(..2);
        match fleet.rng.u8(..100) {
            0..30 => fleet.request(gateway, 0),
            30 => fleet.end(),
            _ => fleet.work(gateway),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(fleet.admitted > 10 && fleet.refused > 50, "{} {}", fleet.admitted, fleet.refused);
}

/// What was in flight then comes on top, and only until it has ended.
#[test]
fn an_emptied_redis_knows_soon_what_is_in_flight() {
    let mut fleet = Fleet::new(2);
    fleet.run(Duration::from_millis(50));
    for round in 0..5 {
        if round > 0 {
            fleet.open.iter_mut().for_each(|open| open.forgotten = true);
            assert_eq!(fleet.server.command(&["FLUSHALL"]), "OK");
        }
        for _ in 0..600 {
            let gateway = fleet.rng.usize(..2);
            match fleet.rng.u8(..10) {
                0..5 => fleet.request(gateway, 0),
                5 => fleet.end(),
                _ => fleet.work(gateway),
            }
        }
        fleet.run(Duration::from_millis(50));
    }
    fleet.all_are_free();
    assert!(fleet.admitted > 100 && fleet.refused > 100, "{} {}", fleet.admitted, fleet.refused);
}
