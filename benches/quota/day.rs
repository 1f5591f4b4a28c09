//! A day on which every account uses up its permits, and some arrive late.

use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use diana_algorithm::fixed_window;
use diana_policy::bloom::Shape;
use diana_policy::key::Key;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store};
use kit::fake::FakeSharedData;

const NOON: Now = Now { mono: 50_000 * SECOND, wall: 20_000 * 86_400 * SECOND + 43_200 * SECOND };

/// The results.
pub struct Day {
    /// The share of accounts that were refused although they had permits left.
    pub early: f64,
    /// The share of those among accounts that arrived after all others had used up their permits.
    pub late: f64,
    /// Permits beyond the limits of accounts.
    pub extra: u64,
    /// Per account.
    pub bytes: f64,
    /// For a check and its charge, with accounts in random order.
    pub nanoseconds: f64,
}

impl Day {
    pub fn measure(accounts: u64, permits: u64, error: u64) -> Day {
        let empty = allocator::bytes();
        let mut store = open(accounts, permits, error);
        let mut given = vec![0_u64; accounts as usize];
        // Each account makes one request more than its permits, in rounds of different orders.
        let nanoseconds = median_of_batches(accounts, permits, |account| {
            let admitted = admits(&mut *store, key(account));
            given[account as usize] += u64::from(admitted);
        });
        let extra = given.iter().map(|given| given.saturating_sub(permits)).sum();
        let early = given.iter().filter(|given| **given < permits).count() as f64;
        let bytes = allocator::bytes() - empty - 8 * accounts;
        let strangers = accounts..accounts + 1_000_000;
        let late = strangers.filter(|account| !is_admitted(&mut *store, key(*account))).count();
        Day {
            early: early / accounts as f64,
            late: late as f64 / 1e6,
            extra,
            bytes: bytes as f64 / accounts as f64,
            nanoseconds,
        }
    }
}

/// The store of a limiter.
fn open(accounts: u64, permits: u64, error: u64) -> Box<dyn Store> {
    let quota = Quota::new(Unit::Day, permits);
    let algorithm = (fixed_window::ENTRY.build)(&quota).unwrap_or_else(|why| panic!("{why:?}"));
    let daily = Some(Shape::new(accounts, error, permits));
    let spec = CounterSpec {
        settles: false,
        checks: false,
        on_failure: None,
        keeps_used: false,
        plans: None,
        gateways: 1,
        entry: &fixed_window::ENTRY,
        quota,
        algorithm,
        unit_cost: 1,
        fingerprint: 1,
        keys: 1,
        lines: diana_store::stores::lines(1),
        daily,
        beside: false,
    };
    let mut tables = Tables::default();
    let mut stores = Stores::new("bench".into(), Rc::new(FakeSharedData::default()), &mut tables);
    stores.open(Scope::Local, spec)
}

fn is_admitted(store: &mut dyn Store, key: Key) -> bool {
    store.check(key, 1, NOON).decision().is_admitted()
}

fn admits(store: &mut dyn Store, key: Key) -> bool {
    let mut reservation = store.check(key, 1, NOON);
    let admitted =
        reservation.decision().is_admitted() && store.charge(&mut reservation, 0).is_admitted();
    black_box(admitted)
}

/// Calls `come` with each account in rounds, one round more than its permits, in different orders.
/// Returns the nanoseconds per account in the median of all batches except those of the last round,
/// which has less work. Most batches are so short that they are not disturbed.
pub fn median_of_batches(accounts: u64, permits: u64, mut come: impl FnMut(u64)) -> f64 {
    const BATCH: u64 = 500;
    let mut times = Vec::new();
    for round in 0..=permits {
        for first in (0..accounts).step_by(BATCH as usize) {
            let start = Instant::now();
            (first..first + BATCH).for_each(|place| come(shuffled(place, round, accounts)));
            if round < permits {
                times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
            }
        }
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A permutation of the numbers below `end` for each round: a step without a common factor with
/// `end`, from a starting point.
fn shuffled(place: u64, round: u64, end: u64) -> u64 {
    const STEP: u64 = 7_368_787;
    (place * STEP + round * 1_299_709) % end
}

/// The key of an account: random bits.
pub fn key(account: u64) -> Key {
    Key { hash: mixed(account * 2), second_hash: mixed(account * 2 + 1) }
}

/// SplitMix64 of Steele, Lea and Flood (2014).
fn mixed(number: u64) -> u64 {
    let bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
