//! Several workers: a `local` rule counts in each by itself.

use crate::harness::{Gateway, Load, alone};

const LIMIT: u32 = 20;

#[test]
fn a_local_rule_admits_its_limit_in_each_worker() {
    alone();
    let envoy = Gateway::with(&format!(
        "limits: [{{Url: /, rules: [{{actor: all, unit: hour, rpu: {LIMIT}, scope: local}}]}}]"
    ))
    .workers(2)
    .start();
    let load = Load { connections: 40, rate: 400, seconds: 2, paths: &["/"] };
    let admitted = load.fire(envoy.port).iter().filter(|shot| shot.status == 200).count();
    // That all 40 connections fall on one worker happens once in 2^39 runs.
    assert_eq!(admitted, 2 * LIMIT as usize);
    envoy.assert_unharmed();
}
