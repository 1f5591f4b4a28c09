//! A listener update under load.

use std::thread;

use crate::harness::{Load, alone, eventually};
use crate::updates::generation;

const UPDATES: u32 = 8;

#[test]
fn no_request_fails_while_rules_change() {
    alone();
    let envoy = generation(0).start();
    let load = Load { connections: 20, rate: 400, seconds: 8, paths: &["/"] };
    let shots = thread::scope(|scope| {
        let shots = scope.spawn(|| load.fire(envoy.port));
        for number in 1..=UPDATES {
            envoy.update(&generation(number));
            eventually("the new rules", || {
                let refused = envoy.get("/closed", &[]);
                let now_in_force = format!(r#""generation-{number}""#);
                refused.header("ratelimit-policy")?.contains(&now_in_force).then_some(())
            });
        }
        shots.join().unwrap()
    });
    assert!(shots.len() > 2_000, "only {} requests", shots.len());
    let failed: Vec<_> = shots.iter().filter(|shot| shot.status != 200).collect();
    assert!(failed.is_empty(), "{} failed: {failed:?}", failed.len());
    assert_eq!(envoy.stat("listener_manager.lds.update_rejected"), Some(0));
    envoy.assert_unharmed();
}
