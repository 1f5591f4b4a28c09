//! What comes back of a charge, however late and whatever plans the caller had meanwhile, is no more than what was not
//! used of it.

use std::rc::Rc;

use diana_core::algorithm::REGISTRY;
use diana_core::policy::{Plan, PlanKind, Plans, Quota, Scope};
use diana_core::settlement::Settlement;
use diana_core::store::{CounterSpec, Store};
use diana_core::time::{Now, SECOND, Unit};
use fastrand::Rng;
use kit::plans::{Given, keeps_the_bound, random};
use kit::seed;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

use super::law::open;

/// A charge that is not settled yet, and the plan that it was made by.
type Open = (usize, Settlement);

#[test]
fn what_is_settled_by_the_plan_that_charged_it_gives_no_more_than_the_largest_plan() {
    for seed in (0..60).map(|_| seed::next()) {
        for (entry, scope) in
            REGISTRY.iter().flat_map(|entry| [(entry, Scope::Local), (entry, Scope::Gateway)])
        {
            let mut rng = Rng::with_seed(seed);
            println!("{} {scope:?} seed {seed}", entry.short);
            let (rule, plans, quotas) = random(entry, &mut rng);
            if !(entry.can)(&rule.quota).settles {
                continue;
            }
            let plans: Option<Rc<Plans>> = Some(plans);
            // As rules do that reserve anything.
            let keeps_used = entry.short == "TB" || rng.bool();
            let spec = CounterSpec { settles: true, keeps_used, plans, ..rule.spec(100) };
            let mut store = open(scope, spec.part(1), &Rc::default());
            let (mut given, mut charged) = (Vec::new(), Vec::<Open>::new());
            let (mut now, mut plan) = (START, 0);
            // Those that last for long are settled when their caller has had another plan for a while.
            let patience = [2, 4, 16][rng.usize(0..3)];
            let (pause, changes) = (rule.pace().min(1 << 40) >> rng.u8(1..5), rng.u8(10..200));
            for _ in 0..600 {
                now = now.later(rng.u64(0..=pause));
                if rng.u8(0..changes) == 0 {
                    plan = rng.usize(0..quotas.len());
                }
                if rng.u8(0..patience) == 0 && !charged.is_empty() {
                    let (by, settlement) = charged.swap_remove(rng.usize(0..charged.len()));
                    store.judge_by(by as u32);
                    assert!(store.settle(key(1), &settlement, now));
                }
                store.judge_by(plan as u32);
                let reserved = rule.quota.cost;
                let mut found = store.check(key(1), reserved, now);
                if !found.decision().is_admitted() {
                    continue;
                }
                if store.charge(&mut found, 0).is_admitted() && found.is_charged() {
                    let used = if rng.u8(0..4) == 0 { 0 } else { rng.u64(0..=reserved) };
                    let receipt = store.receipt(&found);
                    charged.push((plan, Settlement { receipt, since: now.mono, reserved, used }));
                    given.push(Given { at: now, cost: used, plan });
                }
            }
            keeps_the_bound(entry.short, &quotas, &given);
        }
    }
}

/// A bucket of ten that is filled once a minute, and by another plan, `gold`, ten times a second.
fn slow_or_fast(keeps_used: bool) -> CounterSpec {
    let own = Quota {
        burst: Some(10),
        slowest: Some(1),
        fastest: Some(600),
        ..Quota::new(Unit::Minute, 1)
    };
    let gold = Plan { name: "gold".into(), quota: Some(Quota { rpu: 600, ..own }) };
    let plans = Some(Rc::new(Plans { own, kind: PlanKind::Listed { by: None, of: vec![gold] } }));
    let plain = Rule::new("TB", own).spec(100);
    CounterSpec { settles: true, keeps_used, plans, ..plain }.part(1)
}

const OWN: u32 = 0;
const GOLD: u32 = 1;

/// What a charge is known by, if it fits.
fn charge(store: &mut dyn Store, plan: u32, cost: u64, now: Now) -> Option<u64> {
    store.judge_by(plan);
    let mut found = store.check(key(1), cost, now);
    let admits = found.decision().is_admitted() && store.charge(&mut found, 0).is_admitted();
    admits.then(|| store.receipt(&found))
}

/// Others were judged by a faster plan meanwhile, so all that comes back has drained, and been given, already.
#[test]
fn what_drained_by_a_faster_plan_does_not_come_back_by_a_slower_one() {
    for (keeps_used, scope) in [false, true]
        .into_iter()
        .flat_map(|keeps| [Scope::Local, Scope::Gateway].map(|scope| (keeps, scope)))
    {
        let mut store = open(scope, slow_or_fast(keeps_used), &Rc::default());
        let receipt = charge(&mut *store, OWN, 10, START).expect("a full bucket");
        let later = START.later(SECOND);
        assert!(charge(&mut *store, GOLD, 10, later).is_some());
        store.judge_by(OWN);
        let settlement = Settlement { receipt, since: START.mono, reserved: 10, used: 0 };
        assert!(store.settle(key(1), &settlement, later));
        assert!(
            charge(&mut *store, OWN, 5, later).is_none(),
            "{scope:?}, used is kept: {keeps_used}"
        );
    }
}

/// A bucket drains by the plan that its caller has, though a request of its former one is settled.
#[test]
fn what_ends_late_does_not_drain_a_bucket_by_the_plan_that_it_came_by() {
    for (scope, used) in [Scope::Local, Scope::Gateway]
        .into_iter()
        .flat_map(|scope| [0, 1, 2].map(|used| (scope, used)))
    {
        let mut store = open(scope, slow_or_fast(true), &Rc::default());
        let receipt = charge(&mut *store, GOLD, 1, START).expect("a full bucket");
        (0..9).for_each(|_| assert!(charge(&mut *store, OWN, 1, START).is_some()));
        assert_eq!(charge(&mut *store, OWN, 1, START), None);
        let later = START.later(10 * SECOND);
        store.judge_by(GOLD);
        let settlement = Settlement { receipt, since: START.mono, reserved: 1, used };
        assert!(store.settle(key(1), &settlement, later));
        // What was not used comes back.
        let more = (0..20).take_while(|_| charge(&mut *store, OWN, 1, later).is_some()).count();
        assert_eq!(more, usize::from(used == 0), "{scope:?}, {used} used");
    }
}
