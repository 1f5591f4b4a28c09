//! The cost of checking whether a caller is banned.

use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use diana_limiter::bans::Bans;
use diana_policy::key::Key;
use diana_policy::time::SECOND;
use diana_policy::{Ban, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::fake::FakeSharedData;

use crate::case::KEYS;
use crate::{BATCH, BATCHES};

/// Budget for a check in nanoseconds.
const NANOSECONDS: f64 = 100.0;

const HOUR: u64 = 3_600 * SECOND;
const BAN: Ban = Ban { after: 2, within: HOUR, period: HOUR, max: HOUR, halve_after: HOUR };

/// Prints the table: with a full set of callers in turn, or with a single one.
pub fn print() {
    println!("| ban check | case | ns, best (median) | allocations | budget |");
    println!("| --- | --- | ---: | ---: | --- |");
    for (name, scope, banned, callers) in [
        ("nobody banned", Scope::Local, 0, KEYS),
        ("full of bans, 1 caller", Scope::Local, 2 * KEYS, 1),
        ("full of bans, 100,000 callers", Scope::Local, 2 * KEYS, KEYS),
        ("nobody banned", Scope::Gateway, 0, KEYS),
        ("full of bans, 1,000 callers", Scope::Gateway, 2 * KEYS, 1_000),
    ] {
        let mut bans = open(scope);
        for n in 0..banned as u64 {
            (0..BAN.after).for_each(|_| bans.refused(key(n << 32), 0));
        }
        let (best, median, allocations) = measure(&mut bans, callers as u64);
        let met = if best <= NANOSECONDS { "met" } else { "MISSED" };
        println!(
            "| {scope:?} | {name} | {best:.0} ({median:.0}) | {allocations} | ≤ {NANOSECONDS} ns {met} |"
        );
    }
}

fn open(scope: Scope) -> Bans {
    let (data, mut tables) = (Rc::new(FakeSharedData::default()), Tables::default());
    let mut stores = Stores::new("bench".into(), data, &mut tables);
    Bans::new(BAN, scope, 1, KEYS, None, &mut stores)
}

fn measure(bans: &mut Bans, callers: u64) -> (f64, f64, f64) {
    let mut look = |n: u64| {
        assert_eq!(black_box(bans.left(key(n % callers + 1), 1)), 0);
    };
    (0..callers).for_each(&mut look);
    let before = allocator::allocations();
    let mut times = [0.0; BATCHES];
    let mut n = 0;
    for time in &mut times {
        let start = Instant::now();
        for _ in 0..BATCH {
            n += 1;
            look(n);
        }
        *time = start.elapsed().as_nanos() as f64 / BATCH as f64;
    }
    let allocations = (allocator::allocations() - before) as f64 / (BATCHES * BATCH) as f64;
    times.sort_by(f64::total_cmp);
    (times[0], times[BATCHES / 2], allocations)
}

/// A caller, distributed like a hash.
fn key(n: u64) -> Key {
    let hash = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Key { hash, second_hash: (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8 }
}
