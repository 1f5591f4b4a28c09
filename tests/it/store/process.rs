//! A table for all workers of a process, after one of them has panicked while it changed the table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use diana_algorithm::{Algorithm, Balance, Properties};
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, Unit};
use diana_policy::{Quota, Scope};
use diana_store::process::Process;
use diana_store::slots::Traffic;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store};
use kit::fake::FakeSharedData;
use kit::store::Take;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

const LIMIT: u64 = 3;

/// An algorithm that panics when a test wants it.
#[derive(Debug)]
struct Faulty {
    algorithm: Arc<dyn Algorithm>,
    panics: AtomicBool,
}

impl Algorithm for Faulty {
    fn properties(&self) -> &Properties {
        self.algorithm.properties()
    }

    fn step(&self, old: &[u64], now: Now, delay: Micros, cost: u64, new: &mut [u64]) -> Decision {
        assert!(!self.panics.load(Ordering::Relaxed), "a test wants it");
        self.algorithm.step(old, now, delay, cost, new)
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        self.algorithm.receipt(charged)
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        self.algorithm.settle(old, now, settlement, new);
    }

    fn spend_by(&self, charged: &[u64], now: Now) -> Option<Micros> {
        self.algorithm.spend_by(charged, now)
    }

    fn balance(&self, state: &[u64], now: Now) -> Balance {
        self.algorithm.balance(state, now)
    }

    fn reset(&self, old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool {
        self.algorithm.reset(old, now, out, new)
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        self.algorithm.expires(state, now)
    }
}

/// A worker's store in a process, and its counts.
fn open(process: &'static Process, spec: &CounterSpec) -> (Box<dyn Store>, Rc<Traffic>) {
    let mut tables = Tables::default();
    let data = Rc::new(FakeSharedData::default());
    let mut stores = Stores::new("test".into(), data, &mut tables);
    stores.process = Some((process, START));
    (stores.open(Scope::Gateway, spec.clone()), stores.traffic.clone())
}

fn admitted(store: &mut dyn Store, caller: u64, requests: u64) -> u64 {
    let admits = |_: &u64| store.take(key(caller), 1, START).is_none();
    (0..requests).filter(admits).count() as u64
}

/// The callers of the part are admitted one further limit at most, and those of the others none.
#[test]
fn part_is_emptied_after_a_panic_and_counted() {
    // Few callers have one part, and more have several.
    for keys in [100, 10_000] {
        let rule = Rule::new("W", Quota::new(Unit::Day, LIMIT));
        let algorithm = rule.algorithm.clone();
        let faulty = Arc::new(Faulty { algorithm, panics: AtomicBool::new(false) });
        let spec = CounterSpec { algorithm: faulty.clone(), ..rule.spec(keys) };
        let process = Box::leak(Box::default());
        let ((mut one, counts_of_one), (mut other, counts)) =
            (open(process, &spec), open(process, &spec));
        let callers = 1..=64;
        for caller in callers.clone() {
            assert_eq!(admitted(&mut *one, caller, 5), LIMIT);
            assert_eq!(admitted(&mut *other, caller, 5), 0);
        }
        faulty.panics.store(true, Ordering::Relaxed);
        let panics = || admitted(&mut *one, 1, 1);
        catch_unwind(AssertUnwindSafe(panics)).expect_err("a panic");
        faulty.panics.store(false, Ordering::Relaxed);
        assert_eq!(admitted(&mut *other, 1, 5), LIMIT, "{keys}");
        assert_eq!((counts_of_one.emptied.get(), counts.emptied.get()), (0, 1), "{keys}");
        let fresh = callers.clone().filter(|caller| admitted(&mut *other, *caller, 5) > 0).count();
        match keys {
            100 => assert_eq!(fresh, 63),
            _ => assert!(fresh < 32, "{fresh}"),
        }
        for caller in callers {
            assert_eq!(admitted(&mut *one, caller, 5), 0, "{caller}");
        }
        assert_eq!((counts_of_one.emptied.get(), counts.emptied.get()), (0, 1), "{keys}");
    }
}
