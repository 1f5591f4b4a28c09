//! Room for new callers in a full table, and the cost of searching for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};
use diana_store::table::{RowLocation, Table};
use fastrand::Rng;

use super::{algorithm, at, key, request};
use crate::support::algorithm::ObservedAlgorithm;

/// Maximum number of rows read for a new caller.
const SCAN: u64 = 512;

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
        let looked = Arc::new(ObservedAlgorithm::new(algorithm("TB", quota)));
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
                let before = looked.expiry_checks.load(Ordering::Relaxed);
                let place = table.find(key(1 << 40), at(now));
                assert!(looked.expiry_checks.load(Ordering::Relaxed) - before <= SCAN);
                // A returned row is free for any charged caller.
                in_vain = if place == RowLocation::New { 0 } else { in_vain + 1 };
                if place == RowLocation::New {
                    table.adopt(looked.clone(), table.callers());
                }
            }
            ends.retain(|end| *end > now);
            assert_eq!(table.callers(), ends.len(), "of {rows} at {now}");
            let before = looked.expiry_checks.load(Ordering::Relaxed);
            table.find(key(1 << 40), at(now));
            assert_eq!(
                looked.expiry_checks.load(Ordering::Relaxed),
                before,
                "nobody can have run out since"
            );
            if ends.is_empty() {
                break;
            }
        }
    }
}
