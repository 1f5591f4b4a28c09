//! Limits and their rules.

use std::rc::Rc;
use std::sync::Arc;

use super::redis::OnFailure;
use super::{Ban, CostSource, Except, Match, Plans, Prefix, Quota, Response, Scope, Settling};
use crate::bloom::Shape;
use crate::key::KeyHasher;
use crate::time::Micros;

/// One entry of `limits`.
#[derive(Debug, Clone)]
pub struct Limit {
    /// The paths that it covers, at least one. They share the counts, unless `each` is set.
    pub urls: Vec<Prefix>,
    /// Whether each path of the list, and each path that a pattern covers, is counted separately.
    pub each: bool,
    /// Further conditions on requests.
    pub matcher: Match,
    /// Requests that are exempt from this limit.
    pub except: Except,
    /// Its rules in document order.
    pub rules: Vec<Rule>,
    /// A hash of the paths and conditions.
    pub fingerprint: u64,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Unique name, `[a-z0-9_-]+`, of a team's rule with its owner in front.
    pub name: String,
    /// Identifies the rule in its namespace. Configurations with the same fingerprint continue the
    /// same counts.
    pub fingerprint: u64,
    /// Indices into [`Policy::actors`](super::Policy::actors). Several make a compound key, none is
    /// `all`.
    pub actor: Vec<usize>,
    /// The rule's quota.
    pub quota: Quota,
    /// Other quotas that may apply to a request.
    pub plans: Option<Arc<Plans>>,
    /// The source of the cost, if requests contain it.
    pub cost_source: Option<Box<CostSource>>,
    /// The settlement of charges at the end of the stream, if there is one.
    pub settling: Option<Box<Settling>>,
    /// Short name of the algorithm in the registry, such as `TB`.
    pub algo: &'static str,
    /// Words of a caller's state.
    pub words: usize,
    /// The scope of the counts.
    pub scope: Scope,
    /// How many gateways there are at least, if each one enforces its share where no Redis counts.
    pub share: Option<u64>,
    /// The callers for which its table has room, if not those of the policy.
    pub keys: Option<usize>,
    /// Whether requests are decided by the gateway's knowledge, and reported to Redis afterwards.
    pub asks_after: bool,
    /// The filter of a daily quota in fixed memory, if the rule has one.
    pub daily: Option<Shape>,
    /// The treatment of requests without this actor.
    pub absent: Absent,
    /// Percentage of callers for which the rule is enforced, 0 ..= 100.
    pub enforce: u8,
    /// Shadow mode: evaluate and report, never refuse.
    pub shadow: bool,
    /// The mark of a request that exceeds the limit, which then proceeds uncharged instead of being
    /// refused.
    pub over: Option<Over>,
    /// Whether the rule appears in response headers.
    pub expose: bool,
    /// Requests that are exempt from this rule.
    pub except: Except,
    /// The names of the rules that do not apply to a request where this rule does.
    pub replaces: Vec<String>,
    /// The response to a request that this rule refuses.
    pub response: Rc<Response>,
    /// The bans of the rule.
    pub ban: Option<Ban>,
    /// The detection of hot callers, to mark their requests.
    pub hot: Option<Hot>,
    /// Percentage of the limit, 1 ..= 99, above which admitted requests are counted.
    pub near: Option<u8>,
    /// Overrides the setting of [`Redis`](super::redis::Redis).
    pub on_failure: Option<OnFailure>,
}

impl Rule {
    /// The cost of most requests, as far as the configuration specifies it.
    #[must_use]
    pub fn usual_cost(&self) -> u64 {
        self.cost_source.as_ref().map_or(self.quota.cost, |cost| cost.default_cost())
    }

    /// A hash of its identity and its main numbers. Rules with equal hashes share their counts on
    /// purpose.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let Quota { rpu, burst, cost, .. } = self.quota;
        let mut hasher = KeyHasher::public();
        for number in [self.fingerprint, rpu, burst.unwrap_or(rpu), cost] {
            hasher.part(0, &number.to_le_bytes());
        }
        hasher.finish().hash
    }

    /// Returns true if the rule limits concurrent requests.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.settling.as_ref().is_some_and(|settling| settling.is_slot)
    }

    /// Returns true if each worker counts separately.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.scope == Scope::Local
    }

    /// The scope of the limit with or without a Redis.
    #[must_use]
    pub fn scope_with(&self, redis: bool) -> Scope {
        match self.scope {
            Scope::Global if !redis && self.share.is_none() => Scope::Gateway,
            scope => scope,
        }
    }
}

/// The mark of a request that exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// The request header, in lower case.
    pub mark: Rc<str>,
    /// Its value.
    pub value: String,
}

/// The treatment of a request without a rule's actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// The rule does not apply.
    Skip,
    /// All such requests share one state.
    Share,
    /// It is refused.
    Deny,
}

/// Configuration of a rule's hot keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hot {
    /// A caller with more requests than this in `per` is hot, 1 ..= 10⁹.
    pub over: u64,
    /// The period in ticks, one second to one hour. Windows are up to a fifth longer.
    pub per: Micros,
    /// The request header that marks its requests, in lower case.
    pub header: Option<Rc<str>>,
    /// The number of hot callers in a log line, 1 ..= 100.
    pub top: usize,
    /// Whether the log contains their names instead of hashes.
    pub reveal: bool,
}
