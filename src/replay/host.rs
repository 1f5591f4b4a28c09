//! The host of a replayed worker: the clock of the replay, one timer, metrics, and shared data in
//! memory.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use diana_limiter::{Record, Verdict, Waiter};
use diana_policy::Metric;
use diana_policy::port::{Call, Callout, Environment, Metrics, Request, SharedData};
use diana_policy::time::{Micros, SECOND};
use diana_worker::host::{Clocks, Host, Level, Log};
use hashbrown::HashMap;

use crate::decision::ReplayDecision;

const MILLISECOND: Micros = SECOND / 1000;

/// The only root of a worker. Streams have other numbers.
pub(crate) const ROOT: u32 = 0;

/// Counters of the rules of all workers of a fleet.
pub(crate) type Counters = RefCell<HashMap<(Metric, String), i64>>;

/// The refusals of rules in shadow, of all workers of a fleet.
pub(crate) type Shadowed = RefCell<Vec<Record>>;

/// The host of one worker.
pub(crate) struct ReplayHost {
    now: Cell<Micros>,
    data: Rc<dyn SharedData>,
    counters: Rc<Counters>,
    /// The period of the timer in milliseconds; zero is off.
    period: Cell<u32>,
    next_tick: Cell<Option<Micros>>,
    /// The decision about the request that arrives. The worker reports no decision for most
    /// admitted requests.
    decision: Cell<Option<ReplayDecision>>,
    shadowed: Rc<Shadowed>,
}

impl ReplayHost {
    pub(crate) fn new(
        data: Rc<dyn SharedData>,
        counters: Rc<Counters>,
        shadowed: Rc<Shadowed>,
    ) -> ReplayHost {
        ReplayHost {
            now: Cell::new(0),
            data,
            counters,
            period: Cell::new(0),
            next_tick: Cell::new(None),
            decision: Cell::new(None),
            shadowed,
        }
    }

    /// Sets both clocks.
    pub(crate) fn set_time(&self, now: Micros) {
        self.now.set(now);
    }

    /// The time at which the timer of the root fires.
    pub(crate) fn next_tick(&self) -> Option<Micros> {
        self.next_tick.get()
    }

    /// The timer fires now, and again after its period.
    pub(crate) fn fire(&self) {
        self.set_period(ROOT, self.period.get());
    }

    /// Takes the decision about the request that arrived.
    pub(crate) fn take_decision(&self) -> ReplayDecision {
        self.decision.take().unwrap_or(ReplayDecision::Admitted)
    }
}

impl Callout for ReplayHost {
    fn send(&self, _: &Call) -> Result<u32, &'static str> {
        Err("a replay calls no other service")
    }

    fn caller(&self) -> u32 {
        ROOT
    }
}

impl Clocks for ReplayHost {
    fn monotonic(&self) -> Micros {
        self.now.get()
    }

    fn wall(&self) -> Micros {
        self.now.get()
    }
}

impl Log for ReplayHost {
    fn log(&self, _: Level, _: &str) {}
}

impl Metrics for ReplayHost {
    fn add(&self, metric: Metric, labels: &[&str], change: i64) {
        if let [_, rule] = *labels {
            *self.counters.borrow_mut().entry((metric, rule.into())).or_default() += change;
        }
    }

    fn set(&self, _: Metric, _: &[&str], _: u64) {}

    fn record(&self, _: Metric, _: &[&str], _: &[u64]) {}
}

impl Environment for ReplayHost {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

impl Host for ReplayHost {
    fn data(&self) -> Rc<dyn SharedData> {
        self.data.clone()
    }

    fn environment(&self) -> &dyn Environment {
        self
    }

    fn set_period(&self, _: u32, milliseconds: u32) -> bool {
        self.period.set(milliseconds);
        let period = Micros::from(milliseconds) * MILLISECOND;
        self.next_tick.set((milliseconds > 0).then(|| self.now.get().saturating_add(period)));
        true
    }

    /// Only a request that waited for Redis is read again.
    fn request(&self, _: u32, _: bool, _: &mut dyn FnMut(&dyn Request)) {}

    fn on_decision(&self, _: u32, _: Option<&Waiter>, verdict: &Verdict) {
        let records = match verdict {
            Verdict::Admit(_, report) => report.as_ref().map_or(&[][..], |report| &report.records),
            Verdict::Hold(held) => &held.report.records,
            Verdict::Refuse(refusal) => refusal.records(),
            Verdict::Pending { .. } => &[],
        };
        let shadowed = records.iter().filter(|it| it.shadow && it.outcome.refused().is_some());
        self.shadowed.borrow_mut().extend(shadowed.cloned());
        self.decision.set(Some(ReplayDecision::new(verdict, self.now.get())));
    }

    /// A replay gets no questions.
    fn counter(&self, _: Metric, _: &[&str]) -> u64 {
        0
    }

    /// The same log is decided about in the same way each time, so no bit is random.
    fn random(&self) -> u128 {
        0
    }
}
