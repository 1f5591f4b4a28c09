//! One rule, with its store and its counts.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::plans::RulePlans;
use crate::report::metrics::RuleCounts;
use crate::source_watch::SourceWatch;
use diana_algorithm::{Algorithm, Leasing};
use diana_policy::key::{GatewayId, Key, LoggedKey};
use diana_policy::time::{Micros, Now, SECOND};
use diana_policy::{Metric, Rule, Scope};
use diana_request::cost::CostReader;
use diana_request::settling::UsageReader;
use diana_store::bans::Bans;
use diana_store::hot::spotter::Spotter;
use diana_store::process::TurnNumber;
use diana_store::{Account, Store};

/// A rule with its usage.
pub(crate) struct CompiledRule {
    pub(crate) config: Rule,
    /// Its name, which records share.
    pub(crate) name: Rc<str>,
    pub(crate) algorithm: Arc<dyn Algorithm>,
    /// Reads the cost of requests, unless all cost the same.
    pub(crate) cost_reader: Option<Box<CostReader>>,
    /// Reads what requests used, if that is settled at their end.
    pub(crate) usage_reader: Option<Box<UsageReader>>,
    pub(crate) plans: Option<Box<RulePlans>>,
    /// This gateway, if its callers are counted here: no other gateway knows their keys.
    pub(crate) gateway: Option<GatewayId>,
    /// Its actor's number in the callers; none for `all`.
    pub(crate) actor: Option<usize>,
    /// The share of the callers, in percent, for which it is in force; 0 in shadow.
    pub(crate) enforce: u8,
    /// Whether it counts refusals towards bans in shadow, too, and reports the bans.
    pub(crate) tries_bans: bool,
    /// Counts its callers.
    pub(crate) store: Box<dyn Store>,
    /// Whether that is a store of the authority outside of the gateway.
    pub(crate) is_in_backend: bool,
    /// The number of gateways that share limits where no authority counts.
    pub(crate) gateways: Rc<Cell<u64>>,
    /// The number of callers that the store has room for.
    pub(crate) keys: u64,
    /// Counts its refusals, and knows its banned callers.
    pub(crate) bans: Option<Box<Bans>>,
    pub(crate) hot: Option<Spotter>,
    /// Whether requests ever have a caller.
    pub(crate) callers: SourceWatch,
    /// Whether responses ever have the usage, if that is settled.
    pub(crate) usage: Option<Box<SourceWatch>>,
    /// Whether responses ever have all numbers of the usage, if that is a sum.
    pub(crate) whole_usage: Option<Box<SourceWatch>>,
    /// Whether a caller had a number that the host has rounded, and the log has its line.
    pub(crate) is_rounded: bool,
    /// Whether requests take positions in a queue, which are returned if a client leaves.
    pub(crate) queues: bool,
    pub(crate) phase: ChargePhase,
    pub(crate) counts: RuleCounts,
    /// When its last line was logged.
    pub(crate) logged: Option<Micros>,
}

impl CompiledRule {
    /// Returns true if workers take turns for its callers, where they are threads of one process.
    pub(crate) fn has_turns(&self) -> bool {
        self.config.scope == Scope::Gateway
    }

    /// The permits of a caller that has used none, in this gateway.
    pub(crate) fn limit(&self) -> u64 {
        let limit = self.algorithm.properties().limit;
        match self.config.share.filter(|_| !self.is_in_backend) {
            Some(least) => limit.div_ceil(self.gateways.get().max(least)),
            None => limit,
        }
    }

    /// The turn of a caller.
    pub(crate) fn turn(&self, key: Key) -> Option<TurnNumber> {
        self.has_turns().then(|| TurnNumber::of(self.config.fingerprint, key))
    }

    /// Returns true if it limits the requests in flight.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.usage_reader.as_ref().is_some_and(|usage_reader| usage_reader.is_slot())
    }

    /// Returns true if the bytes of requests' bodies are read at the end.
    pub(crate) fn reads_request_bytes(&self) -> bool {
        self.usage_reader.as_ref().is_some_and(|usage_reader| usage_reader.reads_request_bytes())
    }

    /// A caller's key for logs and operators.
    pub(crate) fn logged(&self, key: Key) -> LoggedKey {
        LoggedKey { key, gateway: self.gateway }
    }

    /// Counts a request that the rule skips, since it has no value for the actor.
    #[cold]
    pub(crate) fn count_absent(&mut self, is_new: bool) {
        self.counts.add(Metric::Absent, is_new);
        self.callers.miss(is_new);
    }

    /// Counts a refusal, or a request with usage, towards a ban of the caller.
    pub(crate) fn count_towards_ban(&mut self, account: Account, now: Now) {
        if let Some(bans) = &mut self.bans {
            bans.count(account.key, 1, now.mono);
        }
    }

    /// Counts the refusals that its bans have gathered, and the bans that began.
    pub(crate) fn maintain_bans(&mut self, now: Now) {
        if let Some(bans) = &mut self.bans {
            let begun = bans.maintain(now.mono);
            let metric = if self.tries_bans { Metric::ShadowBans } else { Metric::Bans };
            self.counts.add(metric, begun.cast_signed());
        }
    }

    /// Returns true if the rule may log a line now: at most once a second.
    pub(crate) fn may_log(&mut self, now: Now) -> bool {
        let is_due = self.logged.is_none_or(|last| now.mono.saturating_sub(last) >= SECOND);
        if is_due {
            self.logged = Some(now.mono);
        }
        is_due
    }
}

/// The order in which a commit charges rules. States that other workers change come first, those
/// with the charges that are easiest to cancel at the start; then states of this worker; then
/// charges that cannot be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChargePhase {
    /// Shared windows.
    SharedWindow,
    /// Shared buckets, which refill between check and charge.
    SharedBucket,
    /// Shared queues, of which only the last position can be returned.
    SharedQueue,
    /// States of this worker.
    Local,
    /// Daily quotas, which cannot cancel a charge.
    Quota,
}

impl ChargePhase {
    /// Returns true if workers lease permits, which they have to return soon.
    pub(crate) fn leases(self) -> bool {
        matches!(self, ChargePhase::SharedWindow | ChargePhase::SharedBucket)
    }

    pub(crate) const ALL: [ChargePhase; 5] = [
        ChargePhase::SharedWindow,
        ChargePhase::SharedBucket,
        ChargePhase::SharedQueue,
        ChargePhase::Local,
        ChargePhase::Quota,
    ];

    pub(crate) fn of(rule: &Rule, leasing: Leasing) -> ChargePhase {
        match leasing {
            _ if rule.daily.is_some() => ChargePhase::Quota,
            _ if rule.scope == Scope::Local => ChargePhase::Local,
            Leasing::Never => ChargePhase::SharedQueue,
            Leasing::Bucket => ChargePhase::SharedBucket,
            Leasing::Window => ChargePhase::SharedWindow,
        }
    }
}
