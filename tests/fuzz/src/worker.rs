//! A worker with rules for the fleet: an engine, and what the adapter to Envoy does around it.

use diana_core::engine::{Engine, Resumed};
use diana_core::fleet::desk::{Desk, Way};
use diana_core::fleet::link::Link;
use diana_core::fleet::script::Login;
use diana_core::key::Seed;
use diana_core::policy::redis::OnFailure;
use diana_core::port::{Answer, Call, Callout};
use diana_core::store::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::{Micros, Now, SECOND};
use diana_core::verdict::Verdict;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

pub const MILLISECOND: Micros = SECOND / 1000;
const TIMEOUT: Micros = 20 * MILLISECOND;

/// Permits a day that a caller has by the fleet's rule, and by the gateway's own.
pub const FLEET: usize = 30;
pub const OWN: usize = 40;

/// No request waits longer: for a loan to come back, and then for an answer.
const PATIENCE: Micros = 250 * MILLISECOND + TIMEOUT;

const RULES: &str = "
redis: {cluster: redis, timeout: 20ms}
limits:
  - Url: /
    rules:
      - {actor: account, unit: day, rpu: 30, algo: W, scope: globalBANS}
      - {actor: account, unit: day, rpu: 40, algo: W, scope: gateway}
";

/// Calls that have not left yet.
#[derive(Default)]
struct Calls {
    made: Cell<u32>,
    fresh: RefCell<Vec<(u32, Call)>>,
}

impl Callout for Calls {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        let token = self.made.get();
        self.made.set(token + 1);
        self.fresh.borrow_mut().push((token, call.clone()));
        Ok(token)
    }
}

/// What a call gets back.
pub struct Response {
    pub status: Option<u16>,
    pub body: Vec<u8>,
}

pub struct Worker {
    engine: Engine,
    pub link: Rc<Link>,
    clock: FakeClock,
    calls: Calls,
    /// Requests that wait: their callers, and since when.
    waiting: HashMap<u64, (u8, Micros)>,
    /// Requests of each caller that were let through.
    pub admitted: HashMap<u8, usize>,
    pub refused: usize,
}

fn request(caller: u8) -> FakeRequest {
    FakeRequest::get("/").header("x-account-id", [b'a' + caller % 8])
}

impl Worker {
    pub fn new(data: &Rc<FakeSharedData>, bans: &str) -> Worker {
        let rules = RULES.replace("BANS", bans);
        let policy =
            diana_config::parse(rules.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
        let (link, seed) = (Rc::new(Link::new(OnFailure::Gateway)), Seed { k0: 1, k1: 2 });
        let way = Way { cluster: "redis".into(), timeout: TIMEOUT, login: Login::default() };
        let desk = Desk::new(way, "test".into(), data.clone(), link.clone(), seed, 7);
        let mut tables = Tables::default();
        let stores = Stores::new("test".into(), data.clone(), &mut tables);
        Worker {
            engine: Engine::new(policy, seed, stores, Some(desk)).expect("it can be built"),
            link,
            clock: FakeClock::default(),
            calls: Calls::default(),
            waiting: HashMap::new(),
            admitted: HashMap::new(),
            refused: 0,
        }
    }

    pub fn request(&mut self, caller: u8, now: Micros) {
        self.set_clock(now);
        let request = request(caller);
        let verdict = self.engine.decide(&request, &self.clock);
        self.done(caller, verdict, now);
    }

    /// Does what is due, and lets `redis` answer the calls; nothing is what a lost one gets.
    pub fn step(&mut self, now: Micros, redis: &mut dyn FnMut(&Call) -> Option<Response>) {
        let local = self.set_clock(now);
        let mut ready = self.engine.work(local, &self.calls);
        for (token, call) in self.calls.fresh.take() {
            let Some(Response { status, body }) = redis(&call) else { continue };
            let fetch = || Some(body.clone());
            let answer = Answer { status, size: body.len(), body: &fetch };
            ready
                .extend(self.engine.answer(token, &answer, local, &self.calls).unwrap_or_default());
        }
        ready.into_iter().for_each(|resumed| self.resume(&resumed, now));
        if now % (100 * MILLISECOND) == 0 {
            self.engine.tidy(local);
        }
        for (ticket, (_, since)) in &self.waiting {
            assert!(now - since <= PATIENCE, "ticket {ticket} has waited since {since} at {now}");
        }
        // Its other rule holds whatever Redis says.
        assert!(self.admitted.values().all(|count| *count <= OWN), "{:?}", self.admitted);
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn resume(&mut self, resumed: &Resumed, now: Micros) {
        let local = self.set_clock(now);
        let (caller, _) = self.waiting.remove(&resumed.ticket).expect("it waits, and is told once");
        let verdict = self.engine.resume(resumed, local);
        let again = || self.engine.decide_again(resumed, &request(caller), &self.clock);
        let verdict = verdict.unwrap_or_else(again);
        self.done(caller, verdict, resumed.since);
    }

    fn done(&mut self, caller: u8, verdict: Verdict, since: Micros) {
        match verdict {
            Verdict::Admit(_) | Verdict::Hold(_) => {
                *self.admitted.entry(caller % 8).or_default() += 1;
            }
            Verdict::Refuse(_) => self.refused += 1,
            Verdict::Ask { ticket } => {
                let before = self.waiting.insert(ticket, (caller, since));
                assert!(before.is_none(), "a ticket of its own");
            }
        }
    }

    fn set_clock(&mut self, now: Micros) -> Now {
        let local = Now { mono: now, wall: 1_700_000_000 * SECOND + now };
        self.clock.0.set(local);
        local
    }
}
