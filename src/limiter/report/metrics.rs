//! The metrics and their names.
//!
//! The VM accumulates counts, and the timer flushes them. Names contain only configured names,
//! never data of clients: `diana.<namespace>.rule.<rule>.<what>`, which Envoy's tag regex converts
//! to `diana_rule_<what>{namespace="…",rule="…"}`.

use diana_policy::Scope;
use diana_policy::port::Metrics;
use diana_policy::time::Micros;
use diana_request::settling::UnknownUsage;
use diana_store::backend::BackendCounts;
use diana_store::refusal::Reason;
use diana_store::slots::Traffic;

/// Decisions of one rule since the last flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleCounts {
    /// Admitted requests that the rule evaluated and admits.
    pub allowed: u64,
    /// Requests that it was the first to refuse.
    pub refused: u64,
    /// Requests that it would have refused.
    pub shadow_refused: u64,
    /// Requests that it marked, since they exceeded its limit.
    pub over: u64,
    /// Requests that it refused because the caller is banned.
    pub banned: u64,
    /// Requests that it refused because Redis was unavailable.
    pub unavailable: u64,
    /// Requests that it decided in degraded mode, whatever the decision.
    pub degraded: u64,
    /// Bans that started.
    pub bans: u64,
    /// Those of `shadow_refused` that a ban would have refused.
    pub shadow_banned: u64,
    /// Bans that would have started outside of shadow.
    pub shadow_bans: u64,
    /// Requests that it held until their turn.
    pub held: u64,
    /// Requests that it skipped, since they have no value for its actor.
    pub absent: u64,
    /// Requests that another rule refused before this one was evaluated.
    pub not_asked: u64,
    /// Requests that it admits, and another rule refused.
    pub refused_by_others: u64,
    /// Requests that it would have held if it were not in shadow.
    pub shadow_held: u64,
    /// Requests that it admitted near its limit.
    pub near: u64,
    /// Requests that it refused while other workers held leases of the caller.
    pub leased: u64,
    /// Requests of hot callers.
    pub hot: u64,
    /// Requests whose data had no limit.
    pub limit_missing: u64,
    /// Requests decided by an overflow bucket, since the table was full of live callers.
    pub overflow: u64,
    /// Requests whose charges were settled at their end.
    pub settled: u64,
    /// Permits returned by settlements.
    pub refunded: u64,
    /// Permits charged by settlements beyond the reservation.
    pub debt: u64,
    /// Requests without settlement, since too many were open.
    pub unsettled: u64,
    /// Settled requests whose usage is unknown, by reason.
    pub unknown: [u64; UNKNOWN.len()],
    /// The change of the number of requests in flight.
    pub in_flight: i64,
}

/// Requests since the last flush, under any rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounts {
    /// Exempt from all rules or some of them.
    pub exempt: u64,
    /// With an address that a rule or condition reads, and the host does not know.
    pub without_address: u64,
    /// Without the metadata that another filter should have set.
    pub without_metadata: u64,
}

impl RequestCounts {
    /// Adds the counts to the metrics and resets them.
    pub fn flush(&mut self, namespace: &str, metrics: &dyn Metrics) {
        let counts = std::mem::take(self);
        for (what, amount) in [
            ("exempt", counts.exempt),
            ("address_missing", counts.without_address),
            ("metadata_missing", counts.without_metadata),
        ] {
            if amount > 0 {
                metrics.count(&format!("diana.{namespace}.{what}"), amount);
            }
        }
    }
}

/// The reasons for unknown usage, and their names.
const UNKNOWN: [(UnknownUsage, &str); 6] = [
    (UnknownUsage::ClientLeft, "client_left"),
    (UnknownUsage::Cut, "cut"),
    (UnknownUsage::Unanswered, "unanswered"),
    (UnknownUsage::Error, "error"),
    (UnknownUsage::Absent, "absent"),
    (UnknownUsage::Unusable, "unusable"),
];

impl RuleCounts {
    /// Counts an admitted request, which the rule holds for this many ticks.
    #[inline]
    pub fn admit(&mut self, wait: Micros) {
        self.allowed += 1;
        self.held += u64::from(wait > 0);
    }

    /// Counts a request that the rule is the first to refuse.
    pub fn refuse(&mut self, reason: Reason) {
        match reason {
            Reason::Banned => self.banned += 1,
            Reason::Unavailable => self.unavailable += 1,
            Reason::Used | Reason::Outstanding | Reason::Busy => self.refused += 1,
        }
    }

    /// Counts a settlement: the reserved permits, and the used ones, which may be an estimate.
    pub fn settle(&mut self, reserved: u64, used: u64, unknown: Option<UnknownUsage>) {
        self.settled += 1;
        self.refunded += reserved.saturating_sub(used);
        self.debt += used.saturating_sub(reserved);
        for ((reason, _), count) in UNKNOWN.iter().zip(&mut self.unknown) {
            *count += u64::from(unknown == Some(*reason));
        }
    }

