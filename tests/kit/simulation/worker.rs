//! One worker: an engine, and what the adapter to Envoy does around it.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use crate::fake::{FakeClock, FakeSharedData};
use diana_core::engine::{Engine, Resumed};
use diana_core::fleet::desk::{Answered, Desk};
use diana_core::fleet::link::Link;
use diana_core::port::{self, Call, Callout};
use diana_core::store::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::{Micros, Now, SECOND};
use diana_core::verdict::Verdict;

use super::crowd::Caller;
use super::plan::Plan;
use super::timer::Timer;

/// Requests that go on in one call of the host at most.
const RELEASES: usize = 32;

/// Requests of one caller that may wait in a worker; how long none does after there were as many.
const MOST: usize = 64;
const CROWDED: Micros = 11 * SECOND;

/// From then on a request that waits may be refused since others still hold what it needs.
const LONGEST: Micros = 180_000;

/// What a gateway's workers have in common.
pub struct Gateway {
    pub number: usize,
    /// Its clocks when that of the simulation shows zero.
    pub clocks: Now,
    pub data: Rc<FakeSharedData>,
}

/// A request that is decided.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub caller: u32,
    /// When it was charged, if it is admitted.
    pub admitted: Option<Micros>,
    /// Whether the gateway decided without the others, by which part of the limit.
    pub alone: Option<u64>,
    /// How long it waited for Redis, if it did.
    pub waited: Option<Micros>,
    /// Whether it waited for an answer of Redis.
    pub asked: bool,
    /// When it was decided, by whoever did.
    pub at: Micros,
    /// Whether a refusal may come although the request fits: too many of its caller's requests waited in
    /// this worker not long ago, or it has waited as long as it may.
    pub exempt: bool,
}

/// What came back on a call.
pub struct Response {
    pub token: u32,
    pub status: u16,
    pub body: Vec<u8>,
    /// When Redis decided.
    pub decided: Micros,
}

pub struct Worker {
    pub gateway: Rc<Gateway>,
    pub timer: Timer,
    /// When the world is going to call it.
    pub called: Option<Micros>,
    engine: Engine,
    link: Rc<Link>,
    rpu: u64,
    clock: FakeClock,
    calls: Calls,
    /// The requests that wait for an answer.
    waiting: HashMap<u64, u32>,
    /// Those that waited for an answer before they waited for permits.
    asked: HashSet<u64>,
    /// When so many of a caller's requests waited last that no more could.
    crowded: HashMap<u32, Micros>,
    /// Those whose answers have come, and when Redis gave them.
    ready: VecDeque<(Resumed, Micros)>,
}

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

impl Worker {
    pub fn new(plan: &Plan, gateway: Rc<Gateway>, random: u64) -> Worker {
        let policy = plan.policy();
        let on_failure = policy.redis.as_ref().unwrap().on_failure;
        let link = Rc::new(Link::new(on_failure));
        let (namespace, data, seed) =
            (Rc::<str>::from("fleet"), gateway.data.clone(), plan.secret());
        let desk =
            Desk::new(plan.way(), namespace.clone(), data.clone(), link.clone(), seed, random);
        let mut tables = Tables::default();
        let stores = Stores::new(namespace, data, &mut tables);
        let engine = Engine::new(policy, seed, stores, Some(desk)).unwrap();
        Worker {
            gateway,
            timer: Timer::default(),
            called: None,
            engine,
            link: link.clone(),
            rpu: plan.rpu,
            clock: FakeClock::default(),
            calls: Calls::default(),
            waiting: HashMap::new(),
            asked: HashSet::new(),
            crowded: HashMap::new(),
            ready: VecDeque::new(),
        }
    }

    /// Decides about a request, if it can be decided at once.
    pub fn request(&mut self, caller: u32, now: Micros) -> Option<Done> {
        let local = self.set_clock(now);
        self.timer.start(self.engine.pace(), now);
        let request = Caller::new(caller);
        let verdict = self.engine.decide(&request, &self.clock);
        if self.link.has_errands() {
            self.timer.wake(now, now);
        }
        let alone = self.alone();
        let exempt = self.is_crowded(caller, now);
        let done = |admitted| {
            Some(Done { caller, admitted, alone, waited: None, asked: false, at: now, exempt })
        };
        match verdict {
            Verdict::Admit(_) => done(Some(now)),
            Verdict::Refuse(_) => done(None),
            Verdict::Hold(held) => done(Some(now + held.until - local.mono)),
            Verdict::Ask { ticket } => {
                self.wait(ticket, caller, now);
                self.timer.wake(now, now);
                None
            }
        }
    }

