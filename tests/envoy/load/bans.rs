//! A million callers that send one request each.

use std::thread;

use crate::bans::{ask, left, trap};
use crate::harness::{Gateway, Http2, eventually};

const NEW: usize = 1_000_000;
const BATCH: usize = 100;

#[test]
fn a_million_new_callers_lift_no_ban() {
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
