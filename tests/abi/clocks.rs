//! Clocks that misbehave: nothing traps, and what counts by the monotonic clock does not notice.

use fastrand::Rng;

use host::Host;
use host::request::Request;

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: i64 = 3_600 * SECOND as i64;

fn config(scope: &str, algo: &str, unit: &str, rpu: u64) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{actor: device, unit: {unit}, rpu: {rpu}, algo: {algo}, \
         scope: {scope}}}]}}]"
    )
}

fn request() -> Request {
    Request::get("/").header("x-device-id", "ann")
}

/// What became of some thousand requests, with a wall clock that steps by an hour now and then or
/// with one that does not.
fn fates(config: &str, seed: u64, steps: bool) -> Vec<String> {
    let mut random = Rng::with_seed(seed);
    let mut host = Host::new(seed);
    let mut proxy = host.start_proxy(2, config).unwrap();
    let mut fates = Vec::new();
    for _ in 0..2_000 {
        proxy.run(random.u64(0..SECOND / 20));
        let step = [HOUR, -HOUR, 0][random.usize(..3)];
        if random.u8(..50) == 0 && steps {
            host.clock().step_wall(step);
        }
        let answer = proxy.workers[random.usize(..2)].request(&request());
        fates.push(format!("{:?} {:?}", answer.fate, answer.retry_after()));
    }
    fates
}

#[test]
fn steps_of_the_wall_clock_change_nothing_for_what_counts_by_the_other() {
    for scope in ["local", "gateway"] {
        for (seed, algo) in (1..).zip(["SW", "TB", "LB"]) {
            println!("seed {seed}");
            let config = config(scope, algo, "second", 20);
            assert_eq!(fates(&config, seed, true), fates(&config, seed, false), "{scope} {algo}");
        }
    }
}

/// Refused seconds after a window was used up and the wall clock stepped.
fn refused(scope: &str, step: i64) -> u64 {
    let mut host = Host::new(10);
    let mut vm = host.start_vm(&config(scope, "W", "minute", 3)).unwrap();
    assert!((0..3).all(|_| vm.request(&request()).is_admitted()));
    host.clock().step_wall(step);
    let mut seconds = 0;
    while vm.request(&request()).is_refused() {
        vm.run(SECOND);
        seconds += 1;
    }
    assert_eq!((0..9).filter(|_| vm.request(&request()).is_admitted()).count(), 2, "a new window");
    seconds
}

#[test]
fn a_window_ends_at_most_a_unit_after_its_first_request_however_far_the_clock_steps_back() {
    for scope in ["local", "gateway"] {
        let seconds = refused(scope, -HOUR);
        assert!((1..=60).contains(&seconds), "{scope}: {seconds} s");
    }
}

#[test]
fn a_window_ends_when_the_clock_steps_beyond_it() {
    for scope in ["local", "gateway"] {
        let seconds = refused(scope, HOUR);
        // The wall clock is read anew at most once a second.
        assert!(seconds <= 2, "{scope}: {seconds} s");
    }
}

#[test]
fn workers_that_learn_of_a_step_at_different_times_share_one_window() {
    for step in [HOUR, -HOUR] {
        let mut host = Host::new(11);
        let mut proxy = host.start_proxy(2, &config("gateway", "W", "minute", 100)).unwrap();
        let mut send = |worker: usize| proxy.workers[worker].request(&request()).is_admitted();
        // They read the wall clock half a second apart.
        let mut admitted = usize::from(send(0));
        host.advance(SECOND / 2);
        admitted += usize::from(send(1));
        host.clock().step_wall(step);
        for _ in 0..30 {
            host.advance(SECOND / 20);
            admitted += (0..20).filter(|turn| send(turn % 2)).count();
        }
        let most = if step > 0 { 200 } else { 100 };
        assert!((100..=most).contains(&admitted), "{step}: {admitted}");
    }
}

#[test]
fn a_worker_that_is_stopped_between_both_clocks_does_not_shift_its_windows() {
    let mut host = Host::new(12);
    let mut vm = host.start_vm(&config("local", "W", "second", 5)).unwrap();
    let early = SECOND - host.clock().wall() % SECOND + SECOND / 10;
    host.advance(SECOND + early);
    assert!(vm.request(&request()).is_admitted());
    // The wall clock is read anew once a second.
    host.advance(SECOND);
    host.clock().stall(SECOND / 2);
    assert_eq!((0..10).filter(|_| vm.request(&request()).is_admitted()).count(), 5);
}

#[test]
fn a_step_back_is_logged_and_counted() {
    let mut host = Host::new(12);
    let mut vm = host.start_vm(&config("gateway", "W", "minute", 3)).unwrap();
    vm.request(&request());
    host.clock().step_wall(-HOUR);
    vm.run(2 * MINUTE);
    vm.request(&request());
    assert_eq!(host.counter("diana.shop.clock_stepped_back"), Some(1), "{:?}", host.metrics());
    let log = vm.log().join("\n");
    assert!(log.contains("stepped back by 3600 s"), "{log}");
}
