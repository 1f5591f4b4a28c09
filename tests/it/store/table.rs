//! The bounded table of a worker, compared with a map without expiry.

mod room;

use std::collections::HashMap;
use std::sync::Arc;

use diana_algorithm::{Algorithm, REGISTRY};
use diana_policy::Quota;
use diana_policy::key::{Key, KeyHasher, Seed};
use diana_policy::time::{Now, Unit};
use diana_store::table::{RowLocation, Table};

const SEED: Seed = Seed { k0: 1, k1: 2 };

fn key(caller: u64) -> Key {
    let mut hasher = KeyHasher::new(&SEED);
    hasher.part(0, &caller.to_le_bytes());
    hasher.finish()
}

fn algorithm(short: &str, quota: Quota) -> Arc<dyn Algorithm> {
    let entry = REGISTRY.iter().find(|entry| entry.short == short).unwrap();
    (entry.build)(&quota).unwrap()
}

fn at(micros: u64) -> Now {
    Now { mono: micros, wall: 1_700_000_000_000_000 + micros }
}

/// One request. Returns whether it was admitted, and the place of its caller.
fn request(
    table: &mut Table,
    algorithm: &dyn Algorithm,
    caller: u64,
    now: Now,
) -> (bool, RowLocation) {
    request_of(table, algorithm, key(caller), now)
}

fn request_of(
    table: &mut Table,
    algorithm: &dyn Algorithm,
    key: Key,
    now: Now,
) -> (bool, RowLocation) {
    let place = table.find(key, now);
    let old = table.state(key, place).to_vec();
    let mut new = old.clone();
    let admitted = algorithm.step(&old, table.no_earlier(now), 0, 1, &mut new).is_admitted();
    if admitted {
        table.swap(key, place, &mut new);
    }
    (admitted, place)
}

#[test]
fn large_table_agrees_with_a_map() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for entry in REGISTRY {
        let algorithm = algorithm(entry.short, Quota::new(Unit::Second, 3));
        let mut table = Table::new(algorithm.clone(), 400);
        let mut map: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut now = 5_000_000;
        for _ in 0..30_000 {
            now += rng.u64(0..20_000);
            let caller = rng.u64(0..2000);
            let old = map.entry(caller).or_insert_with(|| vec![0; algorithm.properties().words]);
            let mut new = old.clone();
            let expected = algorithm.step(old, at(now), 0, 1, &mut new).is_admitted();
            *old = if expected { new } else { old.clone() };
            let (admitted, place) = request(&mut table, &*algorithm, caller, at(now));
            assert_ne!(place, RowLocation::Overflow, "400 rows hold the callers of four seconds");
            assert_eq!(admitted, expected, "{} caller {caller} at {now}", entry.short);
        }
    }
}

#[test]
fn check_uses_no_instant_before_the_watermark() {
    let algorithm = algorithm("W", Quota::new(Unit::Second, 1));
    let mut table = Table::new(algorithm.clone(), 1);
    assert!(request(&mut table, &*algorithm, 1, at(100)).0);
    assert!(request(&mut table, &*algorithm, 2, at(1_000_100)).0, "the row had run out");
    // The wall clock steps back into the window of the dropped state.
    let back = Now { mono: 1_000_200, wall: at(100).wall };
    assert_eq!(table.no_earlier(back).wall, at(1_000_100).wall);
}

#[test]
fn counter_of_all_callers_takes_no_row() {
    let algorithm = algorithm("TB", Quota { burst: Some(1), ..Quota::new(Unit::Second, 1) });
    for rows in [1, 2] {
        let mut table = Table::new(algorithm.clone(), rows);
        assert!(request(&mut table, &*algorithm, 1, at(0)).0);
        assert!(rows == 1 || request(&mut table, &*algorithm, 2, at(900_000)).0);
        // The first row has expired, and a new caller could get it.
        let now = at(1_500_000);
        assert_eq!(table.find(key(3), now), RowLocation::New);
        // The configuration changes to a rule for `all`, and back.
        table.adopt(algorithm.clone(), 1);
        assert!(request_of(&mut table, &*algorithm, Key::ALL, now).0);
        table.adopt(algorithm.clone(), 4);
        assert!(request(&mut table, &*algorithm, 3, now).0);
        assert!(!request_of(&mut table, &*algorithm, Key::ALL, now).0);
    }
}

/// Quota and room change separately, together, or not at all.
#[test]
fn table_uses_the_latest_quota_and_size() {
    // With both quotas a permit is available after a second. With the rate of the other one it
    // would be after an hour, or at once.
    let by = [(Unit::Second, 1), (Unit::Hour, 3600)]
        .map(|(unit, rpu)| algorithm("TB", Quota { burst: Some(1), ..Quota::new(unit, rpu) }));
    let all = [(0, 2), (0, 4), (1, 2), (1, 4)];
    for ((first, less), (last, room)) in all.into_iter().flat_map(|one| all.map(|it| (one, it))) {
        let mut table = Table::new(by[first].clone(), less);
        table.configure(&by[last], room);
        let mut has_row =
            |caller, now| request(&mut table, &*by[last], caller, now).1 != RowLocation::Overflow;
        let rows = (0..6).filter(|caller| has_row(*caller, at(0))).count();
        assert_eq!(rows, room, "{first} {less}, {last} {room}");
        assert!(!has_row(8, at(900_000)), "{first} {less}, {last} {room}");
        assert!(has_row(9, at(2_000_000)), "{first} {less}, {last} {room}");
    }
}
