//! Removed rules are cleared from shared data, and no caller gains permits by that.

use std::rc::Rc;

use diana_algorithm::REGISTRY;
use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Ban, Quota, Scope};
use diana_store::Store;
use diana_store::bans::Bans;
use diana_store::reclaimer::SlotReclaimer;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use fastrand::Rng;
use kit::bans::Calls;
use kit::fake::{CountingData, FakeSharedData};
use kit::store::{Decided, Take};

use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

const KEYS: usize = 200;

const BAN: Ban = Ban {
    after: 3,
    within: 10 * SECOND,
    period: 60 * SECOND,
    max: 600 * SECOND,
    halve_after: 60 * SECOND,
    is_shadow: false,
};

fn stores(data: &Rc<FakeSharedData>, rule: &Rule) -> Box<dyn Store> {
    let mut tables = Tables::default();
    let mut stores = Stores::new("shop".into(), data.clone(), &mut tables);
    stores.open(Scope::Gateway, rule.spec(KEYS))
}

fn remains(data: &Rc<FakeSharedData>, rule: &Rule, now: Now) -> SlotReclaimer {
    let fingerprint = rule.spec(KEYS).fingerprint;
    SlotReclaimer::of_callers(
        "shop".into(),
        data.clone(),
        fingerprint,
        rule.algorithm.clone(),
        now.mono,
    )
}

fn bytes(data: &FakeSharedData) -> usize {
    data.keys().iter().map(|key| data.get(key).unwrap().0.len()).sum()
}

fn later(now: Now, ticks: u64) -> Now {
    Now { mono: now.mono.saturating_add(ticks), wall: now.wall.saturating_add(ticks) }
}

/// Works until it is finished, or fails if it does not end. Returns the time.
fn work_off(mut remains: SlotReclaimer, mut now: Now) -> Now {
    for _ in 0..1_000 {
        now = later(now, remains.due().saturating_sub(now.mono));
        if !remains.work(now) {
            return now;
        }
    }
    panic!("it goes on for ever");
}

fn send(store: &mut dyn Store, caller: u64, now: Now) -> Decision {
    charge(store, key(caller), now)
}

fn charge(store: &mut dyn Store, caller: Key, now: Now) -> Decision {
    let mut reservation = store.checked(caller.into(), 1, now);
    match reservation.decision() {
        Decision::Admit { wait } => store.charged(&mut reservation, wait),
        refusal => refusal,
    }
}

#[test]
fn removed_rule_is_cleared_after_expiry() {
    let mut rng = Rng::with_seed(kit::seed::next());
    for _ in 0..40 {
        let rule = Rule::random(&REGISTRY[rng.usize(..REGISTRY.len())], &mut rng);
        let data = Rc::new(FakeSharedData::default());
        let mut store = stores(&data, &rule);
        // Enough callers to share buckets.
        for caller in 0..2_000 {
            send(&mut *store, caller, START);
        }
        store.close(START);
        let (full, keys) = (bytes(&data), data.keys());
        // Some rules admit no request.
        let Some(mut left) = remains(&data, &rule, START).if_present() else {
            assert!(keys.is_empty(), "{keys:?}");
            continue;
        };
        let early = later(START, left.due() - START.mono - 1);
        assert!(left.work(early) && bytes(&data) == full);
        work_off(left, START);
        assert_eq!(data.keys(), keys, "none comes, and none goes");
        // The head of each slot, and the number of slots.
        assert!(bytes(&data) <= keys.len() * 32 + 8, "{} of {full} {:?}", bytes(&data), rule.quota);
    }
}

