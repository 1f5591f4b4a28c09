//! The meaning of `remote`, and of a remote document.

use super::{parse_remote, policy};
use diana_policy::{Accepted, Policy, Zone};

const LOCAL: &str = "
limits: [{Url: /, rules: [{name: mine, actor: tenant, unit: day, rpu: 5}]}]
actors: {tenant: [{header: x-tenant}]}
except: {paths: [/healthz]}
time_zone: '+08:00'
response: {status: 429}
shadow: true
namespace: shop
keys: 1000
log: refused
accepted: {headers: true}
mark: x-mark
remote: {cluster: c, path: /}
";

fn of_centre(text: &str) -> Policy {
    parse_remote(text.as_bytes(), &policy(LOCAL).own())
        .unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn document_replaces_rules_but_not_gateway_settings() {
    let policy =
        of_centre("limits: [{Url: /a, rules: [{name: theirs, actor: device, unit: day, rpu: 6}]}]");
    let rule = &policy.limits[0].rules[0];
    assert_eq!((rule.name.as_str(), rule.quota.zone), ("theirs", Zone::UTC));
    assert_eq!(rule.response.status, 503);
    assert_eq!((policy.limits.len(), policy.actors.len()), (1, 3), "no tenant");
    assert!(policy.except.is_empty() && !policy.shadow);
    assert_eq!((policy.keys, policy.log_refused), (1_000, true));
    assert_eq!(policy.accepted, Accepted { headers: true, filter_state: false });
    assert_eq!(policy.mark.as_deref(), Some("x-mark"));
    assert_eq!((policy.namespace, policy.remote), (None, None));
}

#[test]
fn global_rules_without_redis_get_a_warning() {
    let redis = "limits: []\nredis: {cluster: c}\nremote: {cluster: d, path: /}";
    for (local, scope, warnings) in
        [(redis, "gateway", 0), (redis, "global", 0), ("limits: []", "global", 1)]
    {
        let rule = format!("{{actor: all, unit: day, rpu: 5, scope: {scope}}}");
        let text = format!("limits: [{{Url: /, rules: [{rule}]}}]");
        let found = parse_remote(text.as_bytes(), &policy(local).own()).unwrap().warnings;
        assert_eq!(found.len(), warnings, "{found:?}");
        assert!(found.iter().all(|line| line.starts_with("without `redis`, each gateway counts")));
    }
}

/// The gateway's many rules leave room for fewer callers. The remote rules do not, or do again.
#[test]
fn remote_rules_get_the_configured_keys() {
    let rules = |count: usize| {
        let rule = "{actor: device, unit: day, rpu: 5, scope: local}";
        format!("limits: [{{Url: /, rules: [{}]}}]", vec![rule; count].join(", "))
    };
    let own = policy(&rules(520));
    assert!(own.keys < 100_000, "{}", own.keys);
    let of_centre = |count| parse_remote(rules(count).as_bytes(), &own.own()).unwrap();
    assert_eq!(of_centre(1).keys, 100_000);
    let many = of_centre(520);
    let is_about = |line: &String| line.contains("has room for `keys: ");
    assert_eq!((many.keys, many.warnings.iter().any(is_about)), (own.keys, true));
}

#[test]
fn remote_rule_has_the_fingerprint_of_a_local_one() {
    let local = policy(LOCAL).limits[0].rules[0].fingerprint;
    let same = "{name: mine, actor: tenant, unit: day, rpu: 9}";
    let there = "actors: {tenant: [{cookie: t}]}\ntime_zone: '+08:00'\nlimits";
    let found = of_centre(&format!("{there}: [{{Url: /b, rules: [{same}]}}]"));
    assert_eq!(found.limits[0].rules[0].fingerprint, local);
}

#[test]
fn remote_document_may_have_any_form() {
    let rule = "{actor: all, unit: day, rpu: 5}";
    for text in [
        format!("Url: /\nrules: [{rule}]"),
        format!("[{{Url: /, rules: [{rule}]}}]"),
        format!("--- {{Url: /, rules: [{rule}]}}\n"),
        r#"{"limits": [{"Url": "/", "rules": [{"actor": "all", "unit": "day", "rpu": 5.0}]}]}"#
            .into(),
    ] {
        assert_eq!(of_centre(&text).limits[0].rules[0].quota.rpu, 5, "{text}");
    }
}

#[test]
fn remote_rules_keep_the_gateways_redis() {
    let local = policy("limits: []\nredis: {cluster: c, db: 5}\nremote: {cluster: d, path: /}");
    let remote = parse_remote(b"limits: []", &local.own()).unwrap();
    assert!(remote.redis.is_some_and(|redis| redis.db == 5));
    assert_eq!(parse_remote(b"limits: []", &policy("limits: []").own()).unwrap().redis, None);
}
