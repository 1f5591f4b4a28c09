//! What was seen to strand requests, step by step.

use super::{MILLISECOND, SECOND, admits, answer_all, config, host, open, two_listeners};
use host::call_out::Response;
use host::vm::Vm;

/// How late a held request may be.
const LATEST: u64 = 2 * MILLISECOND;

/// Lets time pass in which Redis answers at once.
fn run_with_redis(vm: &mut Vm, ticks: u64) {
    for _ in 0..ticks / MILLISECOND {
        vm.run(MILLISECOND);
        answer_all(vm, admits);
    }
}

#[test]
fn a_hiccup_that_the_second_listener_sees_strands_nobody_on_the_first() {
    let mut host = host(1);
    let (mut vm, [first, second]) = two_listeners(&mut host);
    let stream = open(&mut vm, first, "/far", "ann");
    run_with_redis(&mut vm, 5 * MILLISECOND);
    assert!(vm.close(stream).unwrap().is_admitted());
    // Until the first root has nothing more to do.
    run_with_redis(&mut vm, 2 * SECOND);
    let stream = open(&mut vm, second, "/far", "ann");
    vm.run(5 * MILLISECOND);
    answer_all(&mut vm, |_| Response::new(504, ""));
    vm.run(5 * MILLISECOND);
    assert!(vm.close(stream).unwrap().is_admitted());
    run_with_redis(&mut vm, 3 * SECOND);
    for round in 0..20 {
        let stream = open(&mut vm, first, "/far", &format!("caller {round}"));
        run_with_redis(&mut vm, 50 * MILLISECOND);
        assert!(vm.close(stream).unwrap().is_admitted(), "round {round}");
    }
}

#[test]
fn a_hiccup_while_a_listener_drains_strands_nobody_there() {
    let mut host = host(2);
    let mut vm = host.start_vm(&config(0)).unwrap();
    let old = vm.in_force();
    let stream = open(&mut vm, old, "/far", "ann");
    run_with_redis(&mut vm, 5 * MILLISECOND);
    assert!(vm.close(stream).unwrap().is_admitted());
    vm.configure(&config(1)).unwrap();
    let new = vm.in_force();
    run_with_redis(&mut vm, 2 * SECOND);
    let stream = open(&mut vm, new, "/far", "bob");
    vm.run(5 * MILLISECOND);
    answer_all(&mut vm, |_| Response::new(504, ""));
    run_with_redis(&mut vm, 3 * SECOND);
    assert!(vm.close(stream).unwrap().is_admitted());
    let late = open(&mut vm, old, "/far", "cyd");
    run_with_redis(&mut vm, 50 * MILLISECOND);
    assert!(vm.close(late).unwrap().is_admitted());
}

/// The answer comes to the root that asked, for a request of the other one, which is held then.
#[test]
fn a_root_that_ends_hands_its_clock_on() {
    let mut host = host(3);
    let (mut vm, [first, second]) = two_listeners(&mut host);
    let passes = open(&mut vm, first, "/both", "ann");
    run_with_redis(&mut vm, 5 * MILLISECOND);
    let held = open(&mut vm, first, "/both", "ann");
    // The second root asks for both.
    open(&mut vm, second, "/far", "bob");
    vm.silence(first);
    vm.run(3 * MILLISECOND);
    answer_all(&mut vm, admits);
    vm.end_root(second).unwrap();
    let (passed, now) = (vm.answer(passes).went_on.unwrap(), host.clock().monotonic());
    vm.run(passed + 50 * MILLISECOND + LATEST - now);
    let went_on = vm.answer(held).went_on.map(|at| at - passed);
    let slot = 50 * MILLISECOND..=50 * MILLISECOND + LATEST;
    assert!(went_on.is_some_and(|at| slot.contains(&at)), "after {went_on:?} µs");
}
