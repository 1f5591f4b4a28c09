//! Workers of a gateway whose requests run one by one.

use std::rc::Rc;

use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::time::{Now, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Reservation, Store};
use kit::fake::CountingData;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Decided, Take};

pub const MS: u64 = 1000;

/// Requests after which a caller has a lease: the first is not counted.
pub const OFTEN: u64 = 21;

/// Workers of a gateway whose requests run one by one.
pub struct Gateway {
    pub workers: Vec<Box<dyn Store>>,
    pub data: Rc<CountingData>,
    pub caller: Key,
    pub cost: u64,
    pub start: Now,
}

impl Gateway {
    /// Two workers with a rule; `may_be_cancelled` if a request has more rules.
    pub fn new(short: &str, quota: Quota, may_be_cancelled: bool) -> Gateway {
        Gateway::of(4096, short, quota, may_be_cancelled)
    }

    /// The same, with room for this many callers.
    pub fn of(keys: usize, short: &str, quota: Quota, may_be_cancelled: bool) -> Gateway {
        let data = Rc::<CountingData>::default();
        let open = || {
            let mut tables = Tables::default();
            let spec = Rule::new(short, quota).spec(keys);
            let spec = CounterSpec { may_be_cancelled, ..spec };
            Stores::new("test".into(), data.clone(), &mut tables).open(Scope::Gateway, spec)
        };
        Gateway {
            workers: vec![open(), open()],
            data: data.clone(),
            caller: key(1),
            cost: quota.cost,
            start: START,
        }
    }

    pub fn check(&mut self, worker: usize, ticks: u64) -> Reservation {
        self.workers[worker].checked(self.caller.into(), self.cost, self.start.later(ticks))
    }

    /// The remaining permits, as a worker knows them.
    pub fn remaining(&mut self, worker: usize, found: &Reservation) -> Option<u64> {
        self.workers[worker].remaining(found).map(|it| it.permits)
    }

    /// Takes a permit. Returns false if there is none.
    pub fn take(&mut self, worker: usize, ticks: u64) -> bool {
        let mut reservation = self.check(worker, ticks);
        reservation.decision().is_admitted()
            && self.workers[worker].charged(&mut reservation, 0) == Decision::NOW
    }

    /// Takes permits until the worker has a lease.
    pub fn take_block(&mut self, worker: usize, ticks: u64) {
        assert!((0..OFTEN).all(|_| self.take(worker, ticks)));
    }

    /// Takes all available permits. Returns their number.
    pub fn flood(&mut self, worker: usize, ticks: u64) -> u64 {
        (0..10_000).take_while(|_| self.take(worker, ticks)).count() as u64
    }
}

pub fn day(rpu: u64) -> Quota {
    Quota::new(Unit::Day, rpu)
}
