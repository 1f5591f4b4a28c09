//! All metrics. Each is one row of this table, and defined in the host by it.
//!
//! The names contain only configured names, never data of clients: `diana.<namespace>.rule.<rule>.<name>` in Envoy's
//! statistics, which a tag regex converts to `diana_rule_<name>{namespace="…",rule="…"}`.

use crate::names;

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A sum, which only grows.
    Counter,
    /// A number that also falls.
    Gauge,
    /// The distribution of values.
    Histogram,
}

/// The names of labels.
const RULE: &[&str] = &["namespace", "rule"];
const NAMESPACE: &[&str] = &["namespace"];
const HOOK: &[&str] = &["hook"];

macro_rules! metrics {
    ($($labels:ident $kind:ident $entry:ident $name:literal $doc:literal)*) => {
        /// A metric. The variants of rules come first, their sums before their other gauges.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $(#[doc = $doc] $entry,)*
        }

        impl Metric {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Metric] = &[$(Metric::$entry,)*];

            /// Its kind.
            #[must_use]
            pub const fn kind(self) -> MetricKind {
                match self {
                    $(Metric::$entry => MetricKind::$kind,)*
                }
            }

            /// The names of its labels.
            #[must_use]
            pub const fn labels(self) -> &'static [&'static str] {
                match self {
                    $(Metric::$entry => $labels,)*
                }
            }

            /// Its name among those with the same labels.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Metric::$entry => $name,)*
                }
            }
        }
    };
}

