//! A gateway of several workers in one process, with shared data, one clock, and a record of all
//! admissions.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::{Decided, Take};
use crate::fake::FakeSharedData;
use diana_policy::Scope;
use diana_policy::decision::Decision;
use diana_policy::key::{Key, KeyHasher, Seed};
use diana_policy::port::SharedData;
use diana_policy::time::{Now, SECOND};
use diana_store::Store;
use diana_store::slots::Traffic;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use fastrand::Rng;

use super::rule::Rule;
use crate::oracle::Admission;
use crate::seed;

/// A full minute on the wall clock.
pub const START: Now = Now { mono: 1_000_000_000, wall: 1_700_000_040_000_000 };

/// The interval of maintenance of a worker.
pub const PACE: u64 = SECOND / 40;

pub fn key(caller: u64) -> Key {
    let mut hasher = KeyHasher::new(&Seed { k0: 1, k1: 2 });
    hasher.part(0, &caller.to_le_bytes());
    hasher.finish()
}

/// One rule in a worker.
pub struct Worker {
    pub store: Box<dyn Store>,
    pub traffic: Rc<Traffic>,
}

/// A worker and its rule.
struct RuleWorker {
    rule: Rc<Rule>,
    keys: usize,
    worker: RefCell<Worker>,
}

pub struct Gateway {
    pub rule: Rc<Rule>,
    pub data: Rc<FakeSharedData>,
    /// The number of reads from shared data that returned a value.
    pub asked: Rc<Cell<u64>>,
    pub clock: Cell<Now>,
    /// Requests decided by an overflow bucket.
    pub overflowed: Cell<u64>,
    rng: RefCell<Rng>,
    rule_workers: Vec<RuleWorker>,
    books: RefCell<HashMap<u64, Book>>,
}

/// A caller's admissions, and the latest instant of a write to its shared data.
#[derive(Default)]
struct Book {
    past: Vec<Admission>,
    written: Now,
}

impl Gateway {
    pub fn new(rule: Rule, keys: usize, workers: usize) -> Gateway {
        let mut gateway = Gateway {
            rule: Rc::new(rule),
            data: Rc::default(),
            asked: Rc::default(),
            clock: Cell::new(START),
            overflowed: Cell::default(),
            rng: RefCell::new(Rng::with_seed(seed::next())),
            rule_workers: Vec::new(),
            books: RefCell::default(),
        };
        (0..workers).for_each(|_| gateway.join(gateway.rule.clone(), keys));
        gateway
    }

    /// Adds a worker with another configuration.
    pub fn join(&mut self, rule: Rc<Rule>, keys: usize) {
        let worker = RefCell::new(open(&rule, keys, self.counted()));
        self.rule_workers.push(RuleWorker { rule, keys, worker });
    }

    pub fn workers(&self) -> usize {
        self.rule_workers.len()
    }

    fn counted(&self) -> Rc<Counted> {
        Rc::new(Counted { data: self.data.clone(), asked: self.asked.clone() })
    }

    pub fn traffic(&self, worker: usize) -> Rc<Traffic> {
        self.rule_workers[worker].worker.borrow().traffic.clone()
    }

    /// Sends a request. `None` if the worker is processing another one.
    pub fn request(&self, worker: usize, caller: u64) -> Option<Decision> {
        let cost = self.rule_workers[worker].rule.cost(&mut self.rng.borrow_mut());
        self.request_of(worker, caller, cost)
    }

    /// As [`Gateway::request`], with this cost.
    pub fn request_of(&self, worker: usize, caller: u64, cost: u64) -> Option<Decision> {
        let RuleWorker { worker, .. } = &self.rule_workers[worker];
        let mut worker = worker.try_borrow_mut().ok()?;
        let Worker { store, traffic } = &mut *worker;
        let now = self.clock.get();
        let before = traffic.writes.get();
        let mut reservation = store.checked(key(caller).into(), cost, now);
        let mut decision = reservation.decision();
        let overflow = u64::from(reservation.is_overflow);
        self.overflowed.set(self.overflowed.get() + overflow);
        while let Decision::Admit { wait } = decision {
            decision = store.charged(&mut reservation, wait);
            match decision {
                // Another worker was faster, and the turn is later.
                Decision::Admit { wait: later } if later > wait => {
                    reservation = store.checked(key(caller).into(), cost, now);
                    decision = reservation.decision();
                }
                Decision::Admit { wait } => {
                    let one = Admission { at: now, leaves: now.mono + wait, cost };
                    self.give(caller, one, traffic.writes.get() > before);
                    return Some(decision);
                }
                Decision::Refuse { .. } => {}
            }
        }
        Some(decision)
    }

