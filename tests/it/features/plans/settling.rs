//! A settlement returns at most the unused part of its charge, for any delay and any changes of
//! plan.

use std::rc::Rc;
use std::sync::Arc;

use diana_algorithm::REGISTRY;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Plan, PlanKind, Plans, Quota, Scope};
use diana_store::CounterSpec;
use fastrand::Rng;
use kit::plans::{Given, keeps_the_bound, random};
use kit::seed;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Decided, Take};
use kit::store::{account, ended};

use super::law::open;

/// An open charge with its plan.
type Open = (usize, Settlement);

#[test]
fn settlement_admits_no_more_than_the_largest_plan() {
    for seed in (0..60).map(|_| seed::next()) {
        for (entry, scope) in
            REGISTRY.iter().flat_map(|entry| [(entry, Scope::Local), (entry, Scope::Gateway)])
        {
            let mut rng = Rng::with_seed(seed);
            println!("{} {scope:?} seed {seed}", entry.short);
            let (rule, plans, quotas) = random(entry, &mut rng);
            if !(entry.capabilities)(&rule.quota).settles {
                continue;
            }
            let plans: Option<Arc<Plans>> = Some(plans);
            // As for rules with a reservation.
            let keeps_used = rng.bool();
            let spec = CounterSpec { settles: true, keeps_used, plans, ..rule.spec(100) };
            let mut store = open(scope, spec.share(1), &Rc::default());
            let (mut given, mut charged) = (Vec::new(), Vec::<Open>::new());
            let (mut now, mut plan) = (START, 0);
            // Long requests are settled after their caller has had another plan for a while.
            let patience = [2, 4, 16][rng.usize(0..3)];
            let (pause, changes) = (rule.pace().min(1 << 40) >> rng.u8(1..5), rng.u8(10..200));
            for _ in 0..600 {
                now = now.later(rng.u64(0..=pause));
                if rng.u8(0..changes) == 0 {
                    plan = rng.usize(0..quotas.len());
                }
                if rng.u8(0..patience) == 0 && !charged.is_empty() {
                    let (by, settlement) = charged.swap_remove(rng.usize(0..charged.len()));
                    assert!(store.settle(&ended(account(key(1), by), &settlement), now));
                }
                let reserved = rule.quota.cost;
                let mut found = store.checked(account(key(1), plan), reserved, now);
                if !found.decision().is_admitted() {
                    continue;
                }
                if store.charged(&mut found, 0).is_admitted() && found.is_charged() {
                    let used = if rng.u8(0..4) == 0 { 0 } else { rng.u64(0..=reserved) };
                    let receipt = found.receipt.unwrap();
                    charged.push((plan, Settlement { receipt, since: now.mono, reserved, used }));
                    given.push(Given { at: now, cost: used, plan });
                }
            }
            keeps_the_bound(entry.short, &quotas, &given);
        }
    }
}

/// Another rule refuses a request, and this rule's charge is cancelled. By then a faster plan has
/// drained the whole charge, and granted it again.
#[test]
fn cancel_returns_nothing_that_a_faster_plan_drained() {
    const OWN: usize = 0;
    const GOLD: usize = 1;
    // Ten permits that are refilled once a minute, and under the other plan ten times a second.
    let own = Quota {
        burst: Some(10),
        slowest: Some(1),
        fastest: Some(600),
        ..Quota::new(Unit::Minute, 1)
    };
    let gold = Plan { name: "gold".into(), quota: Some(Quota { rpu: 600, ..own }), until: None };
    let plans = Some(Arc::new(Plans {
        own,
        kind: PlanKind::Listed { by: None, of: vec![gold], is_other_unlimited: false },
        month_starts: None,
    }));
    let spec =
        CounterSpec { may_be_cancelled: true, plans, ..Rule::new("TB", own).spec(100) }.share(1);
    let mut store = open(Scope::Gateway, spec, &Rc::default());
    let mut charge = |plan: usize, cost: u64, now: Now| {
        let mut found = store.checked(account(key(1), plan), cost, now);
        (store.charged(&mut found, 0).is_admitted(), found)
    };
    let (is_full, mut undone) = charge(OWN, 10, START);
    let later = START.later(SECOND);
    let (is_refilled, _) = charge(GOLD, 10, later);
    assert!(is_full && is_refilled);
    store.cancel(&mut undone);
    assert!(!store.checked(account(key(1), OWN), 1, later).decision().is_admitted());
}
