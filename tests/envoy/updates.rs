//! A listener update under load, and the end of Envoy.

use std::thread;

use crate::harness::{Gateway, Load, alone, assert_no_trap, eventually};

const UPDATES: u32 = 8;

/// Rules that admit everything under / and differ from one generation to the next.
fn generation(number: u32) -> Gateway {
    Gateway::with(&format!(
        "
limits:
  - Url: /
    rules: [{{name: wide, actor: all, unit: second, rpu: {}, scope: local}}]
  - Url: /closed
    rules: [{{name: generation-{number}, actor: all, unit: hour, rpu: 0, scope: local}}]
",
        1_000_000 + number
    ))
}

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

#[test]
fn envoy_ends_without_a_trap() {
    let envoy = generation(0).workers(2).start();
    assert_eq!(envoy.statuses(4, "/", &[]), [200; 4]);
    envoy.update(&generation(1));
    assert_eq!(envoy.statuses(4, "/", &[]), [200; 4]);
    let (status, log) = envoy.quit();
    assert!(status.success(), "Envoy ended with {status}:\n{log}");
    assert_no_trap(&log);
}
