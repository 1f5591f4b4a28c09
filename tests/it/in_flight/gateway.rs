//! Workers that count requests in flight together, with an oracle that remembers which are.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use diana_core::decision::Retry;
use diana_core::engine::Engine;
use diana_core::key::Seed;
use diana_core::permit::{End, Permit};
use diana_core::port::SharedData;
use diana_core::time::{Micros, Now, SECOND};
use diana_core::verdict::Verdict;
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::store::gateway::START;

/// How often a worker sees to what it holds.
const TICK: Micros = SECOND / 10;

/// Within this time the places of a worker that died are free.
pub(super) const AGAIN: Micros = 2 * SECOND;

/// Machines are up for years.
const UPTIME: Micros = 20 * 365 * 86_400 * SECOND;

/// A request in flight.
struct Open {
    caller: usize,
    worker: usize,
    permit: Permit,
    /// Whether it counts for certain: its worker has not stood still meanwhile.
    counts: bool,
}

/// Some workers on the same shared data.
pub(super) struct Gateway {
    document: String,
    limit: usize,
    pub(super) data: Rc<FakeSharedData>,
    engines: Vec<RefCell<Engine>>,
    clock: FakeClock,
    ticked: Cell<Micros>,
    open: RefCell<Vec<Open>>,
    /// Whose requests are about to end, so that they may still count.
    ending: RefCell<Vec<usize>>,
    /// Whose requests were in flight in workers that died, and when they did.
    orphans: RefCell<Vec<(usize, Micros)>>,
    /// Whether each caller has a count of its own.
    exact: bool,
    /// How often one was let in, and refused.
    pub(super) admitted: Cell<u64>,
    pub(super) refused: Cell<u64>,
}

