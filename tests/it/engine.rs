//! Scenarios of whole decisions.

mod answers;
mod asking;
mod bans;
mod building;
mod callers;
mod charging;
mod examples;
mod fleet;
mod holding;
mod hot;
mod permits;
mod plans;
mod protocols;
mod races;
mod remaining;
mod scenarios;
mod survival;
mod upkeep;

use diana_core::engine::Engine;
use diana_core::key::Seed;
use diana_core::permit::End;
use diana_core::port::{Metrics, SharedData};
use diana_core::report::Refusal;
use diana_core::time::Now;
use diana_core::verdict::Verdict;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use std::cell::RefCell;
use std::rc::Rc;

/// An engine of a worker, which shares these data with the other workers of its gateway.
pub fn engine(text: &str, data: Rc<dyn SharedData>) -> Engine {
    let policy = crate::config::policy(text);
    Engine::alone(policy, Seed { k0: 7, k1: 9 }, data).unwrap()
}

/// An engine with its clock.
pub struct Gate {
    engine: Engine,
    clock: FakeClock,
}

impl Gate {
    pub fn new(yaml: &str) -> Gate {
        let data = Rc::new(FakeSharedData::default());
        let gate = Gate { engine: engine(yaml, data), clock: FakeClock::default() };
        // A full minute on the wall clock.
        gate.clock.0.set(Now { mono: 1_000_000_000, wall: 1_700_000_040_000_000 });
        gate
    }

    pub fn wait(&self, micros: u64) {
        let Now { mono, wall } = self.clock.0.get();
        self.clock.0.set(Now { mono: mono + micros, wall: wall + micros });
    }

    fn decide(&mut self, request: &FakeRequest) -> Verdict {
        self.engine.decide(request, &self.clock)
    }

    pub fn admits(&mut self, request: &FakeRequest) -> bool {
        match self.decide(request) {
            Verdict::Hold(held) => held.place.finish(End::Served),
            Verdict::Refuse(_) => return false,
            Verdict::Admit(..) | Verdict::Ask { .. } => {}
        }
        true
    }

    fn refusal(&mut self, request: &FakeRequest) -> Refusal {
        match self.decide(request) {
            Verdict::Refuse(refusal) => refusal,
            admitted => panic!("{admitted:?}"),
        }
    }

    pub fn metrics(&mut self) -> Vec<String> {
        let lines = Lines::default();
        self.engine.flush("ns", &lines);
        let mut lines = lines.0.take();
        lines.sort();
        lines
    }
}

#[derive(Default)]
struct Lines(RefCell<Vec<String>>);

impl Metrics for Lines {
    fn record(&self, _: &str, _: u64) {}

    fn count(&self, name: &str, amount: u64) {
        self.0.borrow_mut().push(format!("{name} {amount}"));
    }

    fn gauge(&self, name: &str, change: i64) {
        self.0.borrow_mut().push(format!("{name} {change:+}"));
    }

    fn set(&self, name: &str, value: u64) {
        self.0.borrow_mut().push(format!("{name} = {value}"));
    }
}

fn field<'a>(fields: &'a [(&str, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
}

fn from(account: &str) -> FakeRequest {
    FakeRequest::get("/sample/1").header("x-account-id", account)
}
