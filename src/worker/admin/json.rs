//! The replies of the operator's endpoint in JSON.

use crate::host::Host;
use crate::instance::Instance;
use diana_limiter::{Order, Seen, seconds};
use diana_policy::json;
use diana_policy::key::{GatewayId, Key, LoggedKey};
use diana_policy::time::{Micros, Now};
use diana_policy::{Metric, Rule};
use diana_store::usage::Usage;
use serde::Serialize;
use serde_json::Number;

/// The reply to `/rules`.
#[derive(Serialize)]
struct RulesReply<'a> {
    namespace: &'a str,
    gateway: Option<String>,
    from: &'static str,
    since: Number,
    disabled: bool,
    rules: Vec<RuleStatus>,
}

#[derive(Serialize)]
struct RuleStatus {
    rule: String,
    actors: Vec<String>,
    scope: &'static str,
    algo: &'static str,
    limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    per: Option<Number>,
    shadow: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaces: Vec<String>,
    over: bool,
    bans: bool,
    allowed: u64,
    refused: u64,
}

/// A reply about callers of one rule.
#[derive(Serialize)]
struct CallersReply<T> {
    #[serde(flatten)]
    rule: Option<RuleLimit>,
    callers: Vec<T>,
}

#[derive(Serialize)]
struct RuleLimit {
    rule: String,
    scope: &'static str,
    /// The gateway that counts, if each one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<String>,
    limit: u64,
}

#[derive(Serialize)]
struct CallerUsage<'a> {
    by: &'a [&'static str],
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<u64>,
    #[serde(flatten)]
    permits: Option<Permits>,
    remaining: u64,
    until: Option<Number>,
    banned_until: Option<Number>,
    shared: bool,
}

#[derive(Serialize)]
struct Permits {
    used: u64,
    reserved: u64,
    lent: u64,
}

#[derive(Serialize)]
struct CallerRequests {
    key: String,
    requests: u64,
}

impl Instance {
    /// The current rules, with their origin and the time of the last change.
    pub(super) fn rules_json(&self, host: &dyn Host) -> String {
        let rules = self.with_limiter(host, |limiter| {
            let status = |(number, rule)| {
                let actors = limiter.actors(number).map(String::from).collect();
                self.rule_status(rule, actors, host)
            };
            limiter.rules().enumerate().map(status).collect()
        });
        let (from, since) = self.origin();
        json::ascii(&RulesReply {
            namespace: self.namespace(),
            gateway: self.gateway().map(|gateway| gateway.to_string()),
            from,
            since: seconds(since),
            disabled: self.is_disabled(),
            rules: rules.unwrap_or_default(),
        })
    }

    fn rule_status(&self, rule: &Rule, actors: Vec<String>, host: &dyn Host) -> RuleStatus {
        let count = |metric| host.counter(metric, &[self.namespace(), &rule.name]);
        RuleStatus {
            rule: rule.name.clone(),
            actors,
            scope: rule.scope.name(),
            algo: rule.algo,
            limit: rule.quota.rpu,
            per: (!rule.is_in_flight()).then(|| seconds(rule.quota.period())),
            shadow: rule.shadow,
            replaces: rule.replaces.clone(),
            over: rule.over.is_some(),
            bans: rule.ban.is_some(),
            allowed: count(Metric::Allowed),
            refused: count(Metric::Refused),
        }
    }

    /// The usage of callers of a rule.
    pub(super) fn callers_json(&self, rule: usize, seen: &[Seen], host: &dyn Host) -> String {
        let now = self.now(host);
        let gateway = self.gateway_of(rule, host);
        let callers = seen.iter().map(|seen| CallerUsage::of(seen, gateway, now)).collect();
        json::ascii(&CallersReply { rule: self.rule_limit(rule, host), callers })
    }

    /// The callers with the most requests.
    pub(super) fn top_json(&self, rule: usize, top: &[(u64, Key)], host: &dyn Host) -> String {
        let gateway = self.gateway_of(rule, host);
        let one = |&(requests, key): &(u64, Key)| {
            let key = LoggedKey { key, gateway }.spell();
            CallerRequests { key, requests }
        };
        let callers = top.iter().map(one).collect();
        json::ascii(&CallersReply { rule: self.rule_limit(rule, host), callers })
    }

    /// A log line about a change. `None` if nothing changed.
    pub(super) fn change_line(
        &self,
        rule: usize,
        order: Order,
        seen: &[Seen],
        host: &dyn Host,
    ) -> Option<String> {
        let done = match order {
            Order::Look => return None,
            Order::Reset => "reset".into(),
            Order::Ban(length) => format!("ban for={}s", seconds(length)),
            Order::Unban => "unban".into(),
        };
        let gateway = self.gateway_of(rule, host);
        let key = |seen: &Seen| LoggedKey { key: seen.caller.key, gateway }.spell();
        let keys: Vec<String> = seen.iter().map(key).collect();
        let name = |limiter: &mut diana_limiter::Limiter| {
            limiter.rules().nth(rule).map(|rule| rule.name.clone())
        };
        let name = self.with_limiter(host, name).flatten().unwrap_or_default();
        Some(format!("admin: {done} rule={name} key={}", keys.join(",")))
    }

    fn rule_limit(&self, rule: usize, host: &dyn Host) -> Option<RuleLimit> {
        let limit = self.with_limiter(host, |limiter| {
            let gateway = limiter.gateway(rule);
            let rule = limiter.rules().nth(rule)?;
            let limit = rule.quota.burst.unwrap_or(rule.quota.rpu);
            let gateway = gateway.map(|gateway| gateway.to_string());
            Some(RuleLimit { rule: rule.name.clone(), scope: rule.scope.name(), gateway, limit })
        });
        limit.flatten()
    }

    /// This gateway, if a rule counts in each one.
    fn gateway_of(&self, rule: usize, host: &dyn Host) -> Option<GatewayId> {
        self.with_limiter(host, |limiter| limiter.gateway(rule)).flatten()
    }
}

impl CallerUsage<'_> {
    fn of(Seen { caller, usage }: &Seen, gateway: Option<GatewayId>, now: Now) -> CallerUsage<'_> {
        let at = |ticks: Micros| (ticks > 0).then(|| seconds(now.wall.saturating_add(ticks)));
        let Usage { used, reserved, leased, .. } = *usage;
        CallerUsage {
            by: &caller.sources,
            key: LoggedKey { key: caller.key, gateway }.spell(),
            in_flight: usage.in_flight,
            permits: usage.in_flight.is_none().then_some(Permits { used, reserved, lent: leased }),
            remaining: usage.remaining,
            until: at(usage.ends),
            banned_until: usage.ban.and_then(at),
            shared: usage.is_shared,
        }
    }
}
