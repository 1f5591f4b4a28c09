//! Usage is reset while several workers spend, hold, settle and return permits. From then on no
//! caller gets more than the limit, and within a second each gets all of it.

use std::rc::Rc;

use diana_algorithm::{IN_FLIGHT, REGISTRY};
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::usage::OrderError;
use diana_store::{CounterSpec, Store};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::oracle::Admission;
use kit::seed;
use kit::store::ended;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Decided, Take};

/// How a rule settles reservations, if it does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Settling {
    Never,
    Kept,
}

fn open(spec: CounterSpec, data: &Rc<FakeSharedData>) -> Box<dyn Store> {
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
    stores.resets_bans = true;
    stores.open(Scope::Gateway, spec)
}

fn spec(rule: &Rule, settling: Settling) -> CounterSpec {
    let plain = rule.spec(100);
    let keeps_used = settling == Settling::Kept;
    let algorithm = plain.entry.algorithm(&plain.quota, keeps_used).unwrap();
    let settles = settling != Settling::Never;
    CounterSpec { settles, keeps_used, algorithm, may_be_cancelled: settles, ..plain }
}

/// A request in progress: its index among those since the reset, if it is one of them, and its
/// charge.
struct Open {
    place: Option<usize>,
    receipt: u64,
    since: Now,
}

struct Play {
    rule: Rule,
    settling: Settling,
    stores: Vec<Box<dyn Store>>,
    now: Now,
    /// Admissions since the reset, and requests in progress.
    past: Vec<Admission>,
    open: Vec<Open>,
    lifted: usize,
    refused: usize,
    late: usize,
}

impl Play {
    fn new(rule: Rule, settling: Settling) -> Play {
        let data = Rc::new(FakeSharedData::default());
        let stores = (0..3).map(|_| open(spec(&rule, settling), &data)).collect();
        let (past, open, now) = (Vec::new(), Vec::new(), START);
        Play { rule, settling, stores, now, past, open, lifted: 0, refused: 0, late: 0 }
    }

    fn request(&mut self, worker: usize) -> bool {
        let store = &mut self.stores[worker];
        let mut found = store.checked(key(1).into(), 1, self.now);
        let admitted =
            found.decision() == Decision::NOW && store.charged(&mut found, 0).is_admitted();
        if !admitted || !found.is_charged() {
            self.refused += 1;
            return false;
        }
        let receipt = found.receipt.unwrap();
        self.past.push(Admission { at: self.now, leaves: self.now.mono, cost: 1 });
        if self.settling != Settling::Never {
            self.open.push(Open { place: Some(self.past.len() - 1), receipt, since: self.now });
        }
        self.rule.verify(&self.past);
        true
    }

    fn settle(&mut self, worker: usize, rng: &mut Rng) {
        if self.open.is_empty() {
            return;
        }
        let Open { place, receipt, since } = self.open.swap_remove(rng.usize(..self.open.len()));
        let used = rng.u64(0..2);
        let settlement = Settlement { receipt, since: since.mono, reserved: 1, used };
        assert!(self.stores[worker].settle(&ended(key(1), &settlement), self.now));
        self.late += usize::from(place.is_none());
        if let Some(place) = place {
            self.past[place].cost = used;
        }
    }

    fn lift(&mut self, worker: usize) {
        let seen = self.stores[worker].usage(key(1).into(), true, self.now).unwrap();
        let limit = self.rule.algorithm.properties().limit;
        if self.settling == Settling::Never {
            assert_eq!(seen.used, 0, "{seen:?}");
            assert_eq!(seen.remaining, limit.saturating_sub(seen.leased), "{seen:?}");
        }
        self.past.clear();
        self.open.iter_mut().for_each(|open| open.place = None);
        self.lifted += 1;
    }

    fn turn(&mut self, rng: &mut Rng) {
        let pause =
            if rng.u8(..30) == 0 { rng.u64(..2 * SECOND) } else { rng.u64(1..SECOND / 100) };
        self.now = self.now.later(pause);
        let worker = rng.usize(..3);
        match rng.u8(..40) {
            0 => self.lift(worker),
            1..6 => _ = self.stores[worker].maintain(self.now),
            6..14 => self.settle(worker, rng),
            _ => _ = self.request(worker),
        }
    }
}

