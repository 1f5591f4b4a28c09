//! What rules leave in shared data when they end: it goes, and nobody gets anything by that.

use std::rc::Rc;

use diana_core::algorithm::REGISTRY;
use diana_core::decision::Decision;
use diana_core::policy::{Ban, Scope};
use diana_core::port::SharedData;
use diana_core::store::Store;
use diana_core::store::remains::Remains;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::{Now, SECOND};
use fastrand::Rng;
use kit::fake::FakeSharedData;

use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

const KEYS: usize = 200;

fn stores(data: &Rc<FakeSharedData>, rule: &Rule) -> Box<dyn Store> {
    let mut tables = Tables::default();
    let mut stores = Stores::new("shop".into(), data.clone(), &mut tables);
    stores.open(Scope::Gateway, rule.spec(KEYS))
}

fn remains(data: &Rc<FakeSharedData>, rule: &Rule, now: Now) -> Remains {
    let fingerprint = rule.spec(KEYS).fingerprint;
    Remains::of_callers("shop".into(), data.clone(), fingerprint, rule.algorithm.clone(), now.mono)
}

fn bytes(data: &FakeSharedData) -> usize {
    data.keys().iter().map(|key| data.get(key).unwrap().0.len()).sum()
}

fn later(now: Now, ticks: u64) -> Now {
    Now { mono: now.mono.saturating_add(ticks), wall: now.wall.saturating_add(ticks) }
}

/// Works until there is nothing more to do, or no end of it is seen. When it was over.
fn work_off(mut remains: Remains, mut now: Now) -> Now {
    for _ in 0..1_000 {
        now = later(now, remains.due().saturating_sub(now.mono));
        if !remains.work(now) {
            return now;
        }
    }
    panic!("it goes on for ever");
}

fn send(store: &mut dyn Store, caller: u64, now: Now) -> Decision {
    let mut reservation = store.check(key(caller), 1, now);
    match reservation.decision() {
        Decision::Admit { wait } => store.charge(&mut reservation, wait),
        refusal => refusal,
    }
}

#[test]
fn what_a_rule_left_goes_when_it_has_run_out_and_not_before() {
    let mut rng = Rng::with_seed(kit::seed::fresh());
    for _ in 0..40 {
        let rule = Rule::random(&REGISTRY[rng.usize(..REGISTRY.len())], &mut rng);
        let data = Rc::new(FakeSharedData::default());
        let mut store = stores(&data, &rule);
        // So many that some share buckets.
        for caller in 0..2_000 {
            send(&mut *store, caller, START);
        }
        store.close(START);
        let (full, keys) = (bytes(&data), data.keys());
        // Some rules admit nobody.
        let Some(mut left) = remains(&data, &rule, START).if_there() else { continue };
        let early = later(START, left.due() - START.mono - 1);
        assert!(left.work(early) && bytes(&data) == full);
        work_off(left, START);
        assert_eq!(data.keys(), keys, "none comes, and none goes");
        // A slot's head, the record of how many there are.
        assert!(bytes(&data) <= keys.len() * 32 + 8, "{} of {full} {:?}", bytes(&data), rule.quota);
    }
}

/// Decisions are the same whether or not somebody believes, in error, that the rule has ended.
#[test]
fn who_still_has_the_rule_loses_and_gains_nothing() {
    let mut rng = Rng::with_seed(kit::seed::fresh());
    for _ in 0..60 {
        let rule = Rule::random(&REGISTRY[rng.usize(..REGISTRY.len())], &mut rng);
        // A bucket may take longer to fill than clocks can tell.
        let unit = rule.algorithm.policy().1.min(3_600 * 24 * 400 * SECOND);
        let (cleared, left_alone) = (Rc::default(), Rc::default());
        let mut one = stores(&cleared, &rule);
        let mut other = stores(&left_alone, &rule);
        let mut now = START;
        // As if it had ended long ago.
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
fn bans_go_when_they_are_over_and_forgotten() {
    let ban = Ban {
        after: 3,
        within: 10 * SECOND,
        period: 60 * SECOND,
        max: 600 * SECOND,
        halve_after: 60 * SECOND,
    };
    let data = Rc::new(FakeSharedData::default());
    let mut tables = Tables::default();
    let mut stores = Stores::new("shop".into(), data.clone(), &mut tables);
    let mut bans = stores.open_bans(Scope::Gateway, ban, 7, KEYS);
    for caller in 0..100 {
        (0..3).for_each(|_| bans.refused(key(caller), START.mono));
    }
    let banned = |bans: &mut dyn diana_core::store::bans::Bans, now: Now| {
        (0..100).filter(|caller| bans.left(key(*caller), now.mono) > 0).count()
    };
    assert!(banned(&mut *bans, later(START, SECOND)) > 50);
    let full = bytes(&data);
    let of_bans = |now: u64| Remains::of_bans("shop".into(), data.clone(), 7, ban, now);
    // Somebody takes them for those of a rule that ended long ago.
    let mut early = of_bans(0);
    (0..20).for_each(|n| assert!(early.work(later(START, SECOND * n)) || n > 0));
    assert_eq!(bytes(&data), full);
    let over = work_off(of_bans(START.mono), START);
    assert!(bytes(&data) <= 64, "{} of {full}", bytes(&data));
    assert_eq!(banned(&mut *bans, over), 0);
}