metrics! {
    RULE Counter Allowed "allowed" "Admitted requests that the rule evaluated and admits."
    RULE Counter Refused "refused" "Requests that it was the first to refuse."
    RULE Counter ShadowRefused "shadow_refused" "Requests that it would have refused."
    RULE Counter Over "over" "Requests that it marked, since they exceeded its limit."
    RULE Counter NotAsked "not_asked" "Requests that another rule refused before this one was evaluated."
    RULE Counter RefusedByOthers "refused_by_others" "Requests that it admits, and another rule refused."
    RULE Counter Absent "absent" "Requests that it skipped, since they have no value for its actor."
    RULE Counter Banned "banned" "Requests that it refused because the caller is banned."
    RULE Counter Unavailable "unavailable" "Requests that it refused because Redis was unavailable."
    RULE Counter Degraded "degraded" "Requests that it decided in degraded mode, whatever the decision."
    RULE Counter Bans "bans" "Bans that started."
    RULE Counter ShadowBanned "shadow_banned" "Those of `shadow_refused` that a ban would have refused."
    RULE Counter ShadowBans "shadow_bans" "Bans that would have started outside of shadow."
    RULE Counter Held "held" "Requests that it held until their turn."
    RULE Counter ShadowHeld "shadow_held" "Requests that it would have held if it were not in shadow."
    RULE Counter Near "near" "Requests that it admitted near its limit."
    RULE Counter Leased "lent" "Requests that it refused while other workers held leases of the caller."
    RULE Counter Hot "hot" "Requests of hot callers."
    RULE Counter LimitMissing "limit_missing" "Requests whose data had no limit."
    RULE Counter Overflow "overflow" "Requests decided by an overflow bucket, since the table was full of live callers."
    RULE Counter Settled "settled" "Requests whose charges were settled at their end."
    RULE Counter Refunded "refunded" "Permits returned by settlements."
    RULE Counter Debt "debt" "Permits charged by settlements beyond the reservation."
    RULE Counter Unsettled "unsettled" "Requests without settlement, since too many were open."
    RULE Counter UnknownClientLeft "untold_client_left" "Settled requests whose client left before the upstream reported the usage."
    RULE Counter UnknownCut "untold_cut" "Settled requests whose response was cut off."
    RULE Counter UnknownUnanswered "untold_unanswered" "Settled requests that ended before the upstream's headers, and not by the client."
    RULE Counter UnknownError "untold_error" "Settled requests with an error and no usable number."
    RULE Counter UnknownAbsent "untold_absent" "Settled requests without the value."
    RULE Counter UnknownUnusable "untold_unusable" "Settled requests whose value is not a single number of permits."
    RULE Gauge InFlight "in_flight" "Requests in flight."
    RULE Gauge Keys "keys" "Callers in its table. All workers share one gauge."
    RULE Gauge HotKeys "hot_keys" "Hot callers."
    RULE Gauge LimitLocal "limit_local" "Permits in its window, of a rule that each worker counts alone."
    RULE Gauge LimitGateway "limit_gateway" "Those of a rule that each gateway counts alone."
    RULE Gauge LimitGlobal "limit_global" "Those of a rule that the fleet counts."
    RULE Gauge Window "window_us" "Ticks of its window."
    RULE Gauge KeysLimit "keys_limit" "Callers for which its tables have room."
    NAMESPACE Counter Requests "requests" "Requests that the filter saw."
    NAMESPACE Counter Exempt "exempt" "Requests exempt from all rules or some of them."
    NAMESPACE Counter AddressMissing "address_missing" "Requests with an address that a rule or condition reads, and the host does not know."
    NAMESPACE Counter MetadataMissing "metadata_missing" "Requests without the metadata that another filter should have set."
    NAMESPACE Counter SharedWrites "shared.writes" "Writes to shared data."
    NAMESPACE Counter SharedConflicts "shared.conflicts" "Writes that another worker won."
    NAMESPACE Counter SharedExhausted "shared.exhausted" "Requests refused after too many conflicts."
    NAMESPACE Counter SharedForeign "shared.foreign" "Values in shared data that this filter did not write."
    NAMESPACE Counter SharedEmptied "shared.emptied" "Parts of tables that were emptied after a panic."
    NAMESPACE Counter ConfigAccepted "config.accepted" "Accepted configurations."
    NAMESPACE Counter ConfigRejected "config.rejected" "Rejected configurations. The namespace is the root id."
    NAMESPACE Counter ClockSteppedBack "clock_stepped_back" "Backward steps of the wall clock."
    NAMESPACE Counter RemoteFetched "remote.fetched" "Documents of the configuration server."
    NAMESPACE Counter RemoteFailed "remote.failed" "Failed calls to it."
    NAMESPACE Counter RemoteRejected "remote.rejected" "Bad documents of it."
    NAMESPACE Counter RemoteApplied "remote.applied" "Documents of it that a worker applied."
    NAMESPACE Counter ModeChanges "mode.changes" "Losses and returns of Redis."
    NAMESPACE Counter FleetTrips "fleet.trips" "Calls to Redis."
    NAMESPACE Counter FleetAsks "fleet.asks" "Requests in them."
    NAMESPACE Counter FleetForeign "fleet.foreign" "Values in Redis that this filter did not write."
    NAMESPACE Counter FleetApart "fleet.apart" "Replies that show gateways with other parts."
    NAMESPACE Counter FleetSplit "fleet.split" "Replies that show several primaries."
    NAMESPACE Counter FleetUnsettled "fleet.unsettled" "Requests left as reserved, since too many settlements waited."
    NAMESPACE Counter FailedNoAuth "fleet.failed.noauth" "Calls that failed by `NOAUTH`."
    NAMESPACE Counter FailedWrongPass "fleet.failed.wrongpass" "By `WRONGPASS`."
    NAMESPACE Counter FailedNoPerm "fleet.failed.noperm" "By `NOPERM`."
    NAMESPACE Counter FailedMoved "fleet.failed.moved" "By `MOVED`."
    NAMESPACE Counter FailedCrossSlot "fleet.failed.crossslot" "By `CROSSSLOT`."
    NAMESPACE Counter FailedClusterDown "fleet.failed.clusterdown" "By `CLUSTERDOWN`."
    NAMESPACE Counter FailedTryAgain "fleet.failed.tryagain" "By `TRYAGAIN`."
    NAMESPACE Counter FailedReadOnly "fleet.failed.readonly" "By `READONLY`."
    NAMESPACE Counter FailedNoReplicas "fleet.failed.noreplicas" "By `NOREPLICAS`."
    NAMESPACE Counter FailedOutOfMemory "fleet.failed.oom" "By `OOM`."
    NAMESPACE Counter FailedNoScript "fleet.failed.noscript" "By `NOSCRIPT`."
    NAMESPACE Counter FailedLoading "fleet.failed.loading" "By `LOADING`."
    NAMESPACE Counter FailedBusy "fleet.failed.busy" "By `BUSY`."
    NAMESPACE Counter FailedNoHost "fleet.failed.nohost" "Without a host in the cluster of Envoy."
    NAMESPACE Counter FailedUpstream "fleet.failed.upstream" "By an error of Envoy's proxy."
    NAMESPACE Counter FailedGarbage "fleet.failed.garbage" "By a reply that is not one of Redis."
    NAMESPACE Counter FailedTimeout "fleet.failed.timeout" "Without a reply in time."
    NAMESPACE Counter FailedUnreachable "fleet.failed.unreachable" "Without a connection."
    NAMESPACE Counter FailedReset "fleet.failed.reset" "By a connection that broke off."
    NAMESPACE Counter FailedLost "fleet.failed.lost" "Without any news of them."
    NAMESPACE Counter FailedOther "fleet.failed.other" "By another error."
    NAMESPACE Gauge Document "document" "The checksum of the document."
    NAMESPACE Gauge Disabled "disabled" "1 while the document decides about no request."
    NAMESPACE Gauge EntriesUnused "entries_unused" "Entries that applied to no request."
    NAMESPACE Gauge WithoutDocument "without_document" "Workers that admit without a document. The namespace is the root id."
    NAMESPACE Gauge RemoteInForce "remote.in_force" "Workers that use a document of the configuration server."
    NAMESPACE Gauge ModeFleet "mode.fleet" "Workers that count global rules with the fleet."
    NAMESPACE Gauge ModeGateway "mode.gateway" "Workers that count them alone."
    NAMESPACE Histogram FleetWait "fleet.wait_us" "Ticks that requests waited for Redis."
    HOOK Counter Faults "faults" "Panics in a hook of the dynamic module."
}

/// Before the names of the reasons of failed calls to Redis.
const FAILED: &str = "fleet.failed.";

impl Metric {
    /// The number of those that rules sum up, from the first on.
    pub const SUMS: usize = Metric::LimitLocal as usize;

    /// The metric of calls to Redis that failed for this reason.
    #[must_use]
    pub fn failed(reason: &str) -> Metric {
        let of_reason = |it: &&Metric| it.name().strip_prefix(FAILED) == Some(reason);
        Metric::ALL.iter().find(of_reason).copied().unwrap_or(Metric::FailedOther)
    }

    /// Its name in Envoy's statistics, with the values of its labels.
    #[must_use]
    pub fn stat(self, labels: &[&str]) -> String {
        match labels {
            [namespace, rule] => {
                format!("diana.{namespace}.rule.{}.{}", names::in_metrics(rule), self.name())
            }
            _ => format!("diana.{}.{}", labels.concat(), self.name()),
        }
    }

    /// Its name with labels, after `diana_`.
    #[must_use]
    pub fn plain(self) -> String {
        let prefix = if self.labels() == RULE { "rule_" } else { "" };
        format!("{prefix}{}", self.name().replace('.', "_"))
    }
}