#[test]
fn reset_grants_at_most_one_limit() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut lifted, mut refused, mut late) = (0, 0, 0);
    for number in 0..180 {
        let (short, settling) = [
            ("W", Settling::Never),
            ("SW", Settling::Never),
            ("TB", Settling::Never),
            ("W", Settling::Kept),
            ("SW", Settling::Kept),
        ][number % 5];
        let unit = [Unit::Second, Unit::Minute][rng.usize(..2)];
        let quota = Quota::new(unit, rng.u64(1..80));
        let mut play = Play::new(Rule::new(short, quota), settling);
        (0..500).for_each(|_| play.turn(&mut rng));
        lifted += play.lifted;
        refused += play.refused;
        late += play.late;
    }
    println!("{lifted} lifted, {refused} refused, {late} settled late");
    assert!(lifted > 1000 && refused > 1000 && late > 300, "too tame");
}

/// A remembered refusal lasts at most a second.
#[test]
fn reset_reaches_all_workers_within_a_second() {
    for short in ["W", "SW", "TB"] {
        let mut play = Play::new(Rule::new(short, Quota::new(Unit::Day, 30)), Settling::Never);
        while (0..3).any(|worker| play.request(worker)) {}
        for worker in 0..3 {
            assert!(!play.request(worker));
        }
        play.lift(1);
        play.now = play.now.later(SECOND);
        (0..3).for_each(|worker| _ = play.stores[worker].maintain(play.now));
        for worker in [0, 2, 1] {
            assert!(play.request(worker), "{short}");
        }
        assert!(!(0..30).all(|number| play.request(number % 3)));
    }
}

#[test]
fn queues_and_shared_states_are_not_reset() {
    let data = Rc::new(FakeSharedData::default());
    for quota in [
        Quota { max_delay: Some(SECOND), ..Quota::new(Unit::Second, 5) },
        Quota { warm_up: Some(SECOND), ..Quota::new(Unit::Second, 5) },
    ] {
        for entry in REGISTRY.iter().filter(|entry| ["LB", "TB"].contains(&entry.short)) {
            let mut store = open(Rule::new(entry.short, quota).spec(10), &data);
            let mut found = store.checked(key(1).into(), 1, START);
            store.charged(&mut found, 0);
            let usage = store.usage(key(1).into(), true, START);
            assert_eq!(usage, Err(OrderError::InUse), "{}", entry.short);
        }
    }
    let algorithm = (IN_FLIGHT.build)(&Quota::new(Unit::Second, 3)).unwrap();
    let rule = Rule::new("W", Quota::new(Unit::Day, 5));
    let in_flight = CounterSpec { fingerprint: 9, entry: IN_FLIGHT, algorithm, ..rule.spec(4) };
    let usage = open(in_flight, &data).usage(key(1).into(), true, START);
    assert_eq!(usage, Err(OrderError::InUse), "in flight");
    let mut store = open(CounterSpec { fingerprint: 8, ..rule.spec(4) }, &data);
    let mut shared = None;
    for caller in 0..4000 {
        let mut found = store.checked(key(caller).into(), 1, START);
        store.charged(&mut found, 0);
        shared = shared.or(found.is_overflow.then_some(caller));
    }
    let caller = shared.expect("there are too many");
    assert_eq!(store.usage(key(caller).into(), true, START), Err(OrderError::Shared));
    assert!(store.usage(key(caller).into(), false, START).unwrap().is_shared);
    let nobody = store.usage(key(9999).into(), true, START);
    assert!(matches!(nobody, Ok(_) | Err(OrderError::Shared)));
}

/// A lease taken after a reset is returned, however late the reset or the worker.
#[test]
fn lease_after_a_reset_is_returned_late() {
    let rule = Rule::new("W", Quota::new(Unit::Minute, 1000));
    let data = Rc::new(FakeSharedData::default());
    let new = || open(spec(&rule, Settling::Never), &data);
    let left = |now: Now| {
        let mut store = new();
        let reservation = store.checked(key(1).into(), 1, now);
        store.remaining(&reservation).map(|it| it.permits).unwrap()
    };
    let mut worker = new();
    let request = |worker: &mut Box<dyn Store>, now: Now| {
        let mut reservation = worker.checked(key(1).into(), 1, now);
        assert!(reservation.decision().is_admitted());
        assert!(worker.charged(&mut reservation, 0).is_admitted());
    };
    request(&mut worker, START);
    assert_eq!(new().usage(key(1).into(), true, START).map(|it| it.used), Ok(0));
    let lent = START.later(2 * SECOND);
    let mut given = 0;
    while left(lent) + given > 980 {
        request(&mut worker, lent);
        given += 1;
    }
    let late = lent.later(3 * SECOND / 2);
    while worker.maintain(late).is_busy {}
    assert_eq!(left(late), 1000 - given);
}
