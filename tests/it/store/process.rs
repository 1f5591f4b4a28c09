//! A table for all workers of a process, after one of them has panicked while it changed the table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use diana_policy::time::Unit;
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

use crate::support::algorithm::ObservedAlgorithm;

const LIMIT: u64 = 3;

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
        let faulty = Arc::new(ObservedAlgorithm::new(algorithm));
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
