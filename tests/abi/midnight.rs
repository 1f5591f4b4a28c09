//! Daily quotas of many accounts over many midnights, by a clock that the test sets.

use std::collections::HashMap;

use fastrand::Rng;

use host::Host;
use host::request::Request;

const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;
const PERMITS: u32 = 3;

fn config(quota: &str) -> String {
    format!(
        "time_zone: '+08:00'\nlimits: [{{Url: /, rules: [{{name: r, actor: device, unit: day, \
         rpu: {PERMITS}, algo: W, scope: local{quota}}}]}}]"
    )
}

const QUOTA_ALONE: &str = "algo: W, scope: local, quota: {accounts: 20000, error: 0.0001}";
const QUOTA: &str = ", quota: {accounts: 20000, error: 0.0001}";

fn request(account: u32) -> Request {
    Request::get("/").header("x-device-id", format!("account {account}"))
}

#[test]
fn ten_midnights_give_what_the_oracle_says_in_the_memory_of_the_first() {
    for seed in 1..3 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut host = Host::new(seed);
        let mut proxy = host.start_proxy(2, &config(QUOTA)).unwrap();
        let mut given = [HashMap::new(), HashMap::new()];
        let (mut day, mut memory) = (0, Vec::new());
        let local = |host: &Host| host.clock().wall() + 8 * 3_600 * SECOND;
        for round in 0..10 {
            let midnight = DAY - local(&host) % DAY;
            proxy.run(midnight.saturating_sub(SECOND));
            for _ in 0..3_000 {
                let to_midnight = DAY - local(&host) % DAY;
                let step = match random.u8(..100) {
                    0 if to_midnight < SECOND => to_midnight,
                    1 if to_midnight < SECOND => to_midnight - 1,
                    _ => random.u64(0..2_000),
                };
                host.advance(step);
                if local(&host) / DAY != day {
                    day = local(&host) / DAY;
                    given = [HashMap::new(), HashMap::new()];
                }
                // The second worker sleeps through every other midnight.
                let worker = if round % 2 == 0 { random.usize(..2) } else { 0 };
                let account = random.u32(..400);
                let used = given[worker].entry(account).or_insert(0);
                let answer = proxy.workers[worker].request(&request(account));
                assert_eq!(answer.is_admitted(), *used < PERMITS, "{used} used in round {round}");
                if answer.is_admitted() {
                    *used += 1;
                } else {
                    let seconds = (DAY - local(&host) % DAY).div_ceil(SECOND);
                    assert_eq!(answer.retry_after(), Some(seconds));
                }
            }
            memory.push(proxy.workers[0].memory());
        }
        assert!(memory.iter().all(|bytes| *bytes == memory[0]), "{memory:?}");
    }
}

/// 29 March, 25 October, its week, October and November 2026 in Berlin: when they begin, and how long they are.
#[test]
fn windows_last_as_long_as_the_calendar_says() {
    let hours = |hours: u64| hours * 3_600;
    let mut times = Vec::new();
    for algo_and_more in ["algo: W, scope: local", "algo: W", QUOTA_ALONE] {
        for (unit, begins, length) in [
            ("day", 1_774_738_800, hours(23)),
            ("day", 1_792_879_200, hours(25)),
            ("24h", 1_792_969_200, hours(24)),
            ("week", 1_792_360_800, hours(7 * 24 + 1)),
            ("month", 1_790_805_600, hours(31 * 24 + 1)),
            ("month", 1_793_487_600, hours(30 * 24)),
            ("36h", 1_793_487_600, hours(36)),
        ] {
            if algo_and_more != QUOTA_ALONE || unit == "day" {
                times.push((algo_and_more, unit, begins, length));
            }
        }
    }
    for (more, unit, begins, length) in times {
        let mut host = Host::new(begins);
        let config = format!(
            "time_zone: CET-1CEST,M3.5.0,M10.5.0/3\nlimits: [{{Url: /, rules: [{{name: r, actor: device, unit: {unit}, \
             rpu: 2, {more}}}]}}]"
        );
        let wall = host.clock().wall();
        host.clock().step_wall((begins * SECOND).cast_signed() - wall.cast_signed());
        let mut vm = host.start_vm(&config).unwrap();
        for _ in 0..2 {
            assert!(vm.request(&request(1)).is_admitted(), "{unit} {more}");
        }
        assert_eq!(vm.request(&request(1)).retry_after(), Some(length), "{unit} {more}");
        host.advance(length * SECOND - 1);
        assert_eq!(vm.request(&request(1)).retry_after(), Some(1), "{unit} {more}");
        host.advance(1);
        assert!(vm.request(&request(1)).is_admitted(), "{unit} {more}");
    }
}

#[test]
fn a_quota_asks_nothing_of_the_host_that_a_rule_without_does_not() {
    let calls = |quota| {
        let mut host = Host::new(9);
        let mut vm = host.start_vm(&config(quota)).unwrap();
        assert!(vm.request(&request(1)).is_admitted());
        vm.start_counting();
        assert!(vm.request(&request(1)).is_admitted());
        let (calls, fuel) = vm.counted();
        (format!("{calls:?}"), fuel)
    };
    let ((with, fuel), (without, less)) = (calls(QUOTA), calls(""));
    assert_eq!(with, without);
    println!("{fuel} of fuel, {less} without");
    assert!(fuel < less + 3_000, "{fuel}, and {less} without");
}
