//! Exactly what product promises, no more and, where it says so, no less: every decision of the
//! module under random arrivals over simulated hours.

mod arrivals;
mod bound;
mod gateway;
mod model;
mod rule;
mod run;

use host::Host;
use host::request::Request;
use rule::{DAY, HOUR, MINUTE, Rule, SECOND};
use run::check;

const REQUESTS: usize = 3_000;

#[test]
fn fixed_window() {
    for (seed, rule) in (100..).zip([
        Rule::new("W", SECOND, 10),
        Rule::new("W", SECOND, 1),
        Rule::new("W", MINUTE, 100).cost(3),
        Rule::new("W", HOUR, 50).zone(5 * 60 + 30),
        Rule::new("W", DAY, 20).zone(8 * 60),
        Rule::new("W", DAY, 20).zone(-(3 * 60 + 30)),
        Rule::new("W", 7 * SECOND, 10).zone(8 * 60),
        Rule::new("W", 90 * MINUTE, 20).zone(5 * 60 + 45),
        Rule::new("W", 7 * DAY, 20).zone(60),
        Rule::new("W", 31 * DAY, 20),
    ]) {
        check(rule, REQUESTS, seed);
    }
}

#[test]
fn sliding_window() {
    for (seed, rule) in (200..).zip([
        Rule::new("SW", SECOND, 10),
        Rule::new("SW", SECOND, 50).slices(60),
        Rule::new("SW", SECOND, 7).slices(7),
        Rule::new("SW", MINUTE, 100).slices(1).cost(3),
        Rule::new("SW", HOUR, 20).slices(13),
        Rule::new("SW", 7 * SECOND, 20),
        Rule::new("SW", 31 * DAY, 20),
    ]) {
        check(rule, REQUESTS, seed);
    }
}

#[test]
fn token_bucket() {
    for (seed, rule) in (300..).zip([
        Rule::new("TB", SECOND, 10),
        Rule::new("TB", SECOND, 3).burst(7),
        Rule::new("TB", SECOND, 1_000_000).burst(2),
        Rule::new("TB", MINUTE, 7).burst(100).cost(9),
        Rule::new("TB", DAY, 100_000).burst(1),
        Rule::new("TB", 90 * MINUTE, 20),
        Rule::new("TB", 31 * DAY, 999_999_937).burst(1_000_000_000).cost(300_000_000),
        Rule::new("TB", DAY, 999_999_937).burst(1_000_000_000).cost(300_000_000),
    ]) {
        check(rule, REQUESTS, seed);
    }
}

#[test]
fn saturated_sliding_window_admits_its_share() {
    for (rpu, slices) in [(100, 10), (100, 1), (60, 60), (7, 3)] {
        let rule = Rule::new("SW", SECOND, rpu).slices(slices);
        let mut host = Host::new(500 + rpu + slices);
        let mut vm = host.start_vm(&rule.config()).unwrap();
        let request = Request::get("/").header("x-device-id", "ann");
        let (units, pace) = (20, SECOND / rpu / 3);
        let mut admitted = 0;
        for _ in 0..units * SECOND / pace {
            host.advance(pace);
            admitted += u64::from(vm.request(&request).is_admitted());
        }
        let share = units * rpu * slices / (slices + 1);
        // The run need not be a whole number of the ring's turns.
        assert!(admitted + rpu >= share, "{rule:?}: {admitted} of {share}");
    }
}

#[test]
fn zero_permits_refuse_everything_and_never_say_when_to_come_back() {
    for algo in ["W", "SW", "TB", "LB"] {
        let mut host = Host::new(600);
        let mut vm = host.start_vm(&Rule::new(algo, MINUTE, 0).config()).unwrap();
        for _ in 0..10 {
            let answer = vm.request(&Request::get("/").header("x-device-id", "ann"));
            assert_eq!((answer.status(), answer.retry_after()), (503, None), "{algo}");
            host.advance(MINUTE);
        }
    }
}

#[test]
fn a_window_survives_a_wall_clock_that_steps_back_for_one_unit_at_most() {
    let rule = Rule::new("W", MINUTE, 3);
    let mut host = Host::new(700);
    let mut vm = host.start_vm(&rule.config()).unwrap();
    let mut send = || vm.request(&Request::get("/").header("x-device-id", "ann")).is_admitted();
    assert!(send() && send() && send());
    host.clock().step_wall(-(10 * MINUTE as i64));
    let mut refused = 0;
    while !send() {
        host.advance(SECOND);
        refused += 1;
    }
    assert!((1..=60).contains(&refused), "refused for {refused} s");
}

#[test]
fn a_refused_request_charges_no_rule() {
    let rules = "[{actor: all, unit: day, rpu: 3, algo: W, scope: local},
                  {actor: device, unit: day, rpu: 1, algo: TB, scope: local}]";
    let config = format!("limits: [{{Url: /, rules: {rules}}}]");
    let mut vm = Host::new(800).start_vm(&config).unwrap();
    let mut send = |caller| vm.request(&Request::get("/").header("x-device-id", caller));
    assert!(send("ann").is_admitted());
    assert!((0..10).all(|_| send("ann").is_refused()));
    assert!(send("bob").is_admitted() && send("cyd").is_admitted(), "two of three were left");
    assert!(send("dan").is_refused());
}
