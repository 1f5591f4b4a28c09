//! `share`: without Redis each gateway enforces its part of a limit of the fleet.

use std::cell::Cell;
use std::rc::Rc;

use diana_algorithm::{Entry, REGISTRY};
use diana_policy::Quota;
use diana_policy::decision::Decision;
use diana_policy::time::{Now, Unit};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::oracle::Promise;
use kit::oracle::history::History;
use kit::oracle::oracle;
use kit::seed;
use kit::store::gateway::{START, key};
use kit::store::{Decided, Take, account};

/// A gateway of one worker, with one rule.
struct Gateway {
    known: Rc<Cell<u64>>,
    store: Box<dyn Store>,
}

impl Gateway {
    fn new(entry: &'static Entry, quota: Quota, least: u64) -> Gateway {
        let spec = CounterSpec::new(entry, quota, false).unwrap();
        let spec = CounterSpec { unit_cost: 1, keys: 8, fingerprint: 7, ..spec };
        let mut tables = Tables::default();
        let data = Rc::<FakeSharedData>::default();
        let mut stores = Stores::new("share".into(), data, &mut tables);
        let known = stores.gateways.clone();
        Gateway { known, store: stores.open_share(least, spec) }
    }

    /// The requests of a caller that are admitted until one is refused.
    fn flood(&mut self, now: Now) -> u64 {
        let admitted = (0..10_000).find(|_| self.store.take(key(0), 1, now).is_some());
        admitted.expect("a limit")
    }
}

fn random_quota(entry: &Entry, rng: &mut Rng) -> Quota {
    loop {
        let unit = if rng.bool() { Unit::Second } else { Unit::Minute };
        let mut quota = Quota::new(unit, rng.u64(1..=20));
        let has = |field: &str| entry.keys.iter().any(|key| key.name == field);
        quota.burst = (has("burst") && rng.bool()).then(|| rng.u64(1..=30));
        quota.slices = (has("slices") && rng.bool()).then(|| rng.u64(1..=4));
        quota.max_delay = (has("max_delay") && rng.bool()).then(|| unit.micros());
        quota.max_queue = quota.max_delay.filter(|_| rng.bool()).map(|_| rng.u64(0..=5));
        if (entry.build)(&quota).is_ok() {
            return quota;
        }
    }
}

/// The law: whatever the number of gateways becomes, each of them decides about every request as the oracle does for one part of
/// the limit.
#[test]
fn each_gateway_decides_by_its_part_of_the_limit() {
    let mut rng = Rng::with_seed(seed::next());
    for entry in REGISTRY {
        let oracle = oracle(entry.short);
        let mut changes = 0;
        for _ in 0..500 {
            let (whole, least) = (random_quota(entry, &mut rng), rng.u64(1..=3));
            let mut gateway = Gateway::new(entry, whole, least);
            let mut quota = (entry.share)(&whole, least);
            let (mut now, mut histories) = (START, [History::default(), History::default()]);
            for _ in 0..40 {
                let caller = rng.usize(0..2);
                match rng.u8(0..8) {
                    0 => {
                        histories.iter_mut().for_each(|it| it.change(oracle, &quota, now));
                        gateway.known.set(rng.u64(1..=5));
                        quota = (entry.share)(&whole, gateway.known.get().max(least));
                        changes += 1;
                    }
                    1..=3 => {
                        let [first, last] = histories[caller].edges(oracle, &quota, now, &[1, 2]);
                        let edge = if rng.bool() { first } else { last };
                        now = now.later((edge + rng.u64(0..3)).saturating_sub(1));
                    }
                    _ => {}
                }
                let (history, cost) = (&mut histories[caller], rng.u64(1..=2));
                let promise = history.promise(oracle, &quota, now, cost);
                let mut reservation =
                    gateway.store.checked(account(key(caller as u64), 0), cost, now);
                match reservation.decision() {
                    Decision::Admit { wait } => {
                        let fits =
                            promise == Promise::Either || promise == Promise::Admitted { wait };
                        assert!(fits, "{whole:?} {quota:?}: admitted after {wait}, {promise:?}");
                        let charged = gateway.store.charged(&mut reservation, wait);
                        assert_eq!(charged, Decision::Admit { wait });
                        history.charge(&quota, now, wait, cost);
                    }
                    Decision::Refuse { .. } => {
                        let is_refused = !matches!(promise, Promise::Admitted { .. });
                        assert!(is_refused, "{whole:?} {quota:?}: refused, {promise:?}");
                    }
                }
            }
        }
        assert!(changes > 1_000, "{changes}");
    }
}

/// The bound of a fleet: the limit, one permit less than there are gateways, and the share of a new one until the others know
/// of it.
#[test]
fn fleet_admits_the_limit_and_the_share_of_a_new_gateway() {
    for short in ["W", "SW", "TB"] {
        let entry = diana_algorithm::entry(short).unwrap();
        for (limit, count) in (1..=20).flat_map(|limit| (1..=5).map(move |count| (limit, count))) {
            let quota = Quota::new(Unit::Day, limit);
            let open = |_| Gateway::new(entry, quota, 1);
            let know = |gateways: &[Gateway], number: u64| {
                gateways.iter().for_each(|gateway| gateway.known.set(number));
            };
            let flood = |gateways: &mut [Gateway]| -> u64 {
                gateways.iter_mut().map(|gateway| gateway.flood(START)).sum()
            };
            let part = |count: u64| limit.div_ceil(count);
            let mut gateways: Vec<Gateway> = (0..count).map(open).collect();
            know(&gateways, count);
            let mut admitted = flood(&mut gateways);
            assert_eq!(admitted, count * part(count), "{short} {limit} of {count}");
            assert!((limit..limit + count).contains(&admitted));
            // A pod appears, and knows of itself before the others do.
            gateways.push(open(count));
            know(&gateways[count as usize..], count + 1);
            admitted += flood(&mut gateways);
            assert_eq!(admitted, count * part(count) + part(count + 1));
            know(&gateways, count + 1);
            assert_eq!(flood(&mut gateways), 0);
            // Two pods go: the others have more at once.
            gateways.truncate(count as usize - 1);
            know(&gateways, count - 1);
            let more = flood(&mut gateways);
            assert_eq!(more, (count - 1) * (part((count - 1).max(1)) - part(count)));
        }
    }
}
