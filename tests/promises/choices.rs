//! The generator of choices, by worlds whose number is known.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kit::choices::{Choices, Tried, replay, try_all, try_all_in_full};

/// Two counters, each of which grows by an event, up to two.
fn counters(size: usize, choices: &mut Choices, mut visit: impl FnMut([usize; 2])) {
    let mut counts = [0; 2];
    for left in (0..size).rev() {
        let counter = choices.pick(2);
        counts[counter] = (counts[counter] + 1).min(2);
        visit(counts);
        if choices.is_known((left * 9 + counts[0] * 3 + counts[1]) as u64) {
            return;
        }
    }
}

#[test]
fn each_sequence_of_choices_runs_once_and_small_worlds_first() {
    let seen = RefCell::new(Vec::new());
    let tried = try_all(0..=3, |size, choices| {
        let world: Vec<_> = (0..size).map(|number| choices.pick(1 + number)).collect();
        seen.borrow_mut().push((size, world));
    });
    let seen = seen.into_inner();
    assert_eq!(tried, Tried { worlds: 1 + 1 + 2 + 6, states: 0 });
    assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
}

#[test]
fn a_world_may_have_any_number_of_choices() {
    let tried = try_all(1..=1, |_, choices| {
        let mut most = 4;
        while most > 0 && choices.pick(3) == 1 {
            most -= 1;
        }
    });
    assert_eq!(tried.worlds, 2 + 2 + 2 + 3);
}

#[test]
fn a_memory_of_states_loses_none() {
    for size in 0..=12 {
        let (all, few) = (RefCell::new(BTreeSet::new()), RefCell::new(BTreeSet::new()));
        let visit = |seen: &RefCell<BTreeSet<_>>, state| _ = seen.borrow_mut().insert(state);
        let in_full = try_all_in_full(size..=size, |size, choices| {
            counters(size, choices, |state| visit(&all, state));
        });
        let once = try_all(size..=size, |size, choices| {
            counters(size, choices, |state| visit(&few, state));
        });
        assert_eq!(in_full.worlds, 1 << size);
        assert!(once.worlds <= 1 + 9 * size as u64, "{once:?}");
        assert_eq!(all, few);
    }
}

#[test]
fn a_failure_is_one_of_the_shortest_and_can_run_again() {
    let fails = |size: usize, choices: &mut Choices| {
        counters(size, choices, |state| assert_ne!(state, [1, 2]));
    };
    let size_of_failure = Cell::new(0);
    let run = catch_unwind(AssertUnwindSafe(|| {
        try_all(0..=9, |size, choices| {
            size_of_failure.set(size);
            fails(size, choices);
        })
    }));
    assert!(run.is_err());
    assert_eq!(size_of_failure.get(), 3);
    replay("3:0.0.1", fails);
    assert!(catch_unwind(AssertUnwindSafe(|| replay("3:0.1.1", fails))).is_err());
}
