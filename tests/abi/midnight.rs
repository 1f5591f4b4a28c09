//! Daily quotas of many accounts over many midnights, by a clock that the test sets.

use std::collections::HashMap;

use fastrand::Rng;

use crate::host::Host;
use crate::host::request::Request;

const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;
const PERMITS: u32 = 3;

fn config(quota: &str) -> String {
    format!(
        "time_zone: '+08:00'\nlimits: [{{Url: /, rules: [{{name: r, actor: device, unit: day, \
         rpu: {PERMITS}, algo: W, scope: local{quota}}}]}}]"
    )
}

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
