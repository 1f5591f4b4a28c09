//! What is settled after what its caller used was lifted: it is not given back a second time. For the latest 64 callers
//! that is known exactly, for all others as far as it may be so.

use std::rc::Rc;

use diana_core::policy::{Quota, Scope};
use diana_core::port::SharedData;
use diana_core::settlement::Settlement;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::store::usage::Unliftable;
use diana_core::store::{CounterSpec, Store};
use diana_core::time::{Now, SECOND, Unit};
use kit::fake::FakeSharedData;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

/// Callers whose lifting is remembered.
const CALLERS: u64 = 64;

const LIMIT: u64 = 10;

struct Office {
    store: Box<dyn Store>,
    data: Rc<FakeSharedData>,
}

impl Office {
    fn new(lifts: bool) -> Office {
        let data = Rc::<FakeSharedData>::default();
        let mut tables = Tables::default();
        let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
        stores.lifts = lifts;
        let rule = Rule::new("W", Quota::new(Unit::Day, LIMIT));
        let spec = CounterSpec { settles: true, beside: true, ..rule.spec(1000) };
        Office { store: stores.open(Scope::Gateway, spec), data }
    }

    /// A caller reserves a permit. Under what.
    fn reserve(&mut self, caller: u64, now: Now) -> u64 {
        let mut found = self.store.check(key(caller), 1, now);
        assert!(self.store.charge(&mut found, 0).is_admitted());
        self.store.receipt(&found)
    }

    fn left(&mut self, caller: u64, now: Now) -> u64 {
        self.store.look_at(key(caller), now).unwrap().remaining
    }

    /// What was reserved turns out to be used so often. Permits more that are left then.
    fn settle(&mut self, caller: u64, (receipt, since): (u64, Now), used: u64, now: Now) -> i64 {
        let before = self.left(caller, now);
        let settlement = Settlement { receipt, since: since.mono, reserved: 1, used };
        assert!(self.store.settle(key(caller), &settlement, now));
        self.left(caller, now) as i64 - before as i64
    }
}

fn at(seconds: u64) -> Now {
    START.later(seconds * SECOND)
}

/// Some callers are lifted, one each second; one of them, or one who never was, reserved a permit half a second after a
/// caller was lifted, or before all of them.
#[test]
fn what_was_lifted_is_not_given_back_also_where_that_is_only_known_of_others() {
    for (lifted, settler, since, gives_back) in [
        // Nobody was.
        (0, 1000, 0, true),
        // It was lifted after it reserved, and before.
        (1, 1, 0, false),
        (1, 1, 1, true),
        (3, 2, 1, false),
        (3, 2, 2, true),
        // Others were, who are all remembered.
        (3, 1000, 0, true),
        (CALLERS - 1, 1000, 0, true),
        // Where there is no room for another one nobody knows about those who are not remembered.
        (CALLERS, 1000, 0, false),
        (CALLERS, 1000, 1, true),
        (CALLERS + 1, 1, 0, false),
        (CALLERS + 1, 1000, 1, false),
        (CALLERS + 1, 1000, 2, true),
        (CALLERS + 1, 2, 1, false),
        (CALLERS + 1, 2, 2, true),
        (2 * CALLERS, 1, 0, false),
    ] {
        let mut office = Office::new(true);
        let mut receipt = None;
        for second in 0..=lifted {
            if second > 0 {
                office.store.lift(key(second), at(second)).unwrap();
            }
            if second == since {
                let then = at(second).later(SECOND / 2);
                receipt = Some((office.reserve(settler, then), then));
            }
        }
        let now = at(1000);
        // So that something is charged that could be given back.
        office.reserve(settler, now);
        let wanted = i64::from(gives_back);
        let back = office.settle(settler, receipt.unwrap(), 0, now);
        assert_eq!(back, wanted, "{lifted} were lifted; of {settler}, reserved after {since}");
    }
}

#[test]
fn no_more_callers_are_remembered_than_there_is_room_for_each_once() {
    let mut office = Office::new(true);
    for number in 0..3 * CALLERS {
        let before = office.data.keys().len();
        office.store.lift(key(number / 2), at(number)).unwrap();
        assert!(
            office.data.keys().len() <= before.max(2),
            "nobody was charged, so none is written"
        );
        let name = office.data.keys().into_iter().find(|key| key.ends_with("/lifted")).unwrap();
        let remembered = office.data.get(&name).unwrap().0.len() as u64 / 16;
        assert_eq!(remembered, (number / 2 + 1).min(CALLERS));
    }
}

/// Whoever is forgotten has nothing to get back, and still owes what it used beyond what it reserved.
#[test]
fn who_is_forgotten_is_charged_what_it_owes_and_else_stays_forgotten() {
    for (used, more) in [(0, 0), (1, 0), (2, -1), (5, -4)] {
        let mut office = Office::new(false);
        // Callers lie in numbered slots.
        let is_slot = |key: &String| key.rsplit('/').next().is_some_and(|name| name.contains('.'));
        let settlement = Settlement { receipt: 0, since: START.mono, reserved: 1, used };
        assert!(office.store.settle(key(1), &settlement, START));
        assert_eq!(office.data.keys().iter().any(is_slot), more < 0, "{used}");
        assert_eq!(office.left(1, START) as i64 - LIMIT as i64, more, "{used}");
    }
}

/// For want of room it was counted with others. Once it has room of its own, that is all that is known of it.
#[test]
fn what_was_shared_is_lifted_from_whoever_has_room_by_now() {
    // One permit comes back in a second.
    let quota = Quota::new(Unit::of(LIMIT * SECOND), LIMIT);
    let data = Rc::<FakeSharedData>::default();
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
    stores.lifts = true;
    let store = stores.open(Scope::Gateway, Rule::new("TB", quota).spec(8));
    let mut office = Office { store, data };
    let usage = |office: &mut Office, now| office.store.look_at(key(1), now).unwrap();
    let mut others = 100..;
    while !usage(&mut office, START).is_shared {
        office.reserve(others.next().unwrap(), START);
    }
    (0..LIMIT - 2).for_each(|_| _ = office.reserve(1, START));
    assert_eq!(office.store.lift(key(1), START), Err(Unliftable::Shared));
    // By then the others have nothing that is still counted.
    let later = at(2);
    let known = usage(&mut office, later);
    assert!(!known.is_shared && known.remaining < LIMIT, "{known:?}");
    assert_eq!(office.store.lift(key(1), later), Ok(()));
    assert_eq!(office.left(1, later), LIMIT);
}
