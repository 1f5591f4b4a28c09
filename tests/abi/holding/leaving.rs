//! Clients that leave while they are held: they are forgotten, and nobody else is worse off.

use super::{MILLISECOND, SECOND, assert_slots, config, open, start};
use host::Host;

/// Five requests come at once, and some leave after 50 ms; one more comes then. When they go on.
fn after_leaving(scope: &str, leaving: &[usize], slots: &[u64]) {
    let mut host = Host::new(30);
    let mut vm = start(&mut host, &config(scope, 10, ""));
    let began = host.clock().monotonic();
    let mut streams: Vec<u32> = (0..5).map(|_| open(&mut vm, "ann")).collect();
    vm.run(50 * MILLISECOND);
    let left: Vec<u32> = leaving.iter().map(|index| streams[*index]).collect();
    for stream in &left {
        assert!(vm.close(*stream).unwrap().is_held());
    }
    streams.retain(|stream| !left.contains(stream));
    streams.push(open(&mut vm, "ann"));
    vm.start_counting();
    vm.run(SECOND);
    assert_slots(&mut vm, &streams, began, slots);
    let resumed = vm.counted().0.get("proxy_continue_stream").copied();
    assert_eq!(resumed, Some(5 - leaving.len() as u64), "{scope}: only those that are there");
    assert!(!vm.has_timer());
}

#[test]
fn in_a_worker_those_behind_move_up() {
    after_leaving("local", &[], &[0, 100, 200, 300, 400, 500]);
    after_leaving("local", &[1], &[0, 100, 200, 300, 400]);
    after_leaving("local", &[4], &[0, 100, 200, 300, 400]);
    after_leaving("local", &[1, 3], &[0, 100, 200, 300]);
    after_leaving("local", &[1, 2, 3, 4], &[0, 100]);
}

#[test]
fn in_the_gateway_a_place_returns_if_it_was_the_last() {
    after_leaving("gateway", &[4], &[0, 100, 200, 300, 400]);
    after_leaving("gateway", &[4, 3], &[0, 100, 200, 300]);
    after_leaving("gateway", &[1], &[0, 200, 300, 400, 500]);
    after_leaving("gateway", &[3, 4], &[0, 100, 200, 400]);
}

#[test]
fn a_line_that_everybody_left_is_empty() {
    for scope in ["local", "gateway"] {
        let mut host = Host::new(31);
        let mut vm = start(&mut host, &config(scope, 1, ""));
        let streams: Vec<u32> = (0..2).map(|_| open(&mut vm, "ann")).collect();
        streams.into_iter().rev().for_each(|stream| drop(vm.close(stream).unwrap()));
        vm.run(SECOND);
        let next = open(&mut vm, "ann");
        assert!(vm.answer(next).is_admitted(), "{scope}");
    }
}
