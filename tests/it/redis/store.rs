//! Rules that Redis counts: their state in a worker, and the gateway's share while Redis is
//! unavailable.

mod lease_model;
mod operator;
mod replies;
mod settlement;
mod unknown_algorithm;

use std::cell::RefCell;
use std::rc::Rc;

use diana_algorithm::REGISTRY;
use diana_policy::bloom::Shape;
use diana_policy::decision::Decision;
use diana_policy::redis::OnFailure;
use diana_policy::time::{Now, Unit};
use diana_policy::{Quota, Scope};
use diana_redis::outbox::Outbox;
use diana_redis::store::RedisStore;
use diana_store::permit::OpenCharge;
use diana_store::reservation::Decider;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Reservation, Store};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::oracle::oracle;

use crate::redis::client::{MILLISECOND, Worker};
use crate::store::races::gap;
use kit::store::gateway::{PACE, START, key};
use kit::store::rule::Rule;
use kit::store::{Decided, Take, left};

fn open(spec: &CounterSpec, outbox: &Rc<RefCell<Outbox>>) -> Option<RedisStore> {
    open_in(&Rc::default(), spec, outbox)
}

fn open_in(
    data: &Rc<FakeSharedData>,
    spec: &CounterSpec,
    outbox: &Rc<RefCell<Outbox>>,
) -> Option<RedisStore> {
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
    RedisStore::new(spec.clone(), 0, outbox.clone(), &mut stores).ok()
}

/// An outbox whose Redis is unavailable.
pub fn away() -> Outbox {
    let mut worker = Worker::of(&Rc::default());
    worker.fail(0);
    worker.outbox
}

/// A gateway in degraded mode and one without Redis, which get the same requests.
struct Twins<'r> {
    rule: &'r Rule,
    fleet: RedisStore,
    outbox: Rc<RefCell<Outbox>>,
    gateway: Box<dyn Store>,
    /// The charges that were not cancelled, and their permits.
    held: Vec<(u64, u64, u64)>,
}

impl Twins<'_> {
    fn request(&mut self, caller: u64, now: Now, longest: u64, rng: &mut Rng) {
        let Twins { rule, fleet, gateway, held, .. } = self;
        let cost = rule.cost(rng);
        let key = key(caller);
        if rng.u8(..4) == 0 {
            let (one, other) = (fleet.take(key, cost, now), gateway.take(key, cost, now));
            assert_eq!(summary(one.as_ref()), summary(other.as_ref()));
            return;
        }
        let mut one = fleet.checked(key.into(), cost, now);
        let mut other = gateway.checked(key.into(), cost, now);
        assert_eq!(summary(Some(&one)), summary(Some(&other)));
        assert_eq!(one.outcome, other.outcome);
        if one.refused().is_none_or(|refused| refused.remaining.is_none()) {
            assert_eq!(fleet.remaining(&one), gateway.remaining(&other));
        }
        let Decision::Admit { wait } = one.decision() else { return };
        let delay = wait + if longest > 0 && rng.bool() { rng.u64(..longest) } else { 0 };
        let charged = fleet.charged(&mut one, delay);
        assert_eq!(charged, gateway.charged(&mut other, delay));
        assert_eq!(one.is_charged(), other.is_charged());
        assert_eq!(fleet.remaining(&one), gateway.remaining(&other));
        assert_eq!(one.receipt, other.receipt);
        if rng.u8(..4) == 0 {
            fleet.cancel(&mut one);
            gateway.cancel(&mut other);
        } else if charged.is_admitted() {
            held.push((caller, other.receipt.unwrap(), cost));
        }
    }

    fn leave(&mut self, now: Now, rng: &mut Rng) {
        if !self.held.is_empty() {
            let (caller, receipt, cost) = self.held.swap_remove(rng.usize(..self.held.len()));
            let charge = left(key(caller), receipt, cost);
            assert!(self.fleet.settle(&OpenCharge { is_degraded: true, ..charge }, now));
            assert!(self.gateway.settle(&charge, now));
        }
    }

    fn maintain(&mut self, now: Now) {
        assert_eq!(self.fleet.maintain(now), self.gateway.maintain(now));
    }
}

