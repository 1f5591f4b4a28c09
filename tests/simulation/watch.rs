//! Watches a simulation, beside which it has one counter without leases.

use std::collections::HashMap;
use std::rc::Rc;

use diana::algorithm::Algorithm;
use diana::time::{Micros, Now};

use super::EPOCH;
use super::fullest::{Admission, extremes};
use super::network::{Network, Redis};
use super::plan::Plan;
use super::seen::Seen;
use super::worker::Done;

pub struct Watch {
    requests: u64,
    decided: u64,
    /// Requests that came while their gateway went by itself, and when the last of them came.
    alone: u64,
    last_alone: Option<Micros>,
    waits: Vec<Micros>,
    admissions: Vec<Admission>,
    counter: Rc<dyn Algorithm>,
    /// The counter's state of each caller, and how many it admits.
    states: HashMap<u32, Box<[u64]>>,
    new: Box<[u64]>,
    counted: u64,
}

impl Watch {
    pub fn new(plan: &Plan) -> Watch {
        let counter = plan.algorithm();
        Watch {
            requests: 0,
            decided: 0,
            alone: 0,
            last_alone: None,
            waits: Vec::new(),
            admissions: Vec::new(),
            states: HashMap::new(),
            new: vec![0; counter.words()].into(),
            counter,
            counted: 0,
        }
    }

    /// A request comes to a gateway that goes by itself or does not.
    pub fn request(&mut self, caller: u32, alone: bool, now: Micros) {
        self.requests += 1;
        if alone {
            self.alone += 1;
            self.last_alone = Some(now);
        }
        let nobody = || vec![0; self.new.len()].into();
        let state = self.states.entry(caller).or_insert_with(nobody);
        let at = Now { mono: EPOCH + now, wall: EPOCH + now };
        if self.counter.step(state, at, 1, &mut self.new).is_admitted() {
            std::mem::swap(state, &mut self.new);
            self.counted += 1;
        }
    }

    /// A gateway has decided.
    pub fn decided(&mut self, gateway: usize, done: Done) {
        let Done { caller, admitted, alone, waited } = done;
        self.decided += 1;
        self.waits.extend(waited);
        let part = alone.unwrap_or(0);
        self.admissions.extend(admitted.map(|at| Admission { caller, at, gateway, part }));
    }

    /// What there was to see.
    pub fn end<R: Redis>(mut self, plan: &Plan, network: &Network<R>) -> Seen {
        self.waits.sort_unstable();
        let last = self.waits.len().saturating_sub(1);
        let wait = |per_cent| self.waits.get(last * per_cent / 100).copied().unwrap_or(0);
        let rate = |count: u64| count as f64 / plan.seconds as f64;
        let share = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        Seen {
            requests: self.requests,
            admitted: self.admissions.len() as u64,
            used: share(self.admissions.len() as u64, self.counted),
            extremes: extremes(plan.algo, plan.rpu, &mut self.admissions),
            calls: rate(network.calls),
            asks: rate(network.asks()),
            failed: share(network.failed, network.calls),
            processors: network.busy / plan.end() as f64,
            waiting: share(self.waits.len() as u64, self.decided),
            waits: [50, 99, 100].map(wait),
            alone: share(self.alone, self.requests),
            last_alone: self.last_alone,
        }
    }
}
