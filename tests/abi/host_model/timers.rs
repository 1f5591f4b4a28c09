//! Timers and held streams. Both meet in ticks.

use super::{HOLD, RESUME, host, log_texts, start};
use host::request::Request;

/// A root that logs its age in milliseconds at each tick. Its second tick sets a longer period, its
/// fourth ends the timer.
const TICKS: &str = r#"
    (global $ticks (mut i32) (i32.const 0))
    (global $start (mut i64) (i64.const 0))
    (func $now (result i64)
      (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 16)))
      (i64.div_u (i64.load (i32.const 16)) (i64.const 1000000)))
    (func (export "proxy_on_configure") (param i32 i32) (result i32)
      (global.set $start (call $now))
      (i32.eqz (call $tick_period (i32.const 10))))
    (func (export "proxy_on_tick") (param i32)
      (call $say (i32.wrap_i64 (i64.sub (call $now) (global.get $start))))
      (global.set $ticks (i32.add (global.get $ticks) (i32.const 1)))
      (if (i32.eq (global.get $ticks) (i32.const 2))
        (then (drop (call $tick_period (i32.const 20)))))
      (if (i32.eq (global.get $ticks) (i32.const 4))
        (then (drop (call $tick_period (i32.const 0))))))"#;

#[test]
fn timer_fires_a_period_after_its_last_tick() {
    let mut vm = start(TICKS);
    vm.run(1_000_000);
    let ticks: Vec<u32> = log_texts(&vm).iter().map(|at| at.parse().unwrap()).collect();
    for ((at, earliest), most) in ticks.iter().zip([10, 20, 40, 60]).zip(1..) {
        assert!((earliest..=earliest + most).contains(at), "{ticks:?}");
    }
    assert_eq!(ticks.len(), 4, "it was switched off: {ticks:?}");
    assert!(!vm.has_timer());
}

#[test]
fn each_root_has_its_own_timer() {
    let mut vm = start(
        r#"(func (export "proxy_on_configure") (param $id i32) (param $size i32) (result i32)
             (i32.eqz (call $tick_period (i32.add (i32.const 10) (local.get $size)))))
           (func (export "proxy_on_tick") (param $id i32) (call $say (local.get $id)))"#,
    );
    vm.configure("ten bytes.").unwrap();
    vm.run(115_000);
    let ticks = |vm: &_, id| log_texts(vm).iter().filter(|root| *root == id).count();
    assert!((10..=11).contains(&ticks(&vm, "01")) && ticks(&vm, "02") == 5, "{:?}", log_texts(&vm));
    vm.end_drain().unwrap();
    let before = ticks(&vm, "01");
    vm.run(100_000);
    assert_eq!(ticks(&vm, "01"), before, "it has ended");
}

#[test]
fn held_request_is_readable_by_its_effective_context() {
    let mut vm = start(&format!("{HOLD}{RESUME}"));
    assert_eq!(vm.tick_period(), 20);
    let stream = vm.open(&Request::get("/").header("x-key", "a")).unwrap();
    assert!(vm.answer(stream).is_held());
    vm.run(21_000);
    assert!(vm.answer(stream).is_admitted());
    assert_eq!(log_texts(&vm), ["00", "00", "02"]);
    assert_eq!(vm.close(stream).unwrap().status(), 200);
}

#[test]
fn ended_stream_is_no_context() {
    let mut vm = start(&format!("{HOLD}{RESUME}"));
    let stream = vm.open(&Request::get("/")).unwrap();
    vm.close(stream).unwrap();
    vm.run(21_000);
    assert_eq!(
        log_texts(&vm),
        ["02", "02", "02"],
        "what follows hits the root, which has no headers"
    );
}

#[test]
fn just_ended_stream_can_be_resumed_without_effect() {
    let mut host = host(
        r#"(func (export "proxy_on_request_headers") (param $id i32) (param i32 i32) (result i32)
             (call $say (call $effective (i32.sub (local.get $id) (i32.const 1))))
             (call $say (call $continue (i32.const 0)))
             (i32.const 1))"#,
    );
    let mut vm = host.start_vm("").unwrap();
    let first = vm.open(&Request::get("/")).unwrap();
    assert!(
        vm.close(first).unwrap().is_held(),
        "it resumed the root, which is none of its streams"
    );
    let second = vm.open(&Request::get("/")).unwrap();
    assert!(vm.answer(second).is_held(), "it resumed what has gone");
    vm.close(second).unwrap();
    vm.run(1);
    let third = vm.open(&Request::get("/")).unwrap();
    assert!(
        vm.answer(third).is_admitted(),
        "what cannot be named is not chosen: it resumed itself"
    );
    assert_eq!(log_texts(&vm), ["00", "00", "00", "00", "02", "00"]);
}
