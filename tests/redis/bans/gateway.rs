//! One gateway with one worker, whose calls reach a real Redis at once.

use std::rc::Rc;

use diana_core::key::{Key, KeyHasher, Seed};
use diana_core::policy::Ban;
use diana_core::port::Answer;
use diana_core::time::{Now, SECOND};
use diana_worker::{Root, Stream};
use kit::fake::{FakeRequest, FakeSharedData};
use kit::host::{FakeHost, Fate};

use kit::server::Server;

const RULES: &str = "
limits: [{Url: /, rules: [{name: r, actor: account, LIMIT, scope: global,
  ban: {after: 3, within: 10s, for: 1m}}]}]
redis: {cluster: redis}";

/// The secret that all gateways propose, and as shared data has it.
const SEED: Seed = Seed { k0: 1, k1: 2 };
const SECRET: [u8; 16] = (1 | 2_u128 << 64).to_le_bytes();

pub struct Gateway {
    host: FakeHost,
    worker: diana_worker::Worker,
    root: Root,
    now: Now,
    streams: u32,
    rule: u64,
    ban: Ban,
    /// Calls that were answered.
    pub trips: usize,
    /// Bans that were told of.
    bans: u64,
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
        let data = Rc::new(FakeSharedData::default());
        data.set("diana/1/test/seed", &SECRET);
        let host = FakeHost::new(data, fastrand::u64(1..).into());
        let now = Now { mono: SECOND, wall: 1_700_000_000 * SECOND };
        host.set_clocks(now);
        let (worker, mut root) = (diana_worker::Worker::default(), Root::default());
        assert!(root.configure(text.as_bytes(), b"test", &worker, &host));
        let (rule, ban) = (rule.fingerprint, rule.ban.unwrap());
        let mut gateway =
            Gateway { host, worker, root, now, streams: 0, rule, ban, trips: 0, bans: 0 };
        gateway.work(server);
        gateway
    }

    /// What Redis knows its bans by, and the caller.
    pub fn ban_fingerprint(&self) -> u64 {
        self.ban.fingerprint(self.rule)
    }

    pub fn caller(&self) -> Key {
        let mut hasher = KeyHasher::new(&SEED);
        hasher.part(0, b"ann");
        hasher.finish()
    }

    pub fn pass(&mut self, ticks: u64) {
        self.now = self.now.later(ticks);
        self.host.set_clocks(self.now);
    }

    /// Nothing comes back from Redis any more, and that is known.
    pub fn cut_off(&mut self, server: &Server) {
        self.host.no_way.set(Some("no way"));
        self.decide("somebody", server);
        assert!(self.root.instance().is_some_and(|instance| instance.away() > 0));
    }

    /// The timer fires.
    pub fn tick(&mut self, server: &Server) {
        self.pass(SECOND / 10);
        self.host.fire();
        self.root.tick(&self.worker, &self.host);
        self.work(server);
    }

    /// What the access log says of the request if it is refused.
    pub fn sends(&mut self, server: &Server) -> Option<String> {
        self.pass(1000);
        self.decide("ann", server)
    }

    /// The same of a request that stays under way.
    pub fn opens(&mut self, server: &Server) -> (Stream, Option<String>) {
        self.pass(1000);
        self.begin("ann", server)
    }

    /// Bans that began since this was last asked.
    pub fn bans(&mut self, server: &Server) -> u64 {
        self.tick(server);
        let all = self.host.counted("diana.test.rule.r.bans");
        all - std::mem::replace(&mut self.bans, all)
    }

    fn decide(&mut self, account: &str, server: &Server) -> Option<String> {
        let (_, refused) = self.begin(account, server);
        self.host.end(self.streams);
        refused
    }

    fn begin(&mut self, account: &str, server: &Server) -> (Stream, Option<String>) {
        let request = FakeRequest::get("/").header("x-account-id", account);
        self.streams += 1;
        let instance = self.root.instance().cloned().expect("it is configured");
        let mut stream = Stream::new(instance, self.streams);
        self.host.begin(self.streams, Rc::new(request.clone()));
        let goes_on = stream.request(&request, &self.worker, &self.host);
        let mut fate = self.host.decided().pop().map_or(Fate::Goes, |decided| decided.fate);
        assert_eq!(goes_on, fate == Fate::Goes);
        self.work(server);
        for _ in 0..10 {
            let Fate::Asks(_) = fate else { break };
            // What it was told is carried out when the timer fires.
            self.host.fire();
            self.root.tick(&self.worker, &self.host);
            self.work(server);
            fate = self.host.decided().pop().map_or(fate, |decided| decided.fate);
        }
        let refused = match fate {
            Fate::Goes => None,
            Fate::Refused => self.host.refused(),
            other => panic!("{other:?}"),
        };
        (stream, refused)
    }

    /// Redis answers whatever it is asked, until there is no more.
    fn work(&mut self, server: &Server) {
        loop {
            let calls = self.host.calls();
            if calls.is_empty() {
                return;
            }
            for (token, call) in calls {
                self.trips += 1;
                let body = server.exchange(&call.body);
                let fetch = || Some(body.clone());
                let answer = Answer { status: Some(200), size: body.len(), body: &fetch };
                self.root.answer(token, &answer, &self.worker, &self.host);
            }
        }
    }
}
