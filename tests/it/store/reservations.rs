//! The result of a check stays valid until its charge, whatever is charged in between.

use std::rc::Rc;

use diana_policy::decision::Decision;
use diana_policy::time::{Now, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{Reservation, Store};
use kit::fake::FakeSharedData;

use super::races::{gap, rounds};
use kit::oracle::Admission;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Decided, Take};

fn open(rule: &Rule, scope: Scope) -> Box<dyn Store> {
    let data = Rc::new(FakeSharedData::default());
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data, &mut tables);
    stores.open(scope, rule.spec(100))
}

fn charge(store: &mut dyn Store, reservation: &mut Reservation) -> Decision {
    match reservation.decision() {
        Decision::Admit { wait } => store.charged(reservation, wait),
        refusal => refusal,
    }
}

/// Several requests are in progress at a time, and are charged or dropped in any order.
#[test]
fn any_order_of_charges_admits_no_excess() {
    for scope in [Scope::Local, Scope::Gateway] {
        rounds(500, |rule, rng| {
            let mut store = open(&rule, scope);
            let mut past = vec![Vec::new(); 3];
            let mut now = START;
            for _ in 0..100 {
                now = now.later(gap(&rule, rng));
                let callers: Vec<usize> = (0..rng.usize(1..6)).map(|_| rng.usize(0..3)).collect();
                let mut under_way: Vec<_> = callers
                    .into_iter()
                    .map(|caller| {
                        (caller, store.checked(key(caller as u64).into(), rule.quota.cost, now))
                    })
                    .collect();
                rng.shuffle(&mut under_way);
                for (caller, mut reservation) in under_way {
                    if rng.u8(0..4) == 0 {
                        continue;
                    }
                    let asked = reservation.decision().wait();
                    let decision = charge(&mut *store, &mut reservation);
                    let charged = decision.is_admitted() && decision.wait() <= asked;
                    assert_eq!(reservation.is_charged(), charged, "{decision:?} after {asked}");
                    if reservation.is_charged() {
                        past[caller].push(admission(&rule, now, decision));
                    }
                }
            }
            past.iter().for_each(|past| rule.verify(past));
        });
    }
}

fn admission(rule: &Rule, now: Now, decision: Decision) -> Admission {
    Admission { at: now, leaves: now.mono + decision.wait(), cost: rule.quota.cost }
}

#[test]
fn repeated_charge_counts_once() {
    for scope in [Scope::Local, Scope::Gateway] {
        let mut store = open(&Rule::new("W", Quota::new(Unit::Day, 1000)), scope);
        let mut reservation = store.checked(key(1).into(), 1, START);
        (0..2).for_each(|_| assert_eq!(charge(&mut *store, &mut reservation), Decision::NOW));
        let found = store.checked(key(1).into(), 1, START);
        assert_eq!(store.remaining(&found).map(|it| it.permits), Some(999), "{scope:?}");
    }
}

/// The sum of all changes is the number of callers, whatever configurations come and go.
#[test]
fn rules_that_share_a_table_count_callers_once() {
    let rule = Rule::new("W", Quota::new(Unit::Day, 1000));
    let mut tables = Tables::default();
    let data = Rc::new(FakeSharedData::default());
    let mut stores = Stores::new("test".into(), data, &mut tables);
    let [mut old, mut new] = [(); 2].map(|_| stores.open(Scope::Local, rule.spec(100)));
    assert!(old.take(key(1), 1, START).is_none());
    assert!(new.take(key(2), 1, START).is_none());
    assert_eq!(old.maintain(START).keys + new.maintain(START).keys, 2);
    assert_eq!(old.close(START), 0, "the other one goes on");
    drop(old);
    assert_eq!(new.close(START), -2);
}
