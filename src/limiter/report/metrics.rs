//! Counts between two flushes.

use diana_policy::port::Metrics;
use diana_policy::time::Micros;
use diana_policy::{Metric, Scope};
use diana_request::settling::UnknownUsage;
use diana_store::backend::BackendCounts;
use diana_store::refusal::Reason;
use diana_store::slots::Traffic;

/// The changes of the metrics that one rule sums up, since the last flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleCounts([i64; Metric::SUMS]);

impl Default for RuleCounts {
    fn default() -> RuleCounts {
        RuleCounts([0; Metric::SUMS])
    }
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
        let counts = [
            (Metric::Exempt, counts.exempt),
            (Metric::AddressMissing, counts.without_address),
            (Metric::MetadataMissing, counts.without_metadata),
        ];
        add_all(&counts, &[namespace], metrics);
    }
}

impl RuleCounts {
    /// Adds to a metric of the rule.
    #[inline(always)]
    pub fn add(&mut self, metric: Metric, change: impl Into<i64>) {
        if let Some(sum) = self.0.get_mut(metric as usize) {
            *sum = sum.wrapping_add(change.into());
        }
    }

    /// Adds permits to a metric of the rule.
    fn add_permits(&mut self, metric: Metric, permits: u64) {
        self.add(metric, permits.cast_signed());
    }

    /// Returns true if it counts requests.
    pub(crate) fn has_requests(&self) -> bool {
        self.0.iter().take(Metric::Keys as usize).any(|change| *change != 0)
    }

    /// Counts an admitted request, which the rule holds for this many ticks.
    #[inline]
    pub fn admit(&mut self, wait: Micros) {
        self.add(Metric::Allowed, 1);
        self.add(Metric::Held, wait > 0);
    }

    /// Counts a request that the rule is the first to refuse.
    pub fn refuse(&mut self, reason: Reason) {
        let metric = match reason {
            Reason::Banned => Metric::Banned,
            Reason::Unavailable => Metric::Unavailable,
            Reason::Used | Reason::Outstanding | Reason::Busy => Metric::Refused,
        };
        self.add(metric, 1);
    }

    /// Counts a settlement: the reserved permits, and the used ones, which may be an estimate.
    pub fn settle(&mut self, reserved: u64, used: u64, unknown: Option<UnknownUsage>) {
        self.add(Metric::Settled, 1);
        self.add_permits(Metric::Refunded, reserved.saturating_sub(used));
        self.add_permits(Metric::Debt, used.saturating_sub(reserved));
        let metric = match unknown {
            None | Some(UnknownUsage::Partial) => return,
            Some(UnknownUsage::ClientLeft) => Metric::UnknownClientLeft,
            Some(UnknownUsage::Cut) => Metric::UnknownCut,
            Some(UnknownUsage::Unanswered) => Metric::UnknownUnanswered,
            Some(UnknownUsage::Error) => Metric::UnknownError,
            Some(UnknownUsage::Absent) => Metric::UnknownAbsent,
            Some(UnknownUsage::Unusable) => Metric::UnknownUnusable,
        };
        self.add(metric, 1);
    }

    /// Adds the changes to the metrics and resets them.
    pub fn flush(&mut self, namespace: &str, rule: &str, metrics: &dyn Metrics) {
        let changes = std::mem::take(self).0;
        for (metric, change) in Metric::ALL.iter().zip(changes).filter(|(_, change)| *change != 0) {
            metrics.add(*metric, &[namespace, rule], change);
        }
    }
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
        Scope::Local => Metric::LimitLocal,
        Scope::Gateway => Metric::LimitGateway,
        Scope::Global => Metric::LimitGlobal,
    };
    for (metric, value) in [(limited, limit), (Metric::Window, window), (Metric::KeysLimit, keys)] {
        metrics.set(metric, &[namespace, rule], value);
    }
}

/// Adds the accesses to shared data.
pub fn flush_traffic(namespace: &str, traffic: &Traffic, metrics: &dyn Metrics) {
    let counts = [
        (Metric::SharedWrites, traffic.writes.take()),
        (Metric::SharedConflicts, traffic.conflicts.take()),
        (Metric::SharedExhausted, traffic.exhausted.take()),
        (Metric::SharedForeign, traffic.corrupt.take()),
        (Metric::SharedEmptied, traffic.emptied.take()),
    ];
    add_all(&counts, &[namespace], metrics);
}

/// Adds the counts of the connection to Redis.
pub fn flush_fleet(namespace: &str, counts: &BackendCounts, metrics: &dyn Metrics) {
    let sums = [
        (Metric::FleetTrips, counts.calls),
        (Metric::FleetAsks, counts.asks),
        (Metric::FleetForeign, counts.corrupt),
        (Metric::FleetApart, counts.apart),
        (Metric::FleetSplit, counts.split),
        (Metric::FleetUnsettled, counts.unsettled),
        (Metric::ModeChanges, counts.changes),
    ];
    add_all(&sums, &[namespace], metrics);
    let failures = counts.failures.iter().map(|(name, amount)| (Metric::failed(name), *amount));
    add_all(&failures.collect::<Vec<_>>(), &[namespace], metrics);
}

fn add_all(counts: &[(Metric, u64)], labels: &[&str], metrics: &dyn Metrics) {
    for (metric, amount) in counts.iter().filter(|(_, amount)| *amount > 0) {
        metrics.add(*metric, labels, amount.cast_signed());
    }
}