/// The result of a check.
fn summary(of: Option<&Reservation>) -> Option<(Decision, bool, bool, bool)> {
    of.map(|it| (it.decision(), it.is_outstanding(), it.is_overflow, it.is_charged()))
}

fn agree(rule: &Rule, spec: &CounterSpec, rng: &mut Rng) {
    let outbox = Rc::new(RefCell::new(away()));
    let Some(fleet) = open(spec, &outbox) else { return };
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), Rc::<FakeSharedData>::default(), &mut tables);
    let gateway = stores.open(Scope::Gateway, spec.clone());
    let mut twins = Twins { rule, fleet, outbox, gateway, held: Vec::new() };
    let longest = oracle(rule.short).max_delay(&rule.quota);
    let mut now = START;
    for _ in 0..300 {
        now = now.later(gap(rule, rng).min(10 * PACE));
        match rng.u8(..16) {
            0 if longest > 0 => twins.leave(now, rng),
            1 | 2 => twins.maintain(now),
            _ => twins.request(rng.u64(..3), now, longest, rng),
        }
    }
    assert_eq!(twins.fleet.close(now), twins.gateway.close(now));
    assert!(!twins.outbox.borrow().has_operations(), "nothing is asked of a Redis that is away");
}

#[test]
fn degraded_mode_counts_like_a_gateway_without_redis() {
    let mut rng = Rng::with_seed(kit::seed::next());
    for _ in 0..100 {
        for entry in REGISTRY {
            let rule = Rule::random(entry, &mut rng);
            println!("{} {:?}", rule.short, rule.quota);
            agree(
                &rule,
                &CounterSpec { may_be_cancelled: rng.bool(), ..rule.spec(rng.usize(1..100)) },
                &mut rng,
            );
        }
        let rule = Rule::new("W", Quota::new(Unit::Day, rng.u64(1..20)));
        let daily = Some(Shape::new(1000, 10_000, rule.quota.rpu));
        agree(&rule, &CounterSpec { daily, ..rule.spec(1000) }, &mut rng);
    }
}

/// With `allow` no store counts; with `deny` the retry delay is a second.
#[test]
fn on_failure_decides_while_redis_is_unavailable() {
    let spec = Rule::new("W", Quota::new(Unit::Second, 1)).spec(100);
    for (on_failure, decision) in
        [(OnFailure::Allow, Decision::NOW), (OnFailure::Deny, Decision::retry(1_000_000))]
    {
        let mut outbox = away();
        outbox.on_failure = on_failure;
        let mut store = open(&spec, &Rc::new(RefCell::new(outbox))).unwrap();
        for delay in [0, 7] {
            let mut reservation = store.checked(key(1).into(), 1, START);
            assert_eq!(reservation.decision(), decision);
            assert_eq!(reservation.by, Decider::Unavailable);
            let charged = store.charged(&mut reservation, delay);
            let is_admitted = on_failure == OnFailure::Allow;
            assert_eq!(charged.is_admitted(), is_admitted);
            assert_eq!(reservation.is_charged(), is_admitted);
            store.cancel(&mut reservation);
            assert!(!reservation.is_charged());
        }
        assert_eq!(store.take(key(1), 1, START).is_none(), on_failure == OnFailure::Allow);
    }
}

/// Leases under the previous share are returned all at once.
#[test]
fn leases_are_returned_when_the_share_changes() {
    const LIMIT: u64 = 1000;
    let spec = Rule::new("W", Quota::new(Unit::Hour, LIMIT)).spec(100);
    let (data, outbox) = (Rc::default(), Rc::new(RefCell::new(away())));
    let [mut one, mut other] = [(); 2].map(|()| open_in(&data, &spec, &outbox).unwrap());
    let mut admitted = 0;
    let mut ask = |store: &mut RedisStore, now: Now| {
        let is_admitted = store.take(key(1), 1, now).is_none();
        admitted += u64::from(is_admitted);
        is_admitted
    };
    let mut now = START;
    for _ in 0..100 {
        now = now.later(MILLISECOND);
        assert!(ask(&mut one, now));
    }
    outbox.borrow_mut().gateways = 2;
    assert!(ask(&mut one, now));
    while ask(&mut other, now) {}
    assert_eq!(admitted, LIMIT / 2);
}
