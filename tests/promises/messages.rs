//! Two and three gateways and one Redis, with the client, the ledger, the breaker and the stores of the module: each message
//! arrives, is lost, doubled or late, gateways begin, end, stand still and are cut off, and Redis loses data.
//!
//! `DIANA_DEPTH` chooses the largest worlds: few events up to 3, with more than one failure from 5 on.

mod case;
mod ledgers;
pub mod network;
mod world;

use std::cell::RefCell;
use std::collections::BTreeSet;

use kit::choices::{Tried, try_all, try_all_in_full};

use crate::depth;
use case::{Case, Size, case};

/// Gateways, requests, waits, faults, changes and cuts of worlds, small ones first: those of the gate, then larger ones.
type Sizes<'s> = [&'s [[usize; 6]]; 2];

const PLAIN: Sizes<'_> = [
    &[
        [2, 2, 0, 0, 0, 0],
        [2, 1, 1, 1, 0, 0],
        [2, 1, 0, 0, 1, 0],
        [2, 2, 0, 0, 0, 1],
        [1, 2, 1, 0, 0, 2],
    ],
    &[[2, 1, 1, 1, 1, 0], [3, 1, 1, 1, 0, 1], [2, 2, 1, 1, 0, 0]],
];

/// Of hosts that refuse a call, also one for the second time.
const REFUSED: Sizes<'_> = [&[[1, 1, 1, 1, 0, 1]], &[]];

/// Of gateways that begin or end while others are cut off.
const CHANGED: Sizes<'_> = [&[[2, 1, 0, 0, 1, 1]], &[]];

/// Of rules that also send messages at the end of a request.
const ENDING: Sizes<'_> = [
    &[[2, 1, 1, 1, 0, 0], [2, 1, 0, 0, 1, 0], [2, 1, 0, 0, 0, 1]],
    &[[2, 1, 1, 0, 1, 0], [2, 1, 2, 1, 0, 0], [3, 1, 1, 1, 0, 0], [2, 1, 1, 0, 0, 2]],
];

/// Of a caller whose permits a gateway leases.
const LEASED: Sizes<'_> =
    [&[[2, 2, 0, 0, 0, 1], [2, 1, 0, 1, 0, 0]], &[[2, 2, 0, 1, 0, 1], [2, 2, 1, 0, 0, 1]]];

/// Of a caller with permits leased by a gateway, under one plan and then under another.
const PLANS: Sizes<'_> = [&[[1, 2, 0, 0, 0, 0]], &[]];

/// Of calls that are late while others fail.
const FAR: Sizes<'_> = [&[[1, 2, 2, 1, 0, 0]], &[]];

/// Of a call while two are pending.
const BESIDE_CALLS: Sizes<'_> = [&[], &[[1, 1, 1, 0, 0, 0]]];

/// Of a late reply that refuses, near the end of a window.
const REFUSED_AT_END: Sizes<'_> = [&[[1, 2, 2, 1, 0, 0]], &[]];

/// Of a worker that stands still while another one loses Redis.
const BESIDE: Sizes<'_> = [&[[1, 1, 1, 1, 0, 0]], &[]];

/// Of rules that ask after they have decided.
const AFTER: Sizes<'_> = [
    &[[2, 2, 1, 1, 0, 0], [1, 2, 1, 0, 0, 1], [1, 3, 1, 0, 0, 0], [2, 2, 2, 0, 0, 0]],
    &[[2, 3, 2, 0, 0, 0], [2, 2, 2, 1, 0, 0], [2, 2, 1, 0, 1, 0], [3, 3, 1, 0, 0, 0]],
];

/// Of one gateway with requests that came after its report.
const AFTER_ALONE: Sizes<'_> = [&[[1, 3, 1, 0, 0, 0]], &[]];

/// Of settlements that wait while others are sent, and of their share.
const WAITING: Sizes<'_> = [&[[1, 2, 0, 0, 0, 1]], &[]];
const SETTLED: Sizes<'_> = [&[[1, 2, 0, 0, 0, 1]], &[]];
const RELOADED: Sizes<'_> = [&[[1, 1, 0, 2, 1, 0]], &[]];

/// Of requests under another rule, too.
const MIXED: Sizes<'_> = [&[[1, 2, 0, 1, 0, 0], [1, 2, 0, 0, 0, 1]], &[[1, 2, 1, 1, 0, 0]]];

/// Of a flood that makes its caller busy.
const FLOOD: Sizes<'_> = [&[[1, 2, 0, 0, 0, 0]], &[[1, 2, 1, 1, 0, 0]]];

/// Of a caller whose permits a gateway leases near the end of a window.
const LEASED_AT_END: Sizes<'_> = [&[[1, 2, 1, 1, 0, 0]], &[]];

