//! Clients that leave while they are held: they are forgotten, and nobody else is worse off.

use fastrand::Rng;

use super::{LATEST, MILLISECOND, SECOND, assert_slots, config, open, start};
use host::Host;
use host::vm::Vm;

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

/// Two workers, clients that come and go: whoever stays goes on, and never too many do.
#[test]
fn lines_of_which_clients_leave_at_random_stay_within_the_bound() {
    const RPU: u64 = 200;
    for (seed, scope, workers) in [(32, "local", 1), (33, "gateway", 2)] {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut host = Host::new(seed);
        let mut proxy = host.start_proxy(workers, &config(scope, RPU, "")).unwrap();
        let mut streams = Vec::new();
        let mut left = 0;
        for _ in 0..4_000 {
            proxy.run(random.u64(0..=SECOND / RPU));
            let worker = random.usize(..workers);
            if random.u8(..3) == 0 && !streams.is_empty() {
                let (worker, stream) = streams.swap_remove(random.usize(..streams.len()));
                let vm: &mut Vm = &mut proxy.workers[worker];
                left += usize::from(vm.answer(stream).is_held());
                vm.close(stream).unwrap();
                continue;
            }
            let stream = open(&mut proxy.workers[worker], "ann");
            if !proxy.workers[worker].answer(stream).is_refused() {
                streams.push((worker, stream));
            }
        }
        proxy.run(2 * SECOND);
        assert!(left > 200, "too tame: {left} left");
        let departure = |(worker, stream): &(usize, u32)| {
            let answer = proxy.workers[*worker].answer(*stream);
            answer.went_on.unwrap_or_else(|| panic!("it still waits: {answer:?}"))
        };
        let mut departures: Vec<u64> = streams.iter().map(departure).collect();
        departures.sort_unstable();
        for (index, first) in departures.iter().enumerate() {
            for (more, last) in departures[index..].iter().enumerate() {
                let allowed = (last - first + LATEST) * RPU / SECOND + 1;
                let count = more as u64 + 1;
                assert!(count <= allowed, "{scope}: {count} in {} µs", last - first);
            }
        }
        assert!(!proxy.workers.iter_mut().any(Vm::has_timer));
    }
}
