//! What requests turn out to use, where all gateways count together.

use std::time::{Duration, Instant};

use super::{Fleet, GATEWAYS, gateway};
use crate::harness::eventually;
use crate::load::{logins, settling_crowd as crowd, unused};
use crate::settling::upstream::{self, ACT};

/// Longer than an answer takes on a busy machine: whoever goes alone is charged elsewhere.
const TIMEOUT: u64 = 900_000;

/// By which the gateways come together.
const TOGETHER: &str = "
  - {Url: /together, rules: [{actor: all, unit: day, rpu: 1000000, scope: global}]}";

#[test]
fn accounts_are_charged_what_they_used() {
    for algo in ["W", "SW"] {
        let service = upstream::start();
        let rules = crowd::rules(algo, "global") + TOGETHER;
        let fleet = Fleet::start_with(|port, _| gateway(TIMEOUT, &rules, port).before(&service));
        fleet.comes_together("/together");
        crowd::play(&fleet.envoys, &service);
        fleet.assert_unharmed();
    }
}

#[test]
fn a_bucket_of_which_nothing_was_used_is_full() {
    let service = upstream::start();
    let rules = unused::rules("global") + TOGETHER;
    let fleet = Fleet::start_with(|port, _| gateway(TIMEOUT, &rules, port).before(&service));
    fleet.comes_together("/together");
    unused::play(&fleet.envoys);
    fleet.assert_unharmed();
}

#[test]
fn five_wrong_passwords_and_never_a_sixth() {
    let service = upstream::start();
    let rules = logins::rules("global") + TOGETHER;
    let fleet = Fleet::start_with(|port, _| gateway(TIMEOUT, &rules, port).before(&service));
    fleet.comes_together("/together");
    logins::play(&fleet.envoys);
    fleet.assert_unharmed();
}

/// What counts in one gateway leads to a ban in all of them, and after a relapse to a longer one.
#[test]
fn wrong_passwords_lead_to_bans_longer_each_time() {
    let service = upstream::start();
    let rules = format!(
        "limits:
  - Url: /login
    rules:
      - {{name: logins, actor: address, unit: minute, rpu: 30, algo: SW, scope: global, count: {{status: [401]}},
         ban: {{after: 4, within: 10s, for: 2s, max: 8s, halve_after: 1m, on: counted}}}}{TOGETHER}"
    );
    let fleet = Fleet::start_with(|port, _| gateway(TIMEOUT, &rules, port).before(&service));
    fleet.comes_together("/together");
    let login = |gateway: usize, status: u16| {
        let act = format!("sleep 0 status {status}");
        fleet.envoys[gateway].get("/login", &[(ACT, &act)])
    };
    for length in [2, 4] {
        for number in 0..4 {
            assert_eq!(login(number % GATEWAYS, 401).status, 401, "banned after {number}");
        }
        let begun = Instant::now();
        for gateway in 0..GATEWAYS {
            let told = eventually("a ban", || {
                let answer = login(gateway, 200);
                answer.refused().then(|| answer.header("retry-after")?.parse::<u64>().ok())?
            });
            assert!(told <= length, "{told} of {length} s");
            println!("{length} s, gateway {gateway}: known after {:?}", begun.elapsed());
        }
        for gateway in 0..GATEWAYS {
            eventually("its end", || (!login(gateway, 200).refused()).then_some(()));
        }
        let lasted = begun.elapsed();
        assert!(lasted >= Duration::from_secs(length), "{lasted:?} of {length} s");
    }
    fleet.assert_unharmed();
}