/// Of two workers of a gateway.
const TWO: Sizes<'_> = [&[[1, 2, 0, 0, 0, 0]], &[[1, 1, 1, 1, 0, 0]]];
const TWO_AFTER: Sizes<'_> = [&[[1, 3, 1, 0, 0, 0], [1, 2, 2, 1, 0, 0]], &[[1, 3, 2, 1, 0, 0]]];

const LARGEST: &[[usize; 6]] = &[[2, 2, 1, 0, 0, 2], [2, 2, 2, 2, 1, 0], [3, 2, 1, 1, 1, 0]];

/// Tries the worlds of a rule.
fn hold(name: &str, [small, large]: Sizes<'_>) {
    let (large, largest) = match depth() {
        ..4 => (&[][..], &[][..]),
        4 => (large, &[][..]),
        _ => (large, LARGEST),
    };
    let sizes = [small, large, largest].concat();
    let worlds: Vec<(Case, Size)> =
        sizes.into_iter().map(|size| (case(name, size[0]), Size::of(size))).collect();
    let Tried { states, .. } = try_all(1..=worlds.len(), |number, choices| {
        let (case, size) = &worlds[number - 1];
        world::world(case, *size, choices);
    });
    println!("tried: {states} fleets, {name}");
}

#[test]
fn of_a_window() {
    hold("tight window", PLAIN);
}

#[test]
fn of_a_window_with_room() {
    hold("wide window", PLAIN);
    hold("wide window", CHANGED);
    hold("wide window, calls refused", REFUSED);
}

#[test]
fn of_a_window_beside_another_rule() {
    hold("wide window, beside a local rule", MIXED);
    hold("wide window, beside another rule", MIXED);
    hold("tight window, beside a local rule", MIXED);
    hold("tight window, beside another rule", MIXED);
}

#[test]
fn at_the_end_of_a_window() {
    hold("end of a window", PLAIN);
    hold("end of a spent window", REFUSED_AT_END);
}

#[test]
fn of_a_sliding_window() {
    hold("wide sliding window", PLAIN);
}

#[test]
fn of_a_small_bucket() {
    hold("tight bucket", PLAIN);
}

#[test]
fn of_a_bucket() {
    hold("wide bucket", PLAIN);
}

#[test]
fn of_settlements() {
    hold("settled window", ENDING);
    hold("settled window, one gateway", WAITING);
    hold("tight settled window", SETTLED);
    hold("settled window, reloaded", RELOADED);
}

#[test]
fn of_requests_in_flight() {
    hold("in flight", ENDING);
}

#[test]
fn of_leases() {
    hold("leased window", LEASED);
    hold("leased window of two plans", PLANS);
    hold("flood at one gateway", FLOOD);
    hold("leased end of a window", LEASED_AT_END);
}

#[test]
fn of_a_far_redis() {
    hold("far window", FAR);
    hold("far window, two calls", BESIDE_CALLS);
}

#[test]
fn of_a_worker_that_stands_still() {
    hold("far window, two workers", BESIDE);
}

#[test]
fn of_two_workers() {
    hold("window, two workers", TWO);
    hold("bucket, two workers", TWO);
    hold("window, ask after, two workers", TWO_AFTER);
    hold("bucket, ask after, two workers", TWO_AFTER);
    hold("settled window, two workers", TWO);
}

#[test]
fn of_reports() {
    hold("tight window, ask after", AFTER);
    hold("tight bucket, ask after", AFTER_ALONE);
    hold("tight sliding window, ask after", AFTER_ALONE);
    hold("wide window, ask after", AFTER);
    hold("wide bucket, ask after", AFTER);
}

#[test]
fn of_a_ledger() {
    let Tried { worlds, .. } = try_all(1..=2 * depth() + 1, ledgers::world);
    println!("tried: {worlds} traces, settlements of a worker");
}

/// The acts of a gateway depend on its past events, and the replies of Redis on its past calls. So equal
/// states have an equal future.
#[test]
fn a_memory_of_states_loses_no_outcome() {
    let (case, size) = (case("wide window", 2), Size::of([2, 1, 1, 1, 0, 0]));
    let outcomes = |choices: &mut _, all: &RefCell<BTreeSet<String>>| {
        all.borrow_mut().extend(world::world(&case, size, choices));
    };
    let (all, few) = Default::default();
    let in_full = try_all_in_full(1..=1, |_, choices| outcomes(choices, &all));
    let once = try_all(1..=1, |_, choices| outcomes(choices, &few));
    assert!(once.worlds < in_full.worlds, "{once:?} of {in_full:?}");
    assert_eq!(all, few);
}
