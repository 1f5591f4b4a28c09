//! Held requests.

mod uploads;

use crate::harness::Gateway;

/// A leaky bucket of `rpu` slots per second for all callers together, with a long queue.
pub fn line(scope: &str, rpu: u32) -> Gateway {
    Gateway::with(&format!(
        "limits: [{{Url: /, rules: [{{name: line, actor: all, unit: second, rpu: {rpu}, algo: LB, \
         scope: {scope}, max_delay: 20s, max_queue: 1000000}}]}}]"
    ))
}
