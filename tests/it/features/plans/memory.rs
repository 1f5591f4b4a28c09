//! A caller's state lasts as long as any of its plans may need it.

use std::rc::Rc;
use std::sync::Arc;

use diana_policy::decision::Decision;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Plan, PlanKind, Plans, Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{Account, CounterSpec, Store};
use kit::fake::FakeSharedData;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Decided, Take};

const GOLD: u64 = 1;
const FREE: u64 = 0;

/// Ten permits per second or a thousand, with room for this number of callers.
fn open(scope: Scope, keys: usize) -> Box<dyn Store> {
    let own = Quota { slowest: Some(10), ..Quota::new(Unit::Second, 10) };
    let gold = Quota { rpu: 1000, burst: Some(2000), ..own };
    let of = vec![Plan { name: "gold".into(), quota: Some(gold), until: None }];
    let plans = Some(Arc::new(Plans {
        own,
        kind: PlanKind::Listed { by: None, of, is_other_unlimited: false },
        month_starts: None,
    }));
    let spec = CounterSpec { plans, ..Rule::new("TB", own).spec(keys) };
    let data = Rc::<FakeSharedData>::default();
    Stores::new("test".into(), data, &mut Tables::default()).open(scope, spec)
}

fn admits(store: &mut dyn Store, (caller, plan): (u64, u64), now: Now) -> bool {
    let mut found = store.checked(Account { key: key(caller), plan }, 1, now);
    found.decision() == Decision::NOW && store.charged(&mut found, 0) == Decision::NOW
}

/// A bucket with a debt of 2,000 refuses for nearly 200 seconds at 10 per second, regardless of the
/// number of other callers with states that expire under their own plans.
#[test]
fn full_table_keeps_debt_under_another_plan() {
    for scope in [Scope::Local, Scope::Gateway] {
        let mut store = open(scope, 4);
        assert!((0..2000).all(|_| admits(&mut *store, (1, GOLD), START)));
        let mut now = START;
        for caller in 2..500 {
            now = now.later(SECOND / 4);
            admits(&mut *store, (caller, GOLD), now);
            assert!(!admits(&mut *store, (1, FREE), now), "{scope:?} after {caller} callers");
        }
        let shut = START.later(199 * SECOND);
        assert!(!admits(&mut *store, (1, FREE), shut.later(SECOND / 20)));
        assert!(admits(&mut *store, (1, FREE), shut.later(SECOND / 10)));
    }
}
