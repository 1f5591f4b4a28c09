//! One worker of a gateway: the real code in a simulated host.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use diana_policy::key::{Key, Seed};
use diana_policy::port::{self, Call};
use diana_policy::time::{Micros, Now};
use diana_redis::part::Parts;
use diana_redis::pending::{Pending, Settled};
use diana_redis::protocol::{Reply, RuleReply};
use diana_redis::target::Target;
use diana_worker::{Instance, Root, Stream};

use super::crowd::Caller;
use super::plan::Plan;
use kit::fake::FakeSharedData;
use kit::host::{Decided, FakeHost, Fate};

/// The shared state of a gateway's workers.
pub struct Gateway {
    pub number: usize,
    /// Its clocks at time zero of the simulation.
    pub clocks: Now,
    pub data: Rc<FakeSharedData>,
}

/// A decided request.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub caller: u32,
    /// The instant of its charge, if it is admitted.
    pub admitted: Option<Micros>,
    /// The gateway's share of the limit, if it decided in degraded mode.
    pub alone: Option<u64>,
    /// Its wait for Redis, if there was one.
    pub waited: Option<Micros>,
    /// The instant of the decision, in Redis or in the gateway.
    pub at: Micros,
}

/// The response to a call.
pub struct Response {
    pub token: u32,
    pub status: u16,
    pub body: Vec<u8>,
    /// The shards of the call, with the instants of their decisions.
    pub decided: Vec<(usize, Micros)>,
}

pub struct Worker {
    pub gateway: Rc<Gateway>,
    /// The time of its next scheduled event.
    pub called: Option<Micros>,
    host: FakeHost,
    worker: diana_worker::Worker,
    root: Root,
    instance: Rc<Instance>,
    rpu: u64,
    parts: Parts,
    /// The secret for hashing callers. `None` for a rule for `all`.
    seed: Option<Seed>,
    streams: u32,
    /// Waiting requests with their callers and tickets.
    waiting: HashMap<u32, (Stream, u32, u64)>,
    /// The instants of Redis's decisions about replies that have not been processed.
    answered: VecDeque<Rc<[(usize, Micros)]>>,
}

impl Worker {
    pub fn new(plan: &Plan, gateway: Rc<Gateway>, random: u64) -> Worker {
        let host = FakeHost::new(gateway.data.clone(), random.into());
        host.set_clocks(gateway.clocks);
        gateway.data.set("diana/1/fleet/seed", &plan.secret());
        let (worker, mut root) = (diana_worker::Worker::default(), Root::default());
        assert!(root.configure(plan.configuration().as_bytes(), b"fleet", &worker, &host));
        Worker {
            gateway,
            called: None,
            instance: root.instance().cloned().expect("it is configured"),
            host,
            worker,
            root,
            rpu: plan.rpu,
            parts: plan.parts(),
            seed: (plan.callers > 1).then(|| plan.seed_of_callers()),
            streams: 0,
            waiting: HashMap::new(),
            answered: VecDeque::new(),
        }
    }

    /// Decides about a request. `None` if it has to wait.
    pub fn request(&mut self, caller: u32, now: Micros) -> Option<Done> {
        let local = self.set_clock(now);
        self.streams += 1;
        let (number, request) = (self.streams, Rc::new(Caller::new(caller)));
        let mut stream = Stream::new(self.instance.clone(), number);
        let goes_on = stream.request(&*request, &self.worker, &self.host);
        let fate = self.host.decided().pop().map_or(Fate::Goes, |decided| decided.fate);
        assert_eq!(goes_on, fate == Fate::Goes);
        let alone = self.alone(caller);
        let done = |admitted| Some(Done { caller, admitted, alone, waited: None, at: now });
        match fate {
            Fate::Goes => done(Some(now)),
            Fate::Refused => done(None),
            Fate::Held(until) => done(Some(now + until - local.mono)),
            Fate::Asks(ticket) => {
                self.host.begin(number, request);
                self.waiting.insert(number, (stream, caller, ticket));
                None
            }
        }
    }

