//! For any sequence of plans, a caller gets no more than its largest plan permits in that time, and
//! is never refused a request that its current plan admits.

use std::rc::Rc;
use std::sync::Arc;

use diana_algorithm::REGISTRY;
use diana_policy::decision::Decision;
use diana_policy::time::{Now, SECOND};
use diana_policy::{Plan, PlanKind, Plans, Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::plans::{Given, keeps_the_bound_after, random};
use kit::seed;
use kit::store::account;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Decided, Take};

fn spec(rule: &Rule, plans: &Arc<Plans>) -> CounterSpec {
    CounterSpec { plans: Some(plans.clone()), ..rule.spec(100) }
}

pub(super) fn open(scope: Scope, spec: CounterSpec, data: &Rc<FakeSharedData>) -> Box<dyn Store> {
    Stores::new("test".into(), data.clone(), &mut Tables::default()).open(scope, spec)
}

/// When an admitted request leaves.
fn ask(store: &mut dyn Store, plan: usize, cost: u64, now: Now) -> Option<u64> {
    let mut found = store.checked(account(key(1), plan), cost, now);
    let Decision::Admit { wait } = found.decision() else { return None };
    match store.charged(&mut found, wait) {
        Decision::Admit { wait } if found.is_charged() => Some(wait),
        _ => None,
    }
}

/// Workers lease permits and cache refusals, and drop both when a caller's plan changes. Leases of
/// other workers are returned a moment later, and until then the bucket drains at the rate of that
/// plan.
#[test]
fn workers_admit_no_more_than_the_largest_plan() {
    for seed in (0..60).map(|_| seed::next()) {
        for entry in REGISTRY {
            let mut rng = Rng::with_seed(seed);
            println!("{} seed {seed}", entry.short);
            let (rule, plans, quotas) = random(entry, &mut rng);
            let data = Rc::default();
            let mut workers: Vec<_> =
                (0..3).map(|_| open(Scope::Gateway, spec(&rule, &plans), &data)).collect();
            let (mut given, mut now, mut plan, mut tidied) = (Vec::new(), START, 0, START);
            for _ in 0..600 {
                now = now.later(rng.u64(0..=rule.pace().min(1 << 40)));
                if now.mono - tidied.mono > SECOND / 80 {
                    tidied = now;
                    workers.iter_mut().for_each(|worker| _ = worker.maintain(now));
                }
                if rng.u8(0..20) == 0 {
                    plan = rng.usize(0..quotas.len());
                }
                let worker = &mut workers[rng.usize(0..3)];
                if ask(&mut **worker, plan, rule.quota.cost, now).is_some() {
                    given.push(Given { at: now, cost: rule.quota.cost, plan });
                }
            }
            keeps_the_bound_after(SECOND / 5, entry.short, &quotas, &given);
        }
    }
}

/// After the return of all leases, the remaining permits are exactly the unused ones.
#[test]
fn change_of_plan_keeps_exactly_the_usage() {
    for short in ["W", "TB"] {
        for seed in (0..40).map(|_| seed::next()) {
            let mut rng = Rng::with_seed(seed);
            println!("{short} seed {seed}");
            let quota =
                Quota { slowest: Some(40), ..Quota::new(diana_policy::time::Unit::Day, 40) };
            let gold = Quota { rpu: 1000, ..quota };
            let of = vec![Plan { name: "gold".into(), quota: Some(gold), until: None }];
            let plans = Arc::new(Plans {
                own: quota,
                kind: PlanKind::Listed { by: None, of, is_other_unlimited: false },
                month_starts: None,
            });
            let rule = Rule::new(short, quota);
            let data = Rc::default();
            let mut workers: Vec<_> =
                (0..3).map(|_| open(Scope::Gateway, spec(&rule, &plans), &data)).collect();
            let (mut now, mut used) = (START, 0);
            for _ in 0..rng.usize(20..300) {
                now = now.later(1000);
                let worker = &mut workers[rng.usize(0..3)];
                used += u64::from(ask(&mut **worker, 1, 1, now).is_some());
            }
            // A worker first returns its lease when it changes to the other plan.
            let first = rng.usize(0..3);
            used += u64::from(ask(&mut *workers[first], 0, 1, now).is_some());
            for _ in 0..4 {
                now = now.later(SECOND / 10);
                workers.iter_mut().for_each(|worker| _ = worker.maintain(now));
            }
            for (plan, most) in [(1, 1000), (0, 40), (1, 1000)] {
                let worker = &mut workers[rng.usize(0..3)];
                let admits = |_: &u64| ask(&mut **worker, plan, 1, now).is_some();
                let left = (0..1100).take_while(admits).count() as u64;
                assert_eq!(left, most.max(used) - used, "{used} used, {most} allowed");
                used += left;
            }
        }
    }
}
