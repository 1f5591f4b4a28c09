//! Gateways of several workers on the log's own clock, over which the requests are spread.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

use diana_config::Source;
use diana_limiter::Explained;
use diana_policy::port::{Metrics, SharedData};
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::permit::Permit;
use fastrand::Rng;

use super::worker::{Judged, Place, Worker};
use crate::Arrival;
use crate::host::Data;

/// Something that happens to a worker.
struct Event<A> {
    /// When, and in the order in which it became clear.
    key: (Micros, u64),
    worker: usize,
    /// A request that ends, and what is to be settled; otherwise the worker is called.
    ends: Option<(Permit, Rc<A>)>,
}

impl<A> Ord for Event<A> {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Event<A>) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl<A> PartialOrd for Event<A> {
    fn partial_cmp(&self, other: &Event<A>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<A> PartialEq for Event<A> {
    fn eq(&self, other: &Event<A>) -> bool {
        self.key == other.key
    }
}

impl<A> Eq for Event<A> {}

/// The gateways.
pub struct Fleet<A> {
    workers: Vec<Worker<A>>,
    events: BinaryHeap<Event<A>>,
    /// How many events there were.
    number: u64,
    /// Chooses the worker of each request, the same ones whenever a log is replayed.
    rng: Rng,
    now: Micros,
    /// The requests that are decided, which whoever has the fleet takes away.
    pub judged: Vec<Judged<A>>,
}

impl<A: Arrival> Fleet<A> {
    /// So many gateways of so many workers each, with the rules of a source.
    ///
    /// # Errors
    /// What is wrong with the rules.
    pub fn new(rules: &Source, gateways: usize, workers: usize) -> Result<Fleet<A>, String> {
        let data: Rc<dyn SharedData> = Rc::<Data>::default();
        let worker = |number: usize| {
            let place = Place { worker: number, gateway: number / workers };
            let (policy, _) =
                diana_config::check(rules).map_err(|problems| problems.to_string())?;
            Worker::new(policy, place, data.clone()).map_err(|rule| rule.to_string())
        };
        Ok(Fleet {
            workers: (0..gateways * workers).map(worker).collect::<Result<_, _>>()?,
            events: BinaryHeap::new(),
            number: 0,
            rng: Rng::with_seed(0),
            now: 0,
            judged: Vec::new(),
        })
    }

    /// Lets a request come, before which all happens that happens earlier.
    pub fn request(&mut self, arrival: &Rc<A>) {
        self.advance(arrival.at());
        let number = self.choose();
        let Some(worker) = self.workers.get_mut(number) else { return };
        let judged = worker.request(arrival, at(self.now));
        judged.into_iter().for_each(|judged| self.decided(number, judged));
        self.arm(number);
    }

    /// As [`Fleet::request`], of the last request that is to come: what each rule says of it, or why it says nothing.
    pub fn explain(&mut self, arrival: &Rc<A>) -> Vec<Explained> {
        self.advance(arrival.at());
        let number = self.choose();
        let worker = self.workers.get_mut(number);
        worker.map(|worker| worker.explain(&**arrival, at(self.now))).unwrap_or_default()
    }

    fn choose(&mut self) -> usize {
        match self.workers.len() {
            1 => 0,
            workers => self.rng.usize(0..workers),
        }
    }

    /// Lets time pass.
    pub fn advance(&mut self, to: Micros) {
        while self.events.peek().is_some_and(|event| event.key.0 <= to) {
            let Some(Event { key: (due, _), worker: number, ends }) = self.events.pop() else {
                break;
            };
            self.now = self.now.max(due);
            let Some(worker) = self.workers.get_mut(number) else { continue };
            match ends {
                Some((permit, arrival)) => worker.end(permit, &arrival, at(self.now)),
                // It was found meanwhile that it is to be called earlier.
                None if worker.called != Some(due) => continue,
                None => {
                    let judged = worker.call(at(self.now));
                    judged.into_iter().for_each(|judged| self.decided(number, judged));
                }
            }
            self.arm(number);
        }
        self.now = self.now.max(to);
    }

    /// Lets time pass until nobody waits for a decision.
    pub fn finish(&mut self) {
        while self.workers.iter().any(Worker::waits) && !self.events.is_empty() {
            self.advance(self.now + SECOND);
        }
    }

    /// Hands on what the rules have counted.
    pub fn flush(&mut self, metrics: &dyn Metrics) {
        self.workers.iter_mut().for_each(|worker| worker.flush(metrics));
    }

    fn decided(&mut self, worker: usize, mut judged: Judged<A>) {
        if let Some((permit, since)) = judged.open.take() {
            let ends = since + judged.arrival.took();
            self.add(ends, worker, Some((permit, judged.arrival.clone())));
        }
        self.judged.push(judged);
    }

    /// Sees to it that a worker is called in time.
    fn arm(&mut self, number: usize) {
        let Some(worker) = self.workers.get_mut(number) else { return };
        let Some(next) = worker.next(self.now) else { return };
        if worker.called.is_none_or(|called| next < called) {
            worker.called = Some(next);
            self.add(next, number, None);
        }
    }

    fn add(&mut self, due: Micros, worker: usize, ends: Option<(Permit, Rc<A>)>) {
        self.number += 1;
        self.events.push(Event { key: (due, self.number), worker, ends });
    }
}

/// Both clocks of a gateway show what the log's does.
fn at(now: Micros) -> Now {
    Now { mono: now, wall: now }
}