    /// Adds the counts to the metrics and resets them.
    pub fn flush(&mut self, namespace: &str, rule: &str, metrics: &dyn Metrics) {
        let counts = std::mem::take(self);
        for (what, amount) in [
            ("allowed", counts.allowed),
            ("refused", counts.refused),
            ("shadow_refused", counts.shadow_refused),
            ("over", counts.over),
            ("not_asked", counts.not_asked),
            ("refused_by_others", counts.refused_by_others),
            ("absent", counts.absent),
            ("banned", counts.banned),
            ("unavailable", counts.unavailable),
            ("degraded", counts.degraded),
            ("bans", counts.bans),
            ("shadow_banned", counts.shadow_banned),
            ("shadow_bans", counts.shadow_bans),
            ("held", counts.held),
            ("shadow_held", counts.shadow_held),
            ("near", counts.near),
            ("lent", counts.leased),
            ("hot", counts.hot),
            ("limit_missing", counts.limit_missing),
            ("overflow", counts.overflow),
            ("settled", counts.settled),
            ("refunded", counts.refunded),
            ("debt", counts.debt),
            ("unsettled", counts.unsettled),
        ] {
            if amount > 0 {
                metrics.count(&format!("diana.{namespace}.rule.{rule}.{what}"), amount);
            }
        }
        move_gauge(namespace, rule, "in_flight", counts.in_flight, metrics);
        for ((_, reason), amount) in UNKNOWN.iter().zip(counts.unknown) {
            if amount > 0 {
                metrics.count(&format!("diana.{namespace}.rule.{rule}.untold_{reason}"), amount);
            }
        }
    }
}

/// Adds the change of the number of callers in a rule's table. All workers share one gauge.
pub fn flush_keys(namespace: &str, rule: &str, change: i64, metrics: &dyn Metrics) {
    move_gauge(namespace, rule, "keys", change, metrics);
}

/// Adds the change of the number of a rule's hot callers.
pub fn flush_hot_keys(namespace: &str, rule: &str, change: i64, metrics: &dyn Metrics) {
    move_gauge(namespace, rule, "hot_keys", change, metrics);
}

/// Sets the gauges of a rule's limit in its scope: permits, ticks of the window, and callers in its
/// tables. Every worker sets the same values; all zeros once the rule is removed.
pub fn report_limit(
    namespace: &str,
    rule: &str,
    scope: Scope,
    [limit, window, keys]: [u64; 3],
    metrics: &dyn Metrics,
) {
    let limited = match scope {
        Scope::Local => "limit_local",
        Scope::Gateway => "limit_gateway",
        Scope::Global => "limit_global",
    };
    for (what, value) in [(limited, limit), ("window_us", window), ("keys_limit", keys)] {
        metrics.set(&format!("diana.{namespace}.rule.{rule}.{what}"), value);
    }
}

/// Sets the gauge of documents that decide about no request.
pub fn report_disabled(namespace: &str, is_disabled: bool, metrics: &dyn Metrics) {
    metrics.set(&format!("diana.{namespace}.disabled"), is_disabled.into());
}

fn move_gauge(namespace: &str, rule: &str, what: &str, change: i64, metrics: &dyn Metrics) {
    if change != 0 {
        metrics.gauge(&format!("diana.{namespace}.rule.{rule}.{what}"), change);
    }
}

/// Adds the accesses to shared data.
pub fn flush_traffic(namespace: &str, traffic: &Traffic, metrics: &dyn Metrics) {
    for (what, count) in [
        ("writes", &traffic.writes),
        ("conflicts", &traffic.conflicts),
        ("exhausted", &traffic.exhausted),
        ("foreign", &traffic.corrupt),
        ("emptied", &traffic.emptied),
    ] {
        let amount = count.take();
        if amount > 0 {
            metrics.count(&format!("diana.{namespace}.shared.{what}"), amount);
        }
    }
}

/// Adds the change of the number of workers that count global rules in a `mode`: `fleet` or
/// `gateway`.
pub fn flush_mode(namespace: &str, mode: &str, change: i64, metrics: &dyn Metrics) {
    metrics.gauge(&format!("diana.{namespace}.mode.{mode}"), change);
}

/// Adds the counts of the connection to Redis.
pub fn flush_fleet(namespace: &str, counts: &BackendCounts, metrics: &dyn Metrics) {
    for (what, amount) in [
        ("trips", counts.calls),
        ("asks", counts.asks),
        ("foreign", counts.corrupt),
        ("apart", counts.apart),
        ("split", counts.split),
        ("unsettled", counts.unsettled),
    ] {
        if amount > 0 {
            metrics.count(&format!("diana.{namespace}.fleet.{what}"), amount);
        }
    }
    if counts.changes > 0 {
        metrics.count(&format!("diana.{namespace}.mode.changes"), counts.changes);
    }
    for (name, amount) in &counts.failures {
        metrics.count(&format!("diana.{namespace}.fleet.failed.{name}"), *amount);
    }
}
