//! Observes a simulation, and compares it with a single counter without leases.

use std::collections::HashMap;
use std::rc::Rc;

use diana_algorithm::Algorithm;
use diana_policy::time::{Micros, Now, SECOND};

use super::EPOCH;
use super::fullest::{Admission, extremes};
use super::network::{Network, Redis};
use super::plan::Plan;
use super::seen::Seen;
use super::worker::Done;

pub struct Watch {
    requests: u64,
    decided: u64,
    /// Requests in degraded mode, and the arrival of the last one.
    alone: u64,
    last_alone: Option<Micros>,
    waits: Vec<Micros>,
    admissions: Vec<Admission>,
    counter: Rc<dyn Algorithm>,
    /// The counter's states, and its admissions.
    states: States,
    counted: u64,
    refusals: Vec<Refusal>,
}

/// A refusal by the `global` limit that must be justified.
struct Refusal {
    caller: u32,
    at: Micros,
}

/// The counter's state of each caller.
struct States {
    of: HashMap<u32, Box<[u64]>>,
    new: Box<[u64]>,
}

impl States {
    /// Returns true if a request fits, without charging it.
    fn fits(&mut self, counter: &dyn Algorithm, caller: u32, now: Micros) -> bool {
        let nobody = || vec![0; self.new.len()].into();
        let state = self.of.entry(caller).or_insert_with(nobody);
        let at = Now { mono: EPOCH + now, wall: EPOCH + now };
        counter.step(state, at, 1, &mut self.new).is_admitted()
    }

    /// Charges a request if it fits. Returns true if it was charged.
    fn step(&mut self, counter: &dyn Algorithm, caller: u32, now: Micros) -> bool {
        let fits = self.fits(counter, caller, now);
        if let (true, Some(state)) = (fits, self.of.get_mut(&caller)) {
            std::mem::swap(state, &mut self.new);
        }
        fits
    }
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
            states: States { of: HashMap::new(), new: vec![0; counter.words()].into() },
            counter,
            counted: 0,
            refusals: Vec::new(),
        }
    }

    /// A request arrives at a gateway, which is in degraded mode or not.
    pub fn request(&mut self, caller: u32, alone: bool, now: Micros) {
        self.requests += 1;
        if alone {
            self.alone += 1;
            self.last_alone = Some(now);
        }
        self.counted += u64::from(self.states.step(&*self.counter, caller, now));
    }

    /// A gateway has made a decision.
    pub fn decided(&mut self, gateway: usize, done: Done) {
        let Done { caller, admitted, alone, waited, at } = done;
        if admitted.is_none() && alone.is_none() {
            self.refusals.push(Refusal { caller, at });
        }
        self.decided += 1;
        self.waits.extend(waited);
        let part = alone.unwrap_or(0);
        self.admissions.extend(admitted.map(|at| Admission { caller, at, gateway, part }));
    }

    /// Refusals of requests that fitted their callers' earlier admissions.
    fn refused_in_error(&mut self) -> u64 {
        self.admissions.sort_by_key(|admission| admission.at);
        self.refusals.sort_by_key(|refusal| refusal.at);
        self.states.of.clear();
        let mut given = self.admissions.iter().peekable();
        let mut errors = 0;
        for Refusal { caller, at } in &self.refusals {
            // An admission at the same instant may have been earlier.
            while let Some(admission) = given.next_if(|admission| admission.at <= *at) {
                self.states.step(&*self.counter, admission.caller, admission.at);
            }
            errors += u64::from(self.states.fits(&*self.counter, *caller, *at));
        }
        errors
    }

    /// The measurements.
    pub fn end<R: Redis>(mut self, plan: &Plan, network: &Network<R>) -> Seen {
        self.waits.sort_unstable();
        let in_error = self.refused_in_error();
        let last = self.waits.len().saturating_sub(1);
        let wait = |per_cent| self.waits.get(last * per_cent / 100).copied().unwrap_or(0);
        let rate = |count: u64| count as f64 / plan.full_seconds();
        let share = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        // Requests that wait beyond the end are not counted elsewhere.
        let in_time = self.admissions.iter().filter(|admission| admission.at < plan.end()).count();
        Seen {
            used: share(in_time as u64, self.counted),
            in_error,
            extremes: extremes(plan.algo, plan.rpu, &mut self.admissions),
            calls: rate(network.calls),
            asks: rate(network.asks()),
            failed: share(network.failed, network.calls),
            scripts: rate(network.scripts),
            processors: network.busy() / (plan.full_seconds() * SECOND as f64),
            busiest: network.busiest() / plan.end() as f64,
            waiting: share(self.waits.len() as u64, self.decided),
            waits: [50, 99, 100].map(wait),
            alone: share(self.alone, self.requests),
            last_alone: self.last_alone,
        }
    }
}
