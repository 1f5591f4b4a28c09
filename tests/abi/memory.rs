//! Memory is bounded, and a full table hands nobody a fresh bucket.

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

/// What the guest's memory grew by, beyond what requests take with a table of a single caller.
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
    // Memory grows by whole pages; each measurement may be off by one.
    let bytes = (large - small).saturating_sub(2 * PAGE).div_ceil(CALLERS);
    println!("{algo}: {bytes} bytes");
    bytes
}

#[test]
fn a_live_caller_of_a_fixed_window_takes_at_most_64_bytes() {
    let bytes = bytes_per_caller("W");
    assert!(bytes <= 64, "{bytes}");
}

#[test]
fn a_live_caller_of_a_token_bucket_takes_at_most_64_bytes() {
    let bytes = bytes_per_caller("TB");
    assert!(bytes <= 64, "{bytes}");
}

#[test]
fn a_live_caller_of_a_sliding_window_takes_four_bytes_more_a_slice() {
    let bytes = bytes_per_caller("SW, slices: 20");
    assert!(bytes <= 64 + 20 * 4, "{bytes}");
}

#[test]
fn a_flood_of_newcomers_gives_no_refused_caller_a_fresh_bucket() {
    let (keys, rpu) = (500, 3);
    for algo in ["W", "SW", "TB"] {
        let mut host = Host::new(2);
        let mut vm = host.start_vm(&config(keys, algo, rpu)).unwrap();
        let victims = ["ann", "bob", "cyd"];
        for victim in victims {
            assert_eq!((0..9).filter(|_| send(&mut vm, victim)).count() as u64, rpu, "{algo}");
        }
        let mut admitted = 0;
        for round in 0..2 * rpu {
            for caller in 0..2 * keys {
                host.advance(1);
                admitted += u64::from(send(&mut vm, &format!("flood {caller}")));
            }
            for victim in victims {
                assert!(!send(&mut vm, victim), "{algo}: {victim} in round {round}");
            }
        }
        let own = (keys - victims.len()) as u64;
        let sharing = 2 * keys as u64 - own;
        let most = (own + sharing.min(1024)) * rpu;
        assert!((own * rpu..=most).contains(&admitted), "{algo}: {admitted} of {most}");
        vm.run(2_000_000);
        let overflow = host.counter("diana.shop.rule.r.overflow");
        assert_eq!(overflow, Some(sharing * 2 * rpu), "{algo}");
        assert_eq!(host.gauge("diana.shop.rule.r.keys"), Some(keys as u64), "{algo}");
    }
}

#[test]
fn a_caller_whose_state_has_run_out_makes_room() {
    let mut host = Host::new(3);
    let config = config(100, "W", 3).replace("day", "second");
    let mut vm = host.start_vm(&config).unwrap();
    for caller in 0..2_000 {
        assert!(send(&mut vm, &format!("{caller}")));
        host.advance(20_000);
    }
    vm.run(2_000_000);
    assert_eq!(host.counter("diana.shop.rule.r.overflow"), None, "at most 50 are live at a time");
}

#[test]
fn a_flood_of_millions_of_bytes_leaves_memory_where_it_was() {
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