pub(super) fn engine(document: &str, data: &Rc<FakeSharedData>) -> Engine {
    let policy =
        diana_config::parse(document.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
    Engine::alone(policy, Seed { k0: 1, k1: 2 }, data.clone()).unwrap()
}

impl Gateway {
    /// `keys` callers are made room for.
    pub(super) fn new(workers: usize, limit: usize, keys: usize, exact: bool) -> Gateway {
        let document = format!(
            "keys: {keys}\nlimits: [{{Url: /, rules: [{{actor: device, in_flight: {limit}}}]}}]"
        );
        let data = Rc::new(FakeSharedData::default());
        let engines = (0..workers).map(|_| RefCell::new(engine(&document, &data))).collect();
        let clock = FakeClock::default();
        clock.0.set(START.later(UPTIME));
        let ticked = Cell::new(clock.0.get().mono);
        Gateway {
            document,
            limit,
            data,
            engines,
            clock,
            ticked,
            open: RefCell::default(),
            ending: RefCell::default(),
            orphans: RefCell::default(),
            exact,
            admitted: Cell::new(0),
            refused: Cell::new(0),
        }
    }

    pub(super) fn now(&self) -> Now {
        self.clock.0.get()
    }

    /// Time goes by, and all workers see to what they hold as often as they do.
    pub(super) fn wait(&self, ticks: Micros) {
        self.pass(ticks, |_| true);
    }

    /// A worker stands still for so long, or all of them do. What it holds may count no more, though it runs on.
    pub(super) fn stall(&self, worker: Option<usize>, ticks: Micros) {
        let is_still = |it: usize| worker.is_none_or(|worker| worker == it);
        let mut open = self.open.borrow_mut();
        open.iter_mut().filter(|open| is_still(open.worker)).for_each(|open| open.counts = false);
        drop(open);
        let all = self.engines.iter().enumerate();
        let still: Vec<_> =
            all.filter(|(it, _)| is_still(*it)).map(|(_, it)| it.borrow_mut()).collect();
        self.pass(ticks, |it| !is_still(it));
        drop(still);
    }

    fn pass(&self, ticks: Micros, runs: impl Fn(usize) -> bool) {
        let end = self.now().later(ticks);
        while self.ticked.get() + TICK <= end.mono {
            self.ticked.set(self.ticked.get() + TICK);
            let passed = self.ticked.get() - self.now().mono;
            self.clock.0.set(self.now().later(passed));
            for (worker, engine) in self.engines.iter().enumerate().filter(|(it, _)| runs(*it)) {
                let counts = |open: &Open| open.worker == worker && open.counts;
                let holds = self.open.borrow().iter().any(counts);
                let goes_on = engine.borrow_mut().tidy(self.now());
                assert!(goes_on || !holds, "who is not called again is taken for dead");
            }
        }
        self.clock.0.set(end);
    }

    /// Requests of a caller in flight that count, as the oracle knows.
    pub(super) fn open(&self, caller: usize) -> usize {
        self.open.borrow().iter().filter(|open| open.caller == caller && open.counts).count()
    }

    /// Requests of a caller that may still count, though they are not in flight.
    fn lingering(&self, caller: usize) -> usize {
        let counts = |(of, died): &&(usize, Micros)| {
            *of == caller && self.now().mono.saturating_sub(*died) < AGAIN
        };
        let ending = self.ending.borrow().iter().filter(|of| **of == caller).count();
        let open = self.open.borrow();
        let stalled = open.iter().filter(|open| open.caller == caller && !open.counts).count();
        ending + stalled + self.orphans.borrow().iter().filter(counts).count()
    }

    /// A request of a caller comes to a worker. Whether it was let in; if the worker is not in the middle of
    /// something.
    pub(super) fn request(&self, worker: usize, caller: usize) -> Option<bool> {
        let mut engine = self.engines.get(worker)?.try_borrow_mut().ok()?;
        let request = FakeRequest::get("/").header("x-device-id", format!("device-{caller}"));
        // What is in flight may change while it is decided about.
        let before = self.open(caller) + self.lingering(caller);
        match engine.decide(&request, &self.clock) {
            Verdict::Admit(permit, _) => {
                self.open.borrow_mut().push(Open { caller, worker, permit, counts: true });
                assert!(self.open(caller) <= self.limit, "{} in flight", self.open(caller));
                self.admitted.set(self.admitted.get() + 1);
                Some(true)
            }
            Verdict::Refuse(refusal) => {
                let most = before.max(self.open(caller) + self.lingering(caller));
                assert!(!self.exact || most >= self.limit, "refused at {most} of {}", self.limit);
                assert_eq!(refusal.retry, Retry::Soon);
                self.refused.set(self.refused.get() + 1);
                Some(false)
            }
            other => panic!("{other:?}"),
        }
    }

    /// A request ends in some way, if there is one whose worker is not in the middle of something.
    pub(super) fn end(&self, rng: &mut Rng) {
        let count = self.open.borrow().len();
        if count == 0 {
            return;
        }
        let at = rng.usize(..count);
        let worker = self.open.borrow()[at].worker;
        let Ok(mut engine) = self.engines[worker].try_borrow_mut() else { return };
        let Open { caller, mut permit, counts, .. } = self.open.borrow_mut().swap_remove(at);
        self.ending.borrow_mut().push(caller);
        // What a worker that stood still took under another number is not given back, it ends with that.
        let last = (caller, self.now().mono);
        self.orphans.borrow_mut().extend((!counts).then_some(last));
        let ending = FakeEnding::answered(rng.choice([200, 401, 503]).unwrap());
        match rng.u8(..4) {
            0 => {
                permit.finish(End::Left);
                engine.take_back(self.now());
            }
            kind => {
                if kind == 1 {
                    engine.hear_response(&mut permit, &ending);
                }
                engine.settle(permit, &ending, self.now());
            }
        }
        self.ending.borrow_mut().pop();
    }

    /// All requests end.
    pub(super) fn end_all(&self, rng: &mut Rng) {
        while !self.open.borrow().is_empty() {
            self.end(rng);
        }
    }

    /// Nobody is called for nothing, and nothing is left in shared data but whose places those were.
    pub(super) fn is_at_rest(&self) {
        for engine in &self.engines {
            assert!(!engine.borrow_mut().tidy(self.now()));
        }
        for key in self.data.keys() {
            let name = key.strip_prefix("diana/2/alone/").expect("of the namespace");
            let is_slot = name.rsplit('/').next().unwrap().contains('.');
            assert!(!is_slot || self.data.get(&key).unwrap().0.len() == 8, "{key}");
        }
    }

    /// A worker dies, and another one takes its place.
    pub(super) fn kill(&self, worker: usize) {
        let Ok(mut engine) = self.engines[worker].try_borrow_mut() else { return };
        let open = std::mem::take(&mut *self.open.borrow_mut());
        let (lost, rest) = open.into_iter().partition(|open| open.worker == worker);
        *self.open.borrow_mut() = rest;
        let lost: Vec<Open> = lost;
        let died = self.now().mono;
        self.orphans.borrow_mut().extend(lost.iter().map(|open| (open.caller, died)));
        *engine = super::gateway::engine(&self.document, &self.data);
    }
}
