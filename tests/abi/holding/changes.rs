//! A configuration that changes, and a VM that dies, while requests are held.

use super::{SECOND, assert_slots, config, open, start};
use host::Host;
use host::vm::Vm;

/// Requests before and after a change, and when they go on: all in one line, whatever the change.
fn over_a_change(scope: &str, change: impl Fn(&mut Vm)) {
    let mut host = Host::new(40);
    let mut vm = start(&mut host, &config(scope, 10, ""));
    let began = host.clock().monotonic();
    let mut streams: Vec<u32> = (0..4).map(|_| open(&mut vm, "ann")).collect();
    vm.run(120_000);
    change(&mut vm);
    streams.extend((0..2).map(|_| open(&mut vm, "ann")));
    vm.run(2 * SECOND);
    assert_slots(&mut vm, &streams, began, &[0, 100, 200, 300, 400, 500]);
    for stream in streams {
        assert_eq!(vm.close(stream).unwrap().status(), 200);
    }
    vm.end_drain().unwrap();
    assert!(!vm.has_timer());
}

#[test]
fn a_change_strands_nobody() {
    for scope in ["local", "gateway"] {
        let changed = config(scope, 10, ", max_queue: 7");
        over_a_change(scope, |vm| vm.configure(&changed).unwrap());
    }
}

#[test]
fn a_change_strands_nobody_even_if_only_the_new_root_ticks() {
    for scope in ["local", "gateway"] {
        let changed = config(scope, 10, ", max_queue: 7");
        over_a_change(scope, |vm| {
            vm.configure(&changed).unwrap();
            vm.silence_old_roots();
        });
    }
}

#[test]
fn a_change_to_rules_that_hold_nothing_strands_nobody() {
    let mut host = Host::new(41);
    let mut vm = start(&mut host, &config("gateway", 10, ""));
    let began = host.clock().monotonic();
    let streams: Vec<u32> = (0..4).map(|_| open(&mut vm, "ann")).collect();
    vm.configure("limits: []").unwrap();
    vm.run(SECOND);
    assert_slots(&mut vm, &streams, began, &[0, 100, 200, 300]);
}

#[test]
fn those_who_leave_after_a_change_are_forgotten_too() {
    for scope in ["local", "gateway"] {
        let mut host = Host::new(42);
        let mut vm = start(&mut host, &config(scope, 1, ", max_delay: 10s, max_queue: 10"));
        let streams: Vec<u32> = (0..5).map(|_| open(&mut vm, "ann")).collect();
        vm.configure(&config(scope, 1, ", max_delay: 10s, max_queue: 9")).unwrap();
        for stream in streams.into_iter().rev() {
            vm.close(stream).unwrap();
        }
        let next = open(&mut vm, "ann");
        vm.run(SECOND + SECOND / 10);
        assert!(vm.answer(next).is_admitted(), "{scope}: only the first place was used");
        vm.end_drain().unwrap();
        assert!(!vm.has_timer());
    }
}

#[test]
fn places_of_a_vm_that_dies_pass_unused_and_the_line_goes_on() {
    let mut host = Host::new(43);
    let rules = config("gateway", 10, "");
    let mut vm = start(&mut host, &rules);
    let began = host.clock().monotonic();
    for _ in 0..4 {
        open(&mut vm, "ann");
    }
    drop(vm);
    let mut vm = start(&mut host, &rules);
    let streams: Vec<u32> = (0..3).map(|_| open(&mut vm, "ann")).collect();
    vm.run(SECOND);
    assert_slots(&mut vm, &streams, began, &[400, 500, 600]);
}
