//! Bans by the clock, and under a flood of addresses that never come again.

use std::thread;

use crate::bans::{ask, left, trap};
use crate::harness::{Client, Gateway, Http2, alone, eventually, request};
use crate::metrics::settles;

const NEW: usize = 1_000_000;
const BATCH: usize = 100;

#[test]
fn a_million_new_addresses_lift_no_ban() {
    alone();
    let rules = trap("gateway", "after: 5, within: 1h, for: 1h");
    let envoy = Gateway::with(&rules).workers(2).without_access_log().start();
    let banned: Vec<String> = (0..1_000).map(|number| format!("bad-{number}")).collect();
    for account in &banned {
        (0..5).for_each(|_| _ = ask(&envoy, account));
    }
    for account in &banned {
        eventually("the ban", || left(&ask(&envoy, account)).map(drop));
    }
    thread::scope(|scope| {
        for part in 0..8 {
            let port = envoy.port;
            scope.spawn(move || {
                let mut client = Http2::connect(port).unwrap();
                for batch in (part * NEW / 8..(part + 1) * NEW / 8).step_by(BATCH) {
                    for number in batch..batch + BATCH {
                        let account = format!("new-{number}");
                        client.request("/trap", &[("x-account-id", &account)], None);
                    }
                    client.flush().unwrap();
                    (0..BATCH).for_each(|_| _ = client.answer().unwrap());
                }
            });
        }
    });
    banned.iter().for_each(|account| assert!(left(&ask(&envoy, account)).is_some(), "{account}"));
    envoy.assert_unharmed();
}

#[test]
fn a_ban_ends_and_a_relapse_lasts_longer() {
    let rules = trap("local", "after: 3, within: 5s, for: 1s, max: 4s, halve_after: 1m");
    let envoy = Gateway::with(&rules).start();
    let mut client = Client::connect(envoy.port).unwrap();
    let bytes = request("GET", "/trap", &[("x-account-id", "eve")]);
    let mut ask = || left(&client.send(&bytes).unwrap());
    let mut counted = 0;
    for length in [1, 2, 4, 4] {
        (counted..3).for_each(|_| assert_eq!(ask(), None));
        assert_eq!(ask(), Some(length));
        eventually("the end of the ban", || ask().is_none().then_some(()));
        // That was refused by the rule again.
        counted = 1;
    }
    settles(&envoy, "rule.trap.bans", 4);
    envoy.assert_unharmed();
}