    /// Its timer fires.
    pub fn tick(&mut self, now: Micros) -> Vec<Done> {
        self.set_clock(now);
        self.host.fire();
        self.root.tick(&self.worker, &self.host);
        self.decided(&[], now)
    }

    /// A response arrives.
    pub fn answer(&mut self, response: &Response, now: Micros) -> Vec<Done> {
        self.set_clock(now);
        let Response { token, status, body, decided } = response;
        let fetch = || Some(body.clone());
        let answer = port::Answer { status: Some(*status), size: body.len(), body: &fetch };
        self.root.answer(*token, &answer, &self.worker, &self.host);
        self.decided(decided, now)
    }

    /// Calls since the previous read.
    pub fn calls(&self) -> Vec<(u32, Call)> {
        self.host.calls()
    }

    /// The next expiry of its timer.
    pub fn fires(&self) -> Option<Micros> {
        self.host.fires().map(|at| at - self.gateway.clocks.mono)
    }

    /// The gateway's share of the limit, if it is in degraded mode for this caller.
    pub fn alone(&self, caller: u32) -> Option<u64> {
        self.instance.is_alone(self.key(caller)).then(|| self.part())
    }

    /// The caller's key under the rule.
    fn key(&self, caller: u32) -> Key {
        self.seed.map_or(Key::ALL, |seed| Caller::new(caller).key(&seed))
    }

    fn part(&self) -> u64 {
        self.rpu.div_ceil(self.instance.gateways()).max(1)
    }

    /// The outcomes of waiting requests, after a response of Redis or another call of the host.
    fn decided(&mut self, answer: &[(usize, Micros)], now: Micros) -> Vec<Done> {
        let decided = self.host.decided();
        let answered = self.instance.answered() + decided.len();
        self.answered.resize(answered, answer.into());
        decided.into_iter().filter_map(|decided| self.resumed(decided, now)).collect()
    }

    fn resumed(&mut self, decided: Decided, now: Micros) -> Option<Done> {
        let Decided { stream: number, resumed, fate } = decided;
        let resumed = resumed.expect("it has waited");
        let (stream, caller, ticket) = self.waiting.remove(&number).expect("somebody waits");
        assert_eq!(resumed.ticket, ticket);
        let settled = |answer: &Pending| answer.settled(Target::Rule(0));
        let settled = resumed.answer.as_ref().and_then(settled);
        let (charged, at) = self.charged(caller, settled, now);
        let mono = self.gateway.clocks.mono;
        let admitted = match fate {
            Fate::Goes => Some(charged.unwrap_or(now)),
            Fate::Held(until) => Some(charged.unwrap_or(until - mono)),
            Fate::Refused => None,
            Fate::Asks(ticket) => {
                self.waiting.insert(number, (stream, caller, ticket));
                return None;
            }
        };
        self.host.end(number);
        let alone = self.alone(caller).is_some() || settled == Some(Settled::Alone);
        let alone = (alone && charged.is_none()).then(|| self.part());
        let waited = mono + now - resumed.since;
        Some(Done { caller, admitted, alone, waited: Some(waited), at })
    }

    /// The instant of the charge, if Redis charged it, which is that of its decision and not of its
    /// reply. And the instant of the decision.
    fn charged(
        &mut self,
        caller: u32,
        settled: Option<Settled>,
        now: Micros,
    ) -> (Option<Micros>, Micros) {
        let answer = self.answered.pop_front().expect("its answer has come");
        let part = usize::from(self.parts.of(self.key(caller)).number());
        let decided = answer.iter().find(|(of, _)| *of == part).map(|(_, at)| *at);
        let is_decided = matches!(settled, Some(Settled::Decided { .. }));
        assert!(!is_decided || answer.is_empty() || decided.is_some(), "another part decided");
        match (settled, decided) {
            (Some(Settled::Decided { reply, wait, .. }), Some(decided)) => {
                let fits = matches!(reply, Reply::Rule(RuleReply { retry: None, .. }));
                (wait.filter(|_| fits).map(|wait| decided + wait), decided)
            }
            _ => (None, now),
        }
    }

    fn set_clock(&mut self, now: Micros) -> Now {
        let local = self.gateway.clocks.later(now);
        self.host.set_clocks(local);
        local
    }
}
