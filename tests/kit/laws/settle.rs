//! Settlements of charges.

use diana_algorithm::Entry;
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;
use diana_policy::{Quota, Settling};
use fastrand::Rng;

use super::case::Case;
use super::{forgetting_loses_nothing, stream};
use crate::oracle::{Oracle, oracle};

/// An open charge.
struct Open {
    /// Its index among the events.
    event: usize,
    receipt: u64,
    since: u64,
    reserved: u64,
}

/// Usage at an instant.
struct Event {
    at: Now,
    permits: u64,
    /// `None` for an admission. For a debt, the index of its admission.
    of: Option<usize>,
}

/// An oracle that remembers every reservation and settlement of one caller.
#[derive(Default)]
struct Book {
    events: Vec<Event>,
}

impl Book {
    fn admit(&mut self, at: Now, permits: u64) -> usize {
        self.events.push(Event { at, permits, of: None });
        self.events.len() - 1
    }

    fn settle(&mut self, open: &Open, used: u64, at: Now) {
        self.events[open.event].permits = used.min(open.reserved);
        if used > open.reserved {
            let permits = used - open.reserved;
            self.events.push(Event { at, permits, of: Some(open.event) });
        }
    }

    /// The remaining permits after usage and reservations.
    fn left(&self, oracle: &Oracle, quota: &Quota, now: Now) -> u64 {
        let counts = |event: &&Event| oracle.counts(quota, event.at, now);
        let used = self.events.iter().filter(counts).map(|event| event.permits);
        quota.rpu.saturating_sub(used.sum())
    }

    /// The usage in any interval is at most the limit plus debts: those recorded after the last
    /// admission of the interval, or after its start if it has none, for requests admitted before.
    fn keeps_the_bound(&self, oracle: &Oracle, quota: &Quota) {
        let debts = |event: usize| -> u128 {
            let open = |(place, debt): &(usize, &Event)| {
                *place > event && debt.of.is_some_and(|of| of <= event)
            };
            let debts = self.events.iter().enumerate().filter(open);
            debts.map(|(_, debt)| u128::from(debt.permits)).sum()
        };
        let debts: Vec<u128> = (0..self.events.len()).map(debts).collect();
        for (start, first) in self.events.iter().enumerate() {
            let mut sum = 0;
            let mut allowed = start.checked_sub(1).map_or(0, |before| debts[before]);
            for (place, event) in self.events.iter().enumerate().skip(start) {
                if !oracle.is_one_interval(quota, first.at, event.at) {
                    break;
                }
                sum += u128::from(event.permits);
                if event.of.is_none() {
                    allowed = debts[place];
                }
                assert!(
                    sum <= u128::from(quota.rpu) + allowed,
                    "{sum} used from {:?} to {:?}, {allowed} of them in debt",
                    first.at,
                    event.at
                );
            }
        }
    }
}

/// Checks random requests of one caller that use less than, as much as, or more than their
/// reservation.
pub fn holds(entry: &Entry, case: &Case, rng: &mut Rng) {
    let quota = &case.quota;
    if !(entry.capabilities)(quota).settles {
        return;
    }
    let oracle = oracle(entry.short);
    let settling =
        Settling { reserve: 1, response_cost: None, count: None, bans: false, is_slot: false };
    let algorithm = entry.algorithm(quota, entry.keeps_used(Some(&settling))).unwrap();
    let algorithm = &*algorithm;
    // Half of the callers use no permits.
    let uses = rng.bool();
    let mut state = vec![0; algorithm.properties().words];
    let mut new = state.clone();
    let (mut book, mut open) = (Book::default(), Vec::new());
    let mut settle =
        |state: &mut Vec<u64>, book: &mut Book, open: Open, now: Now, rng: &mut Rng| {
            let reserved = open.reserved;
            let used = match rng.u8(0..4) {
                _ if !uses => 0,
                0 => 0,
                1 => reserved,
                2 => rng.u64(0..=reserved),
                _ => rng.u64(0..=2 * quota.rpu),
            };
            let Open { receipt, since, .. } = open;
            let settlement = Settlement { receipt, since, reserved, used };
            algorithm.settle(state, now, &settlement, &mut new);
            state.copy_from_slice(&new);
            book.settle(&open, used, now);
            let (left, truth) =
                (algorithm.balance(state, now).remaining, book.left(oracle, quota, now));
            assert_eq!(left, truth, "{settlement:?}");
        };
    let mut last = Now::default();
    for (now, cost) in stream::random(case, rng, 150) {
        last = now;
        while !open.is_empty() && rng.u8(0..3) == 0 {
            let one = open.swap_remove(rng.usize(0..open.len()));
            settle(&mut state, &mut book, one, now, rng);
        }
        forgetting_loses_nothing(algorithm, &state, now, case, rng);
        let mut after = state.clone();
        if algorithm.step(&state, now, 0, cost, &mut after).is_admitted() {
            state = after;
            let (event, receipt) = (book.admit(now, cost), algorithm.receipt(&state));
            open.push(Open { event, receipt, since: now.mono, reserved: cost });
        }
    }
    while let Some(one) = open.pop() {
        settle(&mut state, &mut book, one, last, rng);
    }
    book.keeps_the_bound(oracle, quota);
}
