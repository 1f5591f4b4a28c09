//! What comes back of a charge, however late and whatever plans the caller had meanwhile, is no more than what was not
//! used of it.

use std::rc::Rc;

use diana_core::algorithm::REGISTRY;
use diana_core::policy::{Plan, PlanKind, Plans, Quota, Scope};
use diana_core::settlement::Settlement;
use diana_core::store::{CounterSpec, Store};
use diana_core::time::{Now, SECOND, Unit};
use fastrand::Rng;
use kit::seed;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

use super::law::{Given, keeps_the_bound, open, random};

/// A charge that is not settled yet, and the plan that it was made by.
type Open = (usize, Settlement);

#[test]
fn what_is_settled_by_the_plan_that_charged_it_gives_no_more_than_the_largest_plan() {
    for seed in (0..60).map(|_| seed::fresh()) {
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
            let keeps_used = rng.bool();
            let spec = CounterSpec { settles: true, keeps_used, plans, ..rule.spec(100) };
            let mut store = open(scope, spec.part(1), &Rc::default());
            let (mut given, mut charged) = (Vec::new(), Vec::<Open>::new());
            let (mut now, mut plan) = (START, 0);
            for _ in 0..600 {
                now = now.later(rng.u64(0..=rule.pace().min(1 << 40) / 2));
                if rng.u8(0..20) == 0 {
                    plan = rng.usize(0..quotas.len());
                }
                if rng.u8(0..4) > 0 && !charged.is_empty() {
                    let (by, settlement) = charged.swap_remove(rng.usize(0..charged.len()));
                    store.judge_by(by as u32);
                    assert!(store.settle(key(1), &settlement, now));
                    // Until then the bucket drains by that plan.
                    given.push(Given { at: now, cost: 0, plan: by });
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

/// Others were judged by a faster plan meanwhile, so all that comes back has drained, and been given, already.
#[test]
fn what_drained_by_a_faster_plan_does_not_come_back_by_a_slower_one() {
    let common = Quota {
        burst: Some(10),
        slowest: Some(1),
        fastest: Some(600),
        ..Quota::new(Unit::Minute, 1)
    };
    let gold = Plan { name: "gold".into(), quota: Some(Quota { rpu: 600, ..common }) };
    let kind = PlanKind::Listed { by: None, of: vec![gold] };
    let plans = Rc::new(Plans { own: common, kind });
    for (keeps_used, scope) in [false, true]
        .into_iter()
        .flat_map(|keeps| [Scope::Local, Scope::Gateway].map(|scope| (keeps, scope)))
    {
        let plans = Some(plans.clone());
        let spec =
            CounterSpec { settles: true, keeps_used, plans, ..Rule::new("TB", common).spec(100) };
        let mut store = open(scope, spec.part(1), &Rc::default());
        let charge = |store: &mut dyn Store, (plan, cost): (u32, u64), now: Now| {
            store.judge_by(plan);
            let mut found = store.check(key(1), cost, now);
            let admits =
                found.decision().is_admitted() && store.charge(&mut found, 0).is_admitted();
            admits.then(|| store.receipt(&found))
        };
        let receipt = charge(&mut *store, (0, 10), START).expect("a full bucket");
        let later = START.later(SECOND);
        assert!(charge(&mut *store, (1, 10), later).is_some());
        store.judge_by(0);
        let settlement = Settlement { receipt, since: START.mono, reserved: 10, used: 0 };
        assert!(store.settle(key(1), &settlement, later));
        assert!(
            charge(&mut *store, (0, 5), later).is_none(),
            "{scope:?}, used is kept: {keeps_used}"
        );
    }
}
