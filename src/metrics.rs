//! What is counted, and the names that metrics have.
//!
//! Counts are added up in the VM and handed on by the timer. Names are made of the configuration
//! only, never of what clients send: `diana.<namespace>.rule.<rule>.<what>`, from which Envoy's tag
//! regex makes `diana_rule_<what>{namespace="…",rule="…"}`.

use crate::port::Metrics;

/// Decisions of one rule since the last flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Admitted requests that it judged and admits.
    pub allowed: u64,
    /// Requests that it was the first to refuse.
    pub refused: u64,
    /// Requests that it would have refused.
    pub shadow_refused: u64,
    /// Requests judged by an overflow bucket, since the table was full of live callers.
    pub overflow: u64,
}

impl Counts {
    /// Hands the counts on and starts again.
    pub fn flush(&mut self, namespace: &str, rule: &str, metrics: &mut dyn Metrics) {
        let counts = std::mem::take(self);
        for (what, amount) in [
            ("allowed", counts.allowed),
            ("refused", counts.refused),
            ("shadow_refused", counts.shadow_refused),
            ("overflow", counts.overflow),
        ] {
            if amount > 0 {
                metrics.count(&format!("diana.{namespace}.rule.{rule}.{what}"), amount);
            }
        }
    }
}

/// Hands on how many callers a rule's table holds, as the difference to what was `reported`: all
/// workers add to one gauge.
pub fn flush_keys(
    namespace: &str,
    rule: &str,
    reported: &mut usize,
    keys: usize,
    metrics: &mut dyn Metrics,
) {
    let change = keys as i64 - *reported as i64;
    *reported = keys;
    if change != 0 {
        metrics.gauge(&format!("diana.{namespace}.rule.{rule}.keys"), change);
    }
}

/// Hands on how many requests lacked metadata that another filter should have left.
pub fn flush_metadata(namespace: &str, missing: &mut u64, metrics: &mut dyn Metrics) {
    let amount = std::mem::take(missing);
    if amount > 0 {
        metrics.count(&format!("diana.{namespace}.metadata_missing"), amount);
    }
}
