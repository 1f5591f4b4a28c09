//! Resets in a gateway of several workers, for rules with plans and settlement.

use std::rc::Rc;
use std::sync::Arc;

use diana_algorithm::REGISTRY;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, Unit};
use diana_policy::{Plan, PlanKind, Plans, Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::plans::random;
use kit::plans::resets::{Counter, Left, Tally, follow};
use kit::seed;
use kit::store::Take;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{account, ended};

fn workers(spec: &CounterSpec) -> Vec<Box<dyn Store>> {
    let data = Rc::<FakeSharedData>::default();
    let open = |_| {
        let mut tables = Tables::default();
        let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
        stores.resets_bans = true;
        stores.open(Scope::Gateway, spec.clone())
    };
    (0..3).map(open).collect()
}

/// Workers of one gateway. A random one executes the next operation.
struct Workers(Vec<Box<dyn Store>>, Rng);

impl Workers {
    fn any(&mut self) -> &mut dyn Store {
        &mut *self.0[self.1.usize(0..3)]
    }
}

impl Counter for Workers {
    fn charge(&mut self, plan: usize, cost: u64, now: Now) -> Option<u64> {
        let store = self.any();
        let mut found = store.checked(account(key(1), plan), cost, now);
        let is_charged = store.charged(&mut found, 0).is_admitted() && found.is_charged();
        found.receipt.filter(|_| is_charged)
    }

    fn settle(&mut self, plan: usize, settlement: &Settlement, now: Now) {
        assert!(self.any().settle(&ended(account(key(1), plan), settlement), now));
    }

    fn reset(&mut self, plan: usize, now: Now) -> Left {
        self.any().usage(account(key(1), plan), true, now).unwrap();
        let seen = self.any().usage(account(key(1), plan), false, now).unwrap();
        Left { used: seen.used, reserved: seen.reserved }
    }
}

#[test]
fn reset_keeps_reservations_of_every_plan() {
    let mut all = Tally::default();
    for seed in (0..60).map(|_| seed::next()) {
        for entry in REGISTRY {
            let mut rng = Rng::with_seed(seed);
            let (rule, plans, quotas) = random(entry, &mut rng);
            if !(entry.capabilities)(&rule.quota).settles {
                continue;
            }
            println!("{} seed {seed}", entry.short);
            let plans: Option<Arc<Plans>> = Some(plans);
            let plain = rule.spec(100);
            let spec = CounterSpec {
                settles: true,
                keeps_used: true,
                may_be_cancelled: true,
                plans,
                ..plain
            };
            let mut workers = Workers(workers(&spec.share(1)), rng.fork());
            let tally = follow(entry, &quotas, &mut workers, START, 500, &mut rng);
            all.resets += tally.resets;
            all.refused += tally.refused;
            all.late += tally.late;
            all.debts += tally.debts;
        }
    }
    println!("{all:?}");
    assert!(all.resets > 500 && all.refused > 500 && all.late > 500 && all.debts > 500, "too tame");
}

/// The worker that resets need not know the plan of the leases.
#[test]
fn reset_keeps_leases_beyond_the_limit_of_the_rule() {
    for short in ["W", "SW", "TB"] {
        let own = Quota { fastest: Some(1000), slowest: Some(10), ..Quota::new(Unit::Day, 10) };
        let gold =
            Plan { name: "gold".into(), quota: Some(Quota { rpu: 1000, ..own }), until: None };
        let kind = PlanKind::Listed { by: None, of: vec![gold], is_other_unlimited: false };
        let plans = Some(Arc::new(Plans { own, kind, month_starts: None }));
        let spec = CounterSpec { plans, ..Rule::new(short, own).spec(100) };
        let mut stores = workers(&spec);
        for now in (0..200).map(|step| START.later(100 * step)) {
            for store in &mut stores {
                let mut found = store.checked(account(key(1), 1), 1, now);
                assert!(store.charged(&mut found, 0).is_admitted(), "{short}");
            }
        }
        let now = START.later(200 * 100);
        let lent = stores[0].usage(account(key(1), 1), false, now).unwrap().leased;
        assert!(lent > 20, "{short}: only {lent} lent");
        stores[0].usage(account(key(1), 0), true, now).unwrap();
        let seen = stores[0].usage(account(key(1), 1), false, now).unwrap();
        assert_eq!((seen.used, seen.remaining, seen.leased), (0, 1000 - lent, lent), "{short}");
    }
}
