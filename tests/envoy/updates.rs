//! The end of Envoy after an update.

use crate::harness::{Gateway, assert_no_trap};

/// Rules that admit everything under / and differ by generation.
pub fn generation(number: u32) -> Gateway {
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
fn envoy_ends_without_a_trap_after_updates() {
    let envoy = generation(0).workers(2).start();
    assert_eq!(envoy.statuses(4, "/", &[]), [200; 4]);
    envoy.update(&generation(1));
    assert_eq!(envoy.statuses(4, "/", &[]), [200; 4]);
    let (status, log) = envoy.quit();
    assert!(status.success(), "Envoy ended with {status}:\n{log}");
    assert_no_trap(&log);
}
