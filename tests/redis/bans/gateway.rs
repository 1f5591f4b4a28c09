//! One gateway with one worker, whose calls reach a real Redis at once.

use diana_core::engine::{Engine, Resumed};
use diana_core::key::{Key, KeyHasher, Seed};
use diana_core::policy::Ban;
use diana_core::port::{Answer, Clock, Metrics};
use diana_core::redis::client::{Client, Endpoint};
use diana_core::redis::part::Parts;
use diana_core::redis::protocol::Login;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::{Now, SECOND};
use diana_core::verdict::Verdict;
use kit::fake::{FakeCallout, FakeClock, FakeRequest, FakeSharedData};
use std::cell::Cell;
use std::rc::Rc;

use kit::server::Server;

const RULES: &str = "
limits: [{Url: /, rules: [{name: r, actor: account, LIMIT, scope: global,
  ban: {after: 3, within: 10s, for: 1m}}]}]
redis: {cluster: redis}";

const SEED: Seed = Seed { k0: 1, k1: 2 };

pub struct Gateway {
    engine: Engine,
    rule: u64,
    ban: Ban,
    clock: FakeClock,
    callout: FakeCallout,
    /// Calls that were answered.
    pub trips: Cell<usize>,
    /// Whether nothing comes back.
    dead: bool,
}

impl Gateway {
    /// One request a day.
    pub fn new(server: &Server) -> Gateway {
        Gateway::with(server, "unit: day, rpu: 1, algo: W")
    }

    pub fn with(server: &Server, limit: &str) -> Gateway {
        let text = RULES.replace("LIMIT", limit);
        let policy =
            diana_config::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
        let rule = &policy.limits[0].rules[0];
        let (rule, ban) = (rule.identity, rule.ban.unwrap());
        let data = Rc::new(FakeSharedData::default());
        let way = Endpoint {
            cluster: "redis".into(),
            timeout: 20_000,
            login: Login::default(),
            parts: Parts::ONE,
        };
        let client = Client::new(way, "test", data.clone(), SEED, fastrand::u64(1..));
        let mut tables = Tables::default();
        let stores = Stores::new("test".into(), data, &mut tables);
        let mut gateway = Gateway {
            engine: Engine::new(policy, SEED, stores, Some(client)).unwrap(),
            rule,
            ban,
            clock: FakeClock::default(),
            callout: FakeCallout::default(),
            trips: Cell::default(),
            dead: false,
        };
        gateway.clock.0.set(Now { mono: SECOND, wall: 1_700_000_000 * SECOND });
        gateway.work(server);
        gateway
    }

    /// What Redis knows its bans by, and the caller.
    pub fn ban_identity(&self) -> u64 {
        self.ban.identity(self.rule)
    }

    pub fn caller(&self) -> Key {
        let mut hasher = KeyHasher::new(&SEED);
        hasher.part(0, b"ann");
        hasher.finish()
    }

    pub fn pass(&mut self, ticks: u64) {
        self.clock.0.set(self.clock.0.get().later(ticks));
    }

    /// Nothing comes back from Redis any more, and that is known.
    pub fn cut_off(&mut self, server: &Server) {
        self.dead = true;
        self.callout.refusal.set(Some("no way"));
        let request = FakeRequest::get("/").header("x-account-id", "somebody");
        self.decide(&request, server);
        assert!(!self.engine.is_together());
    }

    /// Does what the timer does.
    pub fn tick(&mut self, server: &Server) {
        self.pass(SECOND / 10);
        self.engine.tidy(self.clock.now());
        self.work(server);
    }

    /// What the access log says of the request if it is refused.
    pub fn sends(&mut self, server: &Server) -> Option<String> {
        self.pass(1000);
        let request = FakeRequest::get("/").header("x-account-id", "ann");
        match self.decide(&request, server) {
            Verdict::Refuse(refusal) => Some(refusal.by.state()),
            Verdict::Admit(..) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Bans that began since this was last asked.
    pub fn bans(&mut self) -> u64 {
        let bans = Bans(Cell::new(0));
        self.engine.flush("ns", &bans);
        bans.0.get()
    }

    fn decide(&mut self, request: &FakeRequest, server: &Server) -> Verdict {
        let mut verdict = self.engine.decide(request, &self.clock);
        if !matches!(verdict, Verdict::Ask { .. }) {
            self.work(server);
        }
        for _ in 0..10 {
            let Verdict::Ask { ticket } = verdict else { return verdict };
            let resumed = self.work(server);
            let mine = resumed.into_iter().find(|resumed| resumed.ticket == ticket).unwrap();
            let now = self.clock.now();
            verdict = match self.engine.resume(&mine, now) {
                Some(verdict) => verdict,
                None => self.engine.decide_again(&mine, request, &self.clock),
            };
        }
        verdict
    }

    /// Sends what there is to send, until there is no more.
    fn work(&mut self, server: &Server) -> Vec<Resumed> {
        let now = self.clock.now();
        let mut resumed = self.engine.work(now, &self.callout);
        while !self.dead && self.trips.get() < self.callout.sent.borrow().len() {
            let token = self.trips.get();
            self.trips.set(token + 1);
            let call = self.callout.sent.borrow()[token].clone();
            let body = server.exchange(&call.body);
            let fetch = || Some(body.clone());
            let answer = Answer { status: Some(200), size: body.len(), body: &fetch };
            let told = self.engine.answer(token as u32, &answer, now, &self.callout);
            resumed.extend(told.unwrap());
        }
        resumed
    }
}

struct Bans(Cell<u64>);

impl Metrics for Bans {
    fn count(&self, name: &str, amount: u64) {
        if name.ends_with(".bans") {
            self.0.set(self.0.get() + amount);
        }
    }

    fn gauge(&self, _: &str, _: i64) {}

    fn record(&self, _: &str, _: u64) {}
}
