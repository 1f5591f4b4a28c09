//! All that one rule can see: each sequence of requests, ends, changes and instants, for each algorithm in each store that
//! keeps it. Every decision, every `retry-after` and every number of remaining permits is what the oracle requires.
//!
//! `DIANA_DEPTH` is the number of events, by default 3. Traces of one caller with costs of 0 and 1 have one event more.

pub mod case;
mod expiry;
mod full;
mod parts;
mod several;
pub mod world;

use std::cell::Cell;

use kit::choices::{Tried, try_all};

use crate::depth;
use case::{Place, cases};
use full::{Full, full_cases, pair, requests_in_flight};
use world::{FULL, NARROW, World};

/// Tries all traces in a store. In some trace of each rule the bound is reached.
fn hold(place: Place) {
    let cases = cases(place);
    let reached: Vec<_> = cases.iter().map(|_| Cell::new(false)).collect();
    let Tried { worlds, .. } = try_all(1..=depth(), |events, choices| {
        let number = choices.pick(cases.len());
        let is_narrow = choices.pick(2) == 1;
        let (scale, events) = if is_narrow { (NARROW, events + 1) } else { (FULL, events) };
        let mut world = World::new(&cases[number], place);
        (0..events).for_each(|_| world.step(scale, choices));
        reached[number].set(reached[number].get() | world.end());
    });
    println!("tried: {worlds} traces, {place:?}");
    if worlds > 1 {
        let loose =
            cases.iter().zip(&reached).filter(|(case, reached)| case.is_tight() && !reached.get());
        let loose: Vec<_> = loose.map(|(case, _)| case.quotas).collect();
        assert!(loose.is_empty(), "no trace reaches the bound of {loose:?}");
    }
}

#[test]
fn in_the_table_of_a_worker() {
    hold(Place::Worker);
}

#[test]
fn in_slots_of_shared_data() {
    hold(Place::Slots);
}

#[test]
fn in_the_table_of_a_process() {
    hold(Place::Process);
}

#[test]
fn in_the_share_of_a_gateway() {
    hold(Place::Share);
}

#[test]
fn without_room() {
    for place in [Place::Worker, Place::Slots, Place::Process] {
        let (cases, keys) = (full_cases(place), pair(place));
        let Tried { worlds, .. } = try_all(1..=depth() + 1, |events, choices| {
            let case = &cases[choices.pick(cases.len())];
            let clears = place == Place::Slots && choices.pick(2) == 1;
            let mut full = Full::new(case, place, keys, clears);
            (0..events).for_each(|_| full.step(choices));
        });
        println!("tried: {worlds} traces, {place:?} without room");
    }
    for (place, most) in [(Place::Worker, 2 * depth()), (Place::Slots, depth() + 2)] {
        let keys = pair(place);
        let Tried { worlds, .. } = try_all(1..=most, |events, choices| {
            requests_in_flight(place, keys, events, choices);
        });
        println!("tried: {worlds} traces, requests in flight without room");
    }
}

#[test]
fn after_their_expiry() {
    let cases = cases(Place::Worker);
    let Tried { worlds, .. } = try_all(1..=depth() + 1, |events, choices| {
        expiry::world(&cases[choices.pick(cases.len())], events, choices);
    });
    println!("tried: {worlds} traces, until they expire");
}

#[test]
fn under_two_rules() {
    let pairs = several::pairs();
    let Tried { worlds, .. } = try_all(1..=depth() + 2, |events, choices| {
        several::world(&pairs[choices.pick(pairs.len())], events, choices);
    });
    println!("tried: {worlds} traces, two rules");
}

#[test]
fn parts_of_a_block() {
    let Tried { worlds, .. } = try_all(1..=depth() + 2, parts::world);
    println!("tried: {worlds} traces, parts of a block");
}
