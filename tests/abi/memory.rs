//! Memory is bounded, and callers get no fresh state from a full table.

use host::Host;
use host::request::Request;
use host::vm::Vm;

fn config(keys: usize, algo: &str, rpu: u64) -> String {
    format!(
        "keys: {keys}\n\
         limits: [{{Url: /, rules: [{{name: r, actor: device, unit: day, rpu: {rpu}, \
         algo: {algo}, scope: local}}]}}]"
    )
}

fn send(vm: &mut Vm, caller: &str) -> bool {
    vm.request(&Request::get("/").header("x-device-id", caller)).is_admitted()
}

const PAGE: usize = 65_536;

/// Growth of the module's memory per caller, beyond that with a table for a single caller.
fn bytes_per_caller(algo: &str) -> usize {
    const CALLERS: usize = 100_000;
    let memory = |keys, callers| {
        let mut host = Host::new(1);
        let mut vm = host.start_vm(&config(keys, algo, 100_000)).unwrap();
        for caller in 0..callers {
            assert!(send(&mut vm, &format!("caller {caller}")), "{algo}: {caller}");
        }
        vm.run(2_000_000);
        let live = host.gauge("diana.shop.rule.r.keys");
        assert_eq!(live, Some(keys as u64), "{algo}: {:?}", host.metrics());
        vm.memory()
    };
    let (large, small) = (memory(CALLERS, CALLERS), memory(1, 2_000));
    // Memory grows by whole pages, so each measurement may differ by one.
    let bytes = (large - small).saturating_sub(2 * PAGE).div_ceil(CALLERS);
    println!("{algo}: {bytes} bytes");
    bytes
}

#[test]
fn fixed_window_caller_takes_at_most_64_bytes() {
    let bytes = bytes_per_caller("W");
    assert!(bytes <= 64, "{bytes}");
}

#[test]
fn token_bucket_caller_takes_at_most_64_bytes() {
    let bytes = bytes_per_caller("TB");
    assert!(bytes <= 64, "{bytes}");
}

#[test]
fn sliding_window_caller_takes_four_more_bytes_per_slice() {
    let bytes = bytes_per_caller("SW, slices: 20");
    assert!(bytes <= 64 + 20 * 4, "{bytes}");
}

#[test]
fn flood_of_long_callers_grows_no_memory() {
    let mut host = Host::new(4);
    let mut vm = host.start_vm(&config(1_000, "W", 3)).unwrap();
    let mut flood = |from: usize| {
        for caller in from..from + 5_000 {
            send(&mut vm, &format!("{caller:0>2000}"));
        }
        vm.memory()
    };
    let early = flood(0);
    assert_eq!(flood(5_000), early);
}
