//! Slots that a worker keeps as it wrote them last: they spare reads, and decide nothing that others may have changed.

use std::cell::Cell;
use std::rc::Rc;

use diana_core::policy::{Quota, Scope};
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::{SECOND, Unit};
use fastrand::Rng;
use kit::fake::{Asked, FakeSharedData};
use kit::seed;
use kit::store::gateway::{Gateway, START, key, open};
use kit::store::rule::Rule;

fn gateway(short: &str, rpu: u64, keys: usize, workers: usize) -> Gateway {
    let gateway = Gateway::new(Rule::new(short, Quota::new(Unit::Day, rpu)), keys, workers);
    gateway.is_only.set(true);
    gateway
}

/// One request of each caller, all of which are admitted; how often shared data was read for them.
fn reads(gateway: &Gateway, callers: u64) -> u64 {
    let before = gateway.asked.get();
    for caller in 0..callers {
        assert!(gateway.request(0, caller).unwrap().is_admitted());
    }
    gateway.asked.get() - before
}

#[test]
fn callers_whom_nobody_else_charges_are_read_once() {
    for short in ["W", "SW", "TB"] {
        let gateway = gateway(short, 1_000, 10_000, 2);
        assert!(reads(&gateway, 300) >= 300, "{short}");
        for _ in 0..5 {
            // Some share a slot, and those who came first were not in it yet.
            assert!(reads(&gateway, 300) <= 60, "{short}");
        }
        assert_eq!(reads(&gateway, 300), 0, "{short}");
    }
}

#[test]
fn whatever_others_write_and_the_host_tells_all_of_the_limit_is_given_and_no_more() {
    const RPU: u64 = 40;
    let mut rng = Rng::with_seed(seed::next());
    for short in ["W", "TB"] {
        // All callers lie in few slots.
        let gateway = gateway(short, RPU, 20, 3);
        for _ in 0..6_000 {
            gateway.data.behind.set(rng.u32(0..4).saturating_sub(1));
            _ = gateway.request(rng.usize(..3), rng.u64(..20));
        }
        gateway.judge();
        gateway.wait(SECOND);
        for caller in 0..20 {
            let left = (0..3).map(|worker| {
                let admits = || gateway.request(worker, caller).unwrap().is_admitted();
                (0..=RPU).take_while(|_| admits()).count()
            });
            let given = left.sum::<usize>() + gateway.past(caller).len();
            assert!(given >= RPU as usize, "{short}: {given} of {RPU}");
        }
        gateway.judge();
    }
}

/// To write what others have changed is in vain, and costs a fifth of a read. What is kept of other slots is then given up, too.
#[test]
fn nothing_is_kept_for_a_while_where_others_write_the_same() {
    const REQUESTS: u64 = 3_000;
    for (keys, callers) in [(1, 5), (10_000, 300)] {
        let gateway = gateway("TB", 1_000_000, keys, 2);
        let tried = Rc::new(Cell::new(0));
        let count = tried.clone();
        let hook = move |_: &FakeSharedData, _: &str| count.set(count.get() + 1);
        *gateway.data.before_swap.borrow_mut() = Some(Box::new(hook));
        for number in 0..REQUESTS {
            // Callers who come too seldom for a block.
            gateway.pass(SECOND);
            let (worker, caller) = ((number % 2) as usize, number / 2 % callers);
            assert!(gateway.request(worker, caller).unwrap().is_admitted());
        }
        let written: u64 = (0..2).map(|worker| gateway.traffic(worker).writes.get()).sum();
        let in_vain = tried.get() - written;
        assert!(written >= REQUESTS && (2..=40).contains(&in_vain), "{in_vain} of {written}");
        let conflicts: u64 = (0..2).map(|worker| gateway.traffic(worker).conflicts.get()).sum();
        assert_eq!(conflicts, 0, "nobody was faster");
    }
}

#[test]
fn what_is_old_or_too_much_is_not_kept() {
    let gateway = gateway("W", 1_000, 10_000, 1);
    (0..3).for_each(|_| _ = reads(&gateway, 200));
    assert_eq!(reads(&gateway, 200), 0);
    gateway.wait(4 * 60 * SECOND);
    gateway.tidy(0);
    assert_eq!(reads(&gateway, 200), 0, "it is not old");
    gateway.wait(6 * 60 * SECOND);
    gateway.tidy(0);
    assert!(reads(&gateway, 200) >= 150);

    const MANY: u64 = 40_000;
    let crowd = self::gateway("W", 1_000, 16 * 40_000, 1);
    crowd.tidy(0);
    for _ in 0..2 {
        (0..3).for_each(|_| _ = reads(&crowd, MANY));
        let again = reads(&crowd, MANY);
        assert!((MANY / 4..MANY * 3 / 4).contains(&again), "{again}");
        // What is dropped then makes room.
        crowd.wait(6 * 60 * SECOND);
        crowd.tidy(0);
    }
}

/// Another rule may refuse, and then nobody finds out that others have used what is left.
#[test]
fn where_other_rules_have_to_agree_nothing_is_decided_by_what_is_kept() {
    for short in ["W", "SW", "TB"] {
        let rule = Rule::new(short, Quota::new(Unit::Hour, 5));
        let data = Rc::<FakeSharedData>::default();
        let [mut ours, mut theirs] = [(); 2].map(|()| open(&rule, 100, data.clone()).store);
        assert!(ours.take(key(1), 1, START).is_none(), "it is charged");
        let mut now = START;
        for _ in 0..4 {
            now = now.later(SECOND / 5);
            assert!(theirs.take(key(1), 1, now).is_none(), "{short}");
        }
        let (mine, fresh) = (ours.check(key(1), 1, now), theirs.check(key(1), 1, now));
        assert!(!mine.decision().is_admitted(), "{short}");
        assert_eq!((mine.decision(), ours.remaining(&mine)), (fresh.decision(), 0), "{short}");
    }
}

/// A host that does not tell the numbers of what was written has every charge read and written once, and none in vain.
#[test]
fn nothing_is_kept_where_the_host_tells_no_numbers() {
    for short in ["W", "SW", "TB"] {
        let (data, mut tables) = (Rc::<Asked>::default(), Tables::default());
        let rule = Rule::new(short, Quota::new(Unit::Day, 1_000));
        let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
        let mut store = stores.open(Scope::Gateway, rule.spec(1_000));
        let mut charges = |number: u64| {
            let before = (data.reads.get(), data.writes.get());
            // Too seldom for a block.
            assert!(store.take(key(1), 1, START.later(number * SECOND)).is_none());
            (data.reads.get() - before.0, data.writes.get() - before.1)
        };
        charges(0);
        assert!((1..30).all(|number| charges(number) == (1, 1)), "{short}");
    }
}