/// Decisions do not change if another worker takes the rule as removed by mistake.
#[test]
fn clearing_by_mistake_changes_no_decision() {
    let mut rng = Rng::with_seed(kit::seed::next());
    for _ in 0..60 {
        let rule = Rule::random(&REGISTRY[rng.usize(..REGISTRY.len())], &mut rng);
        // A bucket may take longer to fill than clocks can represent.
        let unit = rule.algorithm.properties().window.min(3_600 * 24 * 400 * SECOND);
        let (cleared, left_alone) = (Rc::default(), Rc::default());
        let mut one = stores(&cleared, &rule);
        let mut other = stores(&left_alone, &rule);
        let mut now = START;
        // As if it had been removed long ago.
        let ended = Now { mono: 0, wall: 0 };
        let mut left = remains(&cleared, &rule, ended);
        for step in 0..600 {
            now = later(now, rng.u64(..unit / 20 + 2));
            let caller = rng.u64(..40);
            assert_eq!(
                send(&mut *one, caller, now),
                send(&mut *other, caller, now),
                "step {step}: {} {:?}",
                rule.short,
                rule.quota
            );
            if rng.u8(..4) == 0 && !left.work(now) {
                left = remains(&cleared, &rule, ended);
            }
        }
    }
}

#[test]
fn expired_bans_are_cleared() {
    let data = Rc::new(FakeSharedData::default());
    let mut tables = Tables::default();
    let mut stores = Stores::new("shop".into(), data.clone(), &mut tables);
    let mut bans = Bans::new(BAN, Scope::Gateway, 7, KEYS, None, &mut stores);
    for caller in 0..100 {
        (0..3).for_each(|_| bans.refused(key(caller), START.mono));
    }
    let mut banned = |now: Now| {
        let is_banned = |caller: &u64| bans.left(key(*caller), now.mono) > 0;
        (0..100).filter(is_banned).count()
    };
    assert!(banned(later(START, SECOND)) > 50);
    let full = bytes(&data);
    let of_bans = |now: u64| SlotReclaimer::of_bans("shop".into(), data.clone(), 7, BAN, now);
    // A worker takes them for those of a rule that was removed long ago.
    let mut early = of_bans(0);
    (0..20).for_each(|n| assert!(early.work(later(START, SECOND * n)) || n > 0));
    assert_eq!(bytes(&data), full);
    let over = work_off(of_bans(START.mono), START);
    assert!(bytes(&data) <= 64, "{} of {full}", bytes(&data));
    assert_eq!(banned(over), 0);
}

/// A rule of one permit a minute. All of its state expires within 62 seconds: a window, and two
/// seconds for leases.
fn minutely() -> Rule {
    Rule::new("W", Quota::new(Unit::Minute, 1))
}

const OVER: u64 = 62 * SECOND;

#[test]
fn values_are_read_once_when_due_in_small_portions() {
    let rule = minutely();
    let shared = Rc::new(CountingData::default());
    let mut tables = Tables::default();
    let mut stores = Stores::new("shop".into(), shared.clone(), &mut tables);
    // 200 slots, 64 of buckets, and one of the counter of all callers.
    let mut store = stores.open(Scope::Gateway, rule.spec(3_200));
    (0..500).for_each(|caller| _ = send(&mut *store, caller, START));
    let (namespace, algorithm) = ("shop".into(), rule.algorithm.clone());
    let fingerprint = rule.spec(1).fingerprint;
    let mut left =
        SlotReclaimer::of_callers(namespace, shared.clone(), fingerprint, algorithm, START.mono);
    assert_eq!(left.due(), START.mono + OVER);
    let before = shared.reads.get();
    assert!(left.work(later(START, OVER - 1)));
    assert_eq!(shared.reads.get(), before);
    let mut now = later(START, OVER);
    let mut reads = Vec::new();
    loop {
        let before = shared.reads.get();
        let more = left.work(now);
        reads.push(shared.reads.get() - before);
        if !more {
            break;
        }
        assert_eq!(left.due(), now.mono + SECOND / 100);
        now = later(now, SECOND / 100);
    }
    // The first pass also reads the number of slots.
    assert_eq!(reads, [65, 64, 64, 64, 9]);
}

/// Checks all values once. Returns true if another pass is necessary.
fn pass(left: &mut SlotReclaimer, now: &mut Now) -> bool {
    loop {
        let more = left.work(*now);
        let pause = left.due().saturating_sub(now.mono);
        if !more || pause > SECOND {
            return more;
        }
        *now = later(*now, pause);
    }
}