    /// The host calls as it was asked to.
    pub fn tick(&mut self, now: Micros) -> Vec<Done> {
        let local = self.set_clock(now);
        let resumed = self.engine.work(local, &self.calls);
        self.ready.extend(resumed.into_iter().map(|resumed| (resumed, now)));
        let done = self.go_on(now);
        if self.timer.is_due(now) && self.engine.tidy(local) {
            self.timer.start(self.engine.pace(), now);
        }
        self.timer.rest(self.next(now), now);
        done
    }

    /// The host brings an answer.
    pub fn answer(&mut self, response: &Response, now: Micros) -> Vec<Done> {
        let local = self.set_clock(now);
        // It may bring permits that nobody comes for.
        self.timer.start(self.engine.pace(), now);
        let Response { token, status, body, decided } = response;
        let fetch = || Some(body.clone());
        let answer = port::Answer { status: Some(*status), size: body.len(), body: &fetch };
        let resumed = self.engine.answer(*token, &answer, local, &self.calls).unwrap_or_default();
        self.ready.extend(resumed.into_iter().map(|resumed| (resumed, *decided)));
        let done = self.go_on(now);
        if let Some(next) = self.next(now) {
            self.timer.wake(next, now);
        }
        done
    }

    /// Calls made since this was last asked.
    pub fn calls(&self) -> Vec<(u32, Call)> {
        self.calls.fresh.take()
    }

    /// By which part of the limit the gateway goes, if it is alone.
    pub fn alone(&self) -> Option<u64> {
        self.link.alone.get().then(|| self.part())
    }

    fn part(&self) -> u64 {
        self.rpu.div_ceil(self.link.gateways.get()).max(1)
    }

    /// When there is something to do with Redis the next time.
    fn next(&self, now: Micros) -> Option<Micros> {
        let Now { mono, .. } = self.gateway.clocks;
        let next = self.engine.next(now + mono).map(|next| next.saturating_sub(mono));
        if self.ready.is_empty() { next } else { Some(now) }
    }

    /// Lets requests go on whose answers have come.
    fn go_on(&mut self, now: Micros) -> Vec<Done> {
        let mut done = Vec::new();
        for _ in 0..RELEASES.min(self.ready.len()) {
            let Some((resumed, decided)) = self.ready.pop_front() else { break };
            let caller = self.waiting.remove(&resumed.ticket).expect("somebody waits");
            // It may bring permits, and regular work may have been done since its answer came.
            self.timer.start(self.engine.pace(), now);
            done.extend(self.resume(&resumed, caller, decided, now));
        }
        done
    }

    fn resume(
        &mut self,
        resumed: &Resumed,
        caller: u32,
        decided: Micros,
        now: Micros,
    ) -> Option<Done> {
        let local = self.set_clock(now);
        let verdict = self.engine.resume(resumed, local).unwrap_or_else(|| {
            self.engine.decide_again(resumed, &Caller::new(caller), &self.clock)
        });
        // What Redis charged it charged when it decided, not when its answer came.
        let charged = match &resumed.answered {
            Answered::Decided { outcome, .. } if outcome.rules[0].retry.is_none() => {
                outcome.wait.map(|wait| decided + wait)
            }
            _ => None,
        };
        let asked = self.asked.remove(&resumed.ticket) || resumed.answered != Answered::Anew;
        let admitted = match verdict {
            Verdict::Admit(_) => Some(charged.unwrap_or(now)),
            Verdict::Hold(held) => Some(charged.unwrap_or(now + held.until - local.mono)),
            Verdict::Refuse(_) => None,
            Verdict::Ask { ticket } => {
                self.wait(ticket, caller, now);
                if asked {
                    self.asked.insert(ticket);
                }
                return None;
            }
        };
        let alone = self.link.alone.get() || resumed.answered == Answered::Alone;
        let alone = (alone && charged.is_none()).then(|| self.part());
        let waited = local.mono - resumed.since;
        let at = match resumed.answered {
            Answered::Decided { .. } => decided,
            _ => now,
        };
        let exempt = waited >= LONGEST || self.is_crowded(caller, now);
        Some(Done { caller, admitted, alone, waited: Some(waited), asked, at, exempt })
    }

    fn wait(&mut self, ticket: u64, caller: u32, now: Micros) {
        self.waiting.insert(ticket, caller);
        let lent = |ticket: &u64| ticket >> 63 == 1;
        let same = self.waiting.iter().filter(|(ticket, other)| lent(ticket) && **other == caller);
        if lent(&ticket) && same.count() >= MOST {
            self.crowded.insert(caller, now);
        }
    }

    fn is_crowded(&self, caller: u32, now: Micros) -> bool {
        self.crowded.get(&caller).is_some_and(|last| now - last <= CROWDED)
    }

    fn set_clock(&mut self, now: Micros) -> Now {
        let local = self.gateway.clocks.later(now);
        self.clock.0.set(local);
        local
    }
}
