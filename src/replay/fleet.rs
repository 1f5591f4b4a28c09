//! Gateways of several workers on one clock. Each request arrives at one of the workers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use diana_limiter::{Explained, Record};
use diana_policy::port::SharedData;
use diana_policy::time::Micros;
use diana_policy::{Metric, Policy};
use fastrand::Rng;

use crate::Arrival;
use crate::data::MemoryData;
use crate::decision::ReplayDecision;
use crate::host::{Counters, Shadowed};
use crate::worker::{ReplayWorker, WorkerNumber};

#[cfg(test)]
mod tests;

/// Something that happens to a worker. Events are ordered by their time, then by the order in which
/// they were scheduled.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    due: Micros,
    number: u64,
    worker: usize,
    /// The stream that ends; none if the timer of the worker fires.
    stream: Option<u32>,
}

/// All gateways.
pub struct ReplayFleet<A> {
    workers: Vec<ReplayWorker<A>>,
    events: BinaryHeap<Reverse<Event>>,
    /// The number of the latest event.
    number: u64,
    /// Chooses the worker of each request. The seed is fixed, so that each replay of a log is the
    /// same.
    rng: Rng,
    now: Micros,
    counters: Rc<Counters>,
    shadowed: Rc<Shadowed>,
}

impl<A: Arrival> ReplayFleet<A> {
    /// A number of gateways with the same number of workers each, and the rules of a policy.
    ///
    /// # Errors
    /// If a worker cannot build the rules.
    pub fn new(policy: &Policy, gateways: usize, workers: usize) -> Result<ReplayFleet<A>, String> {
        let data: Rc<dyn SharedData> = Rc::<MemoryData>::default();
        let (counters, shadowed) = (Rc::<Counters>::default(), Rc::<Shadowed>::default());
        let worker = |number: usize| {
            let place = WorkerNumber { worker: number, gateway: number / workers };
            let (counters, shadowed) = (counters.clone(), shadowed.clone());
            ReplayWorker::new(policy.clone(), place, data.clone(), counters, shadowed)
        };
        Ok(ReplayFleet {
            workers: (0..gateways * workers).map(worker).collect::<Result<_, _>>()?,
            events: BinaryHeap::new(),
            number: 0,
            rng: Rng::with_seed(0),
            now: 0,
            counters,
            shadowed,
        })
    }

    /// Decides about a request that arrives, after all earlier events.
    pub fn request(&mut self, arrival: &Rc<A>) -> ReplayDecision {
        self.advance(arrival.at());
        let number = self.choose();
        let Some(worker) = self.workers.get_mut(number) else { return ReplayDecision::Admitted };
        let decision = worker.request(arrival, self.now);
        self.schedule(number);
        decision
    }

    /// Takes the refusals of rules in shadow since the last call.
    pub fn take_shadowed(&self) -> Vec<Record> {
        self.shadowed.take()
    }

    /// As [`ReplayFleet::request`], for the last request of a replay. Explains the decision by each
    /// rule.
    pub fn explain(&mut self, arrival: &A) -> (ReplayDecision, Vec<Explained>) {
        self.advance(arrival.at());
        let number = self.choose();
        let worker = self.workers.get(number);
        let explained = worker.map(|worker| worker.explain(arrival, self.now));
        explained.unwrap_or((ReplayDecision::Admitted, Vec::new()))
    }

    /// Takes the changes of the metrics of the rules of all workers since the last call: `add` gets the name of a rule, the metric
    /// and the change.
    pub fn take_counts(&mut self, mut add: impl FnMut(&str, Metric, i64)) {
        self.workers.iter().for_each(ReplayWorker::flush);
        for ((metric, rule), change) in self.counters.take() {
            add(&rule, metric, change);
        }
    }

    fn choose(&mut self) -> usize {
        match self.workers.len() {
            1 => 0,
            workers => self.rng.usize(0..workers),
        }
    }

    /// Moves the clock forward, through all events that are due.
    fn advance(&mut self, to: Micros) {
        while let Some(Reverse(event)) = self.events.peek()
            && event.due <= to
        {
            let Some(Reverse(Event { due, worker: number, stream, .. })) = self.events.pop() else {
                break;
            };
            self.now = self.now.max(due);
            let Some(worker) = self.workers.get_mut(number) else { continue };
            match stream {
                Some(stream) => worker.end(stream, self.now),
                // The worker has changed its timer since then.
                None if worker.next_tick() != Some(due) => continue,
                None => worker.tick(self.now),
            }
            self.schedule(number);
        }
        self.now = self.now.max(to);
    }

    /// Schedules the next events of a worker.
    fn schedule(&mut self, number: usize) {
        let Some(worker) = self.workers.get_mut(number) else { return };
        let next = worker.next_tick();
        let tick = next.filter(|_| next != worker.scheduled);
        worker.scheduled = next;
        for (stream, due) in worker.take_ends() {
            self.add(due, number, Some(stream));
        }
        if let Some(due) = tick {
            self.add(due, number, None);
        }
    }

    fn add(&mut self, due: Micros, worker: usize, stream: Option<u32>) {
        self.number += 1;
        self.events.push(Reverse(Event { due, number: self.number, worker, stream }));
    }
}