    /// Records an admission. A worker that read its clock before another worker's write is charged
    /// after it, as of that time.
    fn give(&self, caller: u64, mut one: Admission, wrote: bool) {
        let mut books = self.books.borrow_mut();
        let Book { past, written } = books.entry(caller).or_default();
        if wrote {
            one.at = if one.at.mono > written.mono { one.at } else { *written };
            *written = one.at;
        }
        past.push(one);
    }

    /// Advances the clock, with maintenance of all workers.
    pub fn wait(&self, mut ticks: u64) {
        while ticks > 0 {
            let step = ticks.min(PACE);
            self.pass(step);
            ticks -= step;
            let busy = (0..self.workers()).filter(|&worker| self.maintain(worker)).count();
            if busy == 0 {
                return self.pass(ticks);
            }
        }
    }

    /// Advances the clock.
    pub fn pass(&self, ticks: u64) {
        self.clock.set(self.clock.get().later(ticks));
    }

    pub fn maintain(&self, worker: usize) -> bool {
        let worker = self.rule_workers[worker].worker.try_borrow_mut();
        worker.is_ok_and(|mut worker| worker.store.maintain(self.clock.get()).is_busy)
    }

    /// The worker loses its memory.
    pub fn crash(&self, worker: usize) {
        let RuleWorker { rule, keys, worker } = &self.rule_workers[worker];
        if let Ok(mut worker) = worker.try_borrow_mut() {
            *worker = open(rule, *keys, self.counted());
        }
    }

    /// All workers return their leases.
    pub fn close(&self) {
        for rule_worker in &self.rule_workers {
            rule_worker.worker.borrow_mut().store.close(self.clock.get());
        }
    }

    /// A caller's remaining permits in shared data.
    pub fn left(&self, caller: u64) -> u64 {
        let mut worker = open(&self.rule, self.rule_workers[0].keys, self.data.clone());
        let reservation = worker.store.checked(key(caller).into(), 1, self.clock.get());
        worker.store.remaining(&reservation).map(|it| it.permits).unwrap_or(0)
    }

    pub fn callers(&self) -> Vec<u64> {
        self.books.borrow().keys().copied().collect()
    }

    pub fn past(&self, caller: u64) -> Vec<Admission> {
        self.books.borrow().get(&caller).map(|book| book.past.clone()).unwrap_or_default()
    }

    /// Checks the admissions of all callers against the bound.
    pub fn verify(&self) {
        self.books.borrow().values().for_each(|book| self.rule.verify(&book.past));
    }
}

impl Gateway {
    /// Sets the clock to `ticks` after the start, and the wall clock `behind` it.
    pub fn set(&self, ticks: u64, behind: u64) {
        let now = START.later(ticks);
        self.clock.set(Now { wall: now.wall - behind, ..now });
    }

    /// Returns true if the first worker admits a request.
    pub fn admits(&self, caller: u64) -> bool {
        self.request(0, caller).is_some_and(Decision::is_admitted)
    }

    /// Sets the clock to `ticks` after the start, without maintenance.
    pub fn at(&self, ticks: u64) {
        self.clock.set(START.later(ticks));
    }

    /// Sends requests until one is refused. Returns the number of admitted ones.
    pub fn flood(&self, worker: usize) -> u64 {
        let admitted = |_: &u64| self.request(worker, 1).unwrap().is_admitted();
        (0..100_000).take_while(admitted).count() as u64
    }

    /// Sends requests until the worker has leased at least this number of permits. Returns the
    /// number of admitted ones.
    pub fn take(&self, worker: usize, permits: u64) -> u64 {
        let held = |given| 1000 - given - self.left(1);
        (1..)
            .find(|&given| {
                assert!(self.request(worker, 1).unwrap().is_admitted());
                held(given) >= permits
            })
            .unwrap()
    }
}

pub fn open(rule: &Rule, keys: usize, data: Rc<dyn SharedData>) -> Worker {
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data, &mut tables);
    let store = stores.open(Scope::Gateway, rule.spec(keys));
    Worker { store, traffic: stores.traffic }
}

/// Shared data that counts reads.
struct Counted {
    data: Rc<FakeSharedData>,
    asked: Rc<Cell<u64>>,
}

impl SharedData for Counted {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.asked.set(self.asked.get() + 1);
        self.data.get(key)
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        self.data.swap(key, value, number)
    }
}

/// Runs `others` just before a worker writes.
pub fn interrupt(
    gateway: &Rc<Gateway>,
    mut rng: Rng,
    mut others: impl FnMut(&Gateway, &mut Rng) + 'static,
) {
    let here = Rc::downgrade(gateway);
    let hook = move |_: &FakeSharedData, _: &str| {
        if let Some(gateway) = here.upgrade() {
            others(&gateway, &mut rng);
        }
    };
    *gateway.data.before_swap.borrow_mut() = Some(Box::new(hook));
}
