//! What the operator's path tells, as JSON.

use crate::host::Host;
use crate::instance::Instance;
use diana_core::engine::inquiry::{Order, Seen};
use diana_core::json::object::{JsonObject, list, quoted};
use diana_core::key::Key;
use diana_core::policy::Rule;
use diana_core::report::explained::seconds;
use diana_core::report::state::spell_key;
use diana_core::time::{Micros, Now};

/// An instant of the wall clock, in seconds since the epoch, if there is one.
fn instant(ticks: Option<Micros>) -> String {
    ticks.map_or_else(|| "null".into(), seconds)
}

impl Instance {
    /// What is in force, from where and since when.
    pub(super) fn told_rules(&self, host: &dyn Host) -> String {
        let rules = self.with_engine(host, |engine| {
            let all = engine.rules().enumerate().map(|(number, rule)| {
                let actors = engine.actors(number).map(quoted);
                self.told_rule(rule, &list(actors), host)
            });
            list(all)
        });
        let (from, since) = self.origin();
        JsonObject::default()
            .text("namespace", self.namespace())
            .text("from", from)
            .json("since", &seconds(since))
            .json("rules", &rules.unwrap_or_default())
            .finish()
    }

    fn told_rule(&self, rule: &Rule, actors: &str, host: &dyn Host) -> String {
        let count = |what| {
            let name = format!("diana.{}.rule.{}.{what}", self.namespace(), rule.name);
            host.counted(&name)
        };
        let quota = &rule.quota;
        let told = JsonObject::default()
            .text("rule", &rule.name)
            .json("actors", actors)
            .text("scope", rule.scope.name())
            .text("algo", rule.algo)
            .number("limit", quota.rpu);
        let told =
            if rule.is_in_flight() { told } else { told.json("per", &seconds(quota.period())) };
        told.flag("shadow", rule.shadow)
            .flag("bans", rule.ban.is_some())
            .number("allowed", count("allowed"))
            .number("refused", count("refused"))
            .finish()
    }

    /// What is known of callers of a rule.
    pub(super) fn told_callers(&self, rule: usize, seen: &[Seen], host: &dyn Host) -> String {
        let now = self.now(host);
        let callers = list(seen.iter().map(|seen| told_caller(seen, now)));
        let told = self.told_name(rule, host);
        told.json("callers", &callers).finish()
    }

    /// Who came most.
    pub(super) fn told_top(&self, rule: usize, top: &[(u64, Key)], host: &dyn Host) -> String {
        let callers = top.iter().map(|(count, key)| {
            JsonObject::default().text("key", &spell_key(*key)).number("requests", *count).finish()
        });
        self.told_name(rule, host).json("callers", &list(callers)).finish()
    }

    /// A line of the log about what has changed, if anything has.
    pub(super) fn told_change(
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
        let keys: Vec<String> = seen.iter().map(|seen| spell_key(seen.caller.key)).collect();
        let name = |engine: &mut diana_core::engine::Engine| {
            engine.rules().nth(rule).map(|rule| rule.name.clone())
        };
        let name = self.with_engine(host, name).flatten().unwrap_or_default();
        Some(format!("admin: {done} rule={name} key={}", keys.join(",")))
    }

    /// The rule's name and scope, and its limit.
    fn told_name(&self, rule: usize, host: &dyn Host) -> JsonObject {
        let told = self.with_engine(host, |engine| {
            let rule = engine.rules().nth(rule)?;
            let told = JsonObject::default().text("rule", &rule.name);
            let limit = rule.quota.burst.unwrap_or(rule.quota.rpu);
            Some(told.text("scope", rule.scope.name()).number("limit", limit))
        });
        told.flatten().unwrap_or_default()
    }
}

fn told_caller(seen: &Seen, now: Now) -> String {
    let Seen { caller, usage, ban } = seen;
    let at = |ticks: Micros| (ticks > 0).then(|| now.wall.saturating_add(ticks));
    let by = list(caller.sources.iter().map(|source| quoted(source)));
    let told = JsonObject::default().json("by", &by).text("key", &spell_key(caller.key));
    let told = match usage.in_flight {
        Some(in_flight) => told.number("in_flight", in_flight),
        None => told
            .number("used", usage.used)
            .number("reserved", usage.reserved)
            .number("lent", usage.lent),
    };
    told.number("remaining", usage.remaining)
        .json("until", &instant(at(usage.ends)))
        .json("banned_until", &instant(ban.and_then(at)))
        .flag("shared", usage.is_shared)
        .finish()
}
