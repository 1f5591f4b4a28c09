//! Workers of one gateway that run at once: each order of their accesses to shared data. A worker may stand still or end
//! between any two of them.
//!
//! `DIANA_DEPTH` chooses the largest worlds: two requests, four by two workers from 4 on, three by three
//! workers from 5 on.

mod arrears;
mod bans;
mod counting;
mod in_flight;
mod reports;
mod several;
mod stage;
mod turns;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use kit::choices::{Choices, Tried, try_all, try_all_in_full};

use crate::depth;
use crate::traces::case::{Case, Place, busy_cases, cases, crowded_cases};

/// Workers, and the acts of each.
const SIZES: [(usize, usize); 3] = [(2, 1), (2, 2), (3, 1)];

/// The same of workers that are threads. Turns leave few orders.
const THREADS: [(usize, usize); 4] = [(2, 1), (2, 2), (3, 1), (2, 3)];

/// The number of sizes at this depth.
fn sizes() -> usize {
    match depth() {
        ..4 => 1,
        4 => 2,
        _ => SIZES.len(),
    }
}

/// Tries all orders with each rule.
fn count(place: Place, cases: Vec<Case>) {
    let cases: Vec<_> = cases.into_iter().map(Rc::new).collect();
    let Tried { states, .. } = try_all(1..=sizes(), |size, choices| {
        let case = &cases[choices.pick(cases.len())];
        counting::world(case, place, SIZES[size - 1], choices);
    });
    println!("tried: {states} states");
}

/// Numbers change nothing in the order of accesses, so one rule of each kind is enough.
fn kinds(place: Place) -> Vec<Case> {
    let mut cases = cases(place);
    cases.dedup_by_key(|case| case.kind());
    cases
}

#[test]
fn rules_in_slots_of_shared_data() {
    count(Place::Slots, kinds(Place::Slots));
}

#[test]
fn shares_of_a_gateway() {
    let mut cases = kinds(Place::Share);
    cases.dedup_by_key(|case| case.specs[0].entry.short);
    count(Place::Share, cases);
}

#[test]
fn leases() {
    count(Place::Slots, busy_cases(Place::Slots));
}

#[test]
fn callers_without_room() {
    count(Place::Slots, crowded_cases());
}

/// Tries all orders in worlds of workers and acts.
fn orders(world: impl Fn(usize, usize, &mut Choices)) {
    let Tried { states, .. } = try_all(1..=sizes(), |size, choices| {
        let (workers, acts) = SIZES[size - 1];
        world(workers, acts, choices);
    });
    println!("tried: {states} states");
}

#[test]
fn bans_begin_once() {
    orders(bans::world);
}

#[test]
fn requests_in_flight() {
    orders(in_flight::world);
}

#[test]
fn arrears_are_charged_once() {
    let mut cases = kinds(Place::Share);
    cases.retain(|case| ["W", "TB"].contains(&case.specs[0].entry.short));
    cases.dedup_by_key(|case| case.specs[0].entry.short);
    orders(|workers, acts, choices| {
        let case = &cases[choices.pick(cases.len())];
        arrears::world(case, workers, acts, choices);
    });
}

#[test]
fn reports_of_a_gateway() {
    let cases = reports::cases();
    orders(|workers, acts, choices| {
        let number = choices.pick(cases.len());
        reports::world(number, &cases[number], workers, acts, choices);
    });
}

#[test]
fn requests_under_two_rules() {
    let policies = several::policies();
    orders(|workers, acts, choices| {
        let number = choices.pick(policies.len());
        several::world((number, &policies[number]), workers, acts, choices);
    });
}

#[test]
fn threads_of_a_process() {
    let cases: Vec<_> = turns::cases().into_iter().map(Rc::new).collect();
    let known = turns::Known::default();
    let sizes = if depth() < 4 { 2 } else { THREADS.len() };
    let Tried { states, .. } = try_all(1..=sizes, |size, choices| {
        let number = choices.pick(cases.len());
        turns::world((number, &cases[number]), &known, THREADS[size - 1], choices);
    });
    println!("tried: {states} orders");
}

/// A state contains all that each worker has read, so equal states have an equal future.
#[test]
fn a_memory_of_states_loses_no_outcome() {
    for case in kinds(Place::Slots).into_iter().take(3).map(Rc::new) {
        let outcomes = |choices: &mut Choices, all: &RefCell<BTreeSet<Vec<String>>>| {
            let Some(done) = counting::world(&case, Place::Slots, SIZES[0], choices) else {
                return;
            };
            let done = done.borrow();
            let mut outcome: Vec<_> = done.iter().map(|done| format!("{:?}", done.what)).collect();
            outcome.sort_unstable();
            all.borrow_mut().insert(outcome);
        };
        let (all, few) = Default::default();
        let in_full = try_all_in_full(1..=1, |_, choices| outcomes(choices, &all));
        let once = try_all(1..=1, |_, choices| outcomes(choices, &few));
        assert!(once.worlds < in_full.worlds, "{once:?} of {in_full:?}");
        assert_eq!(all, few);
    }
}
