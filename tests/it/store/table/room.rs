//! Room for new callers in a full table, and the cost of searching for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use diana_algorithm::{Algorithm, Balance, Properties};
use diana_policy::Quota;
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND, Unit};
use diana_store::table::{RowLocation, Table};
use fastrand::Rng;

use super::{algorithm, at, key, request};

/// Maximum number of rows read for a new caller.
const SCAN: u64 = 512;

/// An algorithm that counts expiry checks.
#[derive(Debug)]
struct Looked {
    algorithm: Arc<dyn Algorithm>,
    looks: AtomicU64,
}

impl Algorithm for Looked {
    fn properties(&self) -> &Properties {
        self.algorithm.properties()
    }

    fn step(&self, old: &[u64], now: Now, delay: Micros, cost: u64, new: &mut [u64]) -> Decision {
        self.algorithm.step(old, now, delay, cost, new)
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        self.algorithm.receipt(charged)
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        self.algorithm.settle(old, now, settlement, new);
    }

    fn spend_by(&self, charged: &[u64], now: Now) -> Option<Micros> {
        self.algorithm.spend_by(charged, now)
    }

    fn balance(&self, state: &[u64], now: Now) -> Balance {
        self.algorithm.balance(state, now)
    }

    fn reset(&self, old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool {
        self.algorithm.reset(old, now, out, new)
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.algorithm.expires(state, now)
    }
}

/// At any instant, new callers find as many rows as have expired by then, after a few searches. A
/// search reads a bounded number of rows, and none if no row can have expired since the last
/// complete search.
#[test]
fn expired_rows_make_room_in_bounded_searches() {
    let mut rng = Rng::with_seed(kit::seed::next());
    for _ in 0..40 {
        let rows = rng.u64(1..1500);
        // One permit is added after a second.
        let quota = Quota { burst: Some(5), ..Quota::new(Unit::Second, 1) };
        let looked =
            Arc::new(Looked { algorithm: algorithm("TB", quota), looks: AtomicU64::new(0) });
        let mut table = Table::new(looked.clone(), 1500);
        let mut ends = Vec::new();
        for caller in 0..rows {
            let now = rng.u64(0..SECOND / 2);
            let uses = rng.u64(1..4);
            (0..uses).for_each(|_| assert!(request(&mut table, &*looked, caller, at(now)).0));
            ends.push(now + uses * SECOND);
        }
        // From now on it is full.
        table.adopt(looked.clone(), rows as usize);
        let around = rows.div_ceil(SCAN);
        let mut now = SECOND / 2;
        for _ in 0..20 {
            // Often the exact tick of an expiry.
            now = match rng.choice(&ends) {
                Some(end) if *end > now && rng.bool() => *end,
                _ => now + rng.u64(0..SECOND / 4),
            };
            let mut in_vain = 0;
            while in_vain <= around {
                let before = looked.looks.load(Ordering::Relaxed);
                let place = table.find(key(1 << 40), at(now));
                assert!(looked.looks.load(Ordering::Relaxed) - before <= SCAN);
                // A returned row is free for any charged caller.
                in_vain = if place == RowLocation::New { 0 } else { in_vain + 1 };
                if place == RowLocation::New {
                    table.adopt(looked.clone(), table.callers());
                }
            }
            ends.retain(|end| *end > now);
            assert_eq!(table.callers(), ends.len(), "of {rows} at {now}");
            let before = looked.looks.load(Ordering::Relaxed);
            table.find(key(1 << 40), at(now));
            assert_eq!(
                looked.looks.load(Ordering::Relaxed),
                before,
                "nobody can have run out since"
            );
            if ends.is_empty() {
                break;
            }
        }
    }
}