/// A worker without the new configuration, and one that takes over the values.
#[test]
fn live_value_is_read_again_at_most_twice() {
    for (passes, caller) in (1..=5).flat_map(|passes| [(passes, key(1)), (passes, Key::ALL)]) {
        let rule = minutely();
        let data = Rc::new(FakeSharedData::default());
        let mut store = stores(&data, &rule);
        let mut left = remains(&data, &rule, Now { mono: START.mono - OVER, ..START });
        let mut now = START;
        let mut done = 0;
        loop {
            if done + 1 < passes {
                assert!(charge(&mut *store, caller, now).is_admitted());
            }
            let full = bytes(&data);
            let more = pass(&mut left, &mut now);
            done += 1;
            assert_eq!(bytes(&data) < full, done == passes && passes > 1);
            if !more {
                break;
            }
            assert_eq!(left.due(), now.mono + OVER);
            now = later(now, OVER);
        }
        assert_eq!(done, passes.min(3));
    }
}

#[test]
fn concurrent_write_is_not_cleared() {
    let rule = minutely();
    let data = Rc::new(FakeSharedData::default());
    let mut store = stores(&data, &rule);
    assert!(send(&mut *store, 1, START).is_admitted());
    let mut now = later(START, OVER);
    let mut left = remains(&data, &rule, START);
    let mut other = Some(stores(&data, &rule));
    *data.before_swap.borrow_mut() = Some(Box::new(move |_, _| {
        if let Some(mut other) = other.take() {
            assert!(send(&mut *other, 1, now).is_admitted());
        }
    }));
    assert!(pass(&mut left, &mut now), "it is looked at again");
    assert!(!send(&mut *stores(&data, &rule), 1, now).is_admitted());
    let full = bytes(&data);
    now = later(now, OVER);
    assert!(!pass(&mut left, &mut now));
    assert!(bytes(&data) < full);
}

#[test]
fn cleanup_covers_one_rule_of_one_namespace() {
    let rule = minutely();
    let data = Rc::new(FakeSharedData::default());
    let of = |namespace: &str, fingerprint| {
        let algorithm = rule.algorithm.clone();
        SlotReclaimer::of_callers(
            namespace.into(),
            data.clone(),
            fingerprint,
            algorithm,
            START.mono,
        )
    };
    let mine = of("shop", 7);
    assert!(mine.is_of(&of("shop", 7)));
    assert!(!mine.is_of(&of("shop", 8)) && !mine.is_of(&of("bank", 7)));
    assert!(mine.if_present().is_none());
    // Single callers, and the counter of all callers, which has no number of slots.
    for caller in [key(1), Key::ALL] {
        data.clear();
        let mut store = stores(&data, &rule);
        let mut reservation = store.checked(caller.into(), 1, START);
        assert!(store.charged(&mut reservation, 0).is_admitted());
        let there =
            |namespace: &str, fingerprint| of(namespace, fingerprint).if_present().is_some();
        assert!(there("shop", 7) && !there("shop", 8) && !there("bank", 7), "{caller:?}");
    }
}

/// A single refusal may still lead to a ban. Values that are not sets of bans belong to others.
#[test]
fn live_bans_and_foreign_values_are_kept() {
    let data = Rc::new(FakeSharedData::default());
    let mut tables = Tables::default();
    let mut stores = Stores::new("shop".into(), data.clone(), &mut tables);
    let mut bans = Bans::new(BAN, Scope::Gateway, 7, 1, None, &mut stores);
    bans.refused(key(1), START.mono);
    bans.maintain_at(START.mono);
    let set = data.keys().into_iter().find(|key| key.contains('.')).unwrap();
    let value = || data.get(&set).unwrap().0;
    let of_bans = |now: u64| SlotReclaimer::of_bans("shop".into(), data.clone(), 7, BAN, now);
    let before = value();
    assert!(pass(&mut of_bans(0), &mut later(START, SECOND)));
    assert_eq!(value(), before);
    data.set(&set, b"foreign");
    work_off(of_bans(START.mono), START);
    assert_eq!(value(), b"foreign");
}
