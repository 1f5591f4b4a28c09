//! Leases: permits that are charged first, and spent later or returned.

use diana_algorithm::Entry;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, SECOND};
use fastrand::Rng;

use super::case::Case;
use super::stream;
use crate::oracle::{Admission, Promise, oracle};

/// The permits of a lease.
struct Lease {
    receipt: u64,
    /// The outstanding permits in the store, and the unspent ones.
    out: u64,
    left: u64,
    /// The deadline for spending them.
    until: u64,
}

/// Several workers lease permits, spend them at random times and return the rest, while other
/// requests are charged at once. The admitted requests keep the bound of the rule.
pub fn holds(entry: &Entry, case: &Case, rng: &mut Rng) {
    let algorithm = &*case.algorithm;
    let mut state = vec![0; algorithm.properties().words];
    let mut new = state.clone();
    let mut leases: Vec<Lease> = Vec::new();
    let mut past: Vec<Admission> = Vec::new();
    let mut spend = |now: Now, cost: u64| {
        let promise = oracle(entry.short).promise(&case.quota, &past, now, cost);
        let fits = matches!(promise, Promise::Admitted { wait: 0 } | Promise::Either);
        assert!(fits, "{} let too much through at {now:?}", entry.short);
        past.push(Admission { at: now, leaves: now.mono, cost });
    };
    for (now, cost) in stream::random(case, rng, 200) {
        for lease in &mut leases {
            let spent = rng.u64(0..=lease.left);
            if spent > 0 && now.mono < lease.until && rng.bool() {
                spend(now, spent);
                lease.left -= spent;
            }
        }
        if rng.u8(0..4) == 0 {
            continue;
        }
        // Accesses the store: it holds back the outstanding permits, then records spent and
        // returned ones.
        let out: u64 = leases.iter().map(|lease| lease.out).sum();
        algorithm.hold_back(&state, out, now.mono, &mut new);
        std::mem::swap(&mut state, &mut new);
        leases.retain_mut(|lease| {
            let over = now.mono >= lease.until;
            // A dead worker returns nothing.
            if rng.u8(0..4) == 0 || over && rng.bool() {
                let refund = Settlement::refund(lease.receipt, lease.left);
                algorithm.settle(&state, now, &refund, &mut new);
                std::mem::swap(&mut state, &mut new);
                return false;
            }
            lease.out = lease.left;
            !over || rng.bool()
        });
        let out: u64 = leases.iter().map(|lease| lease.out).sum();
        let is_lease = rng.bool();
        if is_lease && out.saturating_add(cost) > algorithm.properties().most_out
            || !algorithm.step(&state, now, 0, cost, &mut new).is_admitted()
        {
            continue;
        }
        std::mem::swap(&mut state, &mut new);
        let Some(until) = algorithm.spend_by(&state, now) else { return };
        if !is_lease {
            spend(now, cost);
            continue;
        }
        let until = until.min(now.mono + SECOND);
        assert!(until > now.mono, "a lease that is over at once");
        leases.push(Lease { receipt: algorithm.receipt(&state), out: cost, left: cost, until });
    }
}
