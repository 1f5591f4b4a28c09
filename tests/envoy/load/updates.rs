//! Updates of a listener under load.

use std::time::Duration;

use crate::harness::{OpenLoad, eventually, request};
use crate::updates::generation;

const UPDATES: u32 = 40;

#[test]
fn no_request_fails_while_rules_change() {
    let envoy = generation(0).start();
    let load = OpenLoad {
        gateways: &[envoy.port],
        rate: 400,
        lasting: Duration::from_secs(60),
        connections: 20,
        requests: &[request("GET", "/", &[])],
    };
    let (hits, ()) = load.fire_during(|| {
        for number in 1..=UPDATES {
            envoy.update(&generation(number));
            eventually("the new rules", || {
                let refused = envoy.get("/closed", &[]);
                let name = format!(r#""generation-{number}""#);
                refused.header("ratelimit-policy")?.contains(&name).then_some(())
            });
        }
    });
    let failed: Vec<_> = hits.iter().filter(|hit| hit.status != 200).collect();
    println!("{} requests during {UPDATES} updates", hits.len());
    assert!(failed.is_empty(), "{} failed: {failed:?}", failed.len());
    assert_eq!(envoy.stat("listener_manager.lds.update_rejected"), Some(0));
    envoy.assert_unharmed();
}
