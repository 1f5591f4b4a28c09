//! Lines for the log about what is allowed and probably not meant.

use super::policy;
use diana_config::parse_remote;
use insta::assert_snapshot;

/// The warnings about a document with these rules in one entry.
fn of(rules: &str) -> String {
    let actors = "{address: [{client_address: {}}], claim: [{jwt_claim: sub, unverified: true}],
        tenant: [{metadata: [a, b]}], cookie: [{cookie: c}, {query: q}]}";
    policy(&format!("{{limits: [{{Url: /, rules: [{rules}]}}], actors: {actors}}}"))
        .warnings
        .into_iter()
        .filter(|line| !line.starts_with("actor `claim`"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn sources_speak_for_themselves() {
    assert_snapshot!(policy("{limits: [], actors: {claim: [{jwt_claim: sub, unverified: true}]}}").warnings.join("\n"), @"actor `claim`: claim `sub` is read from tokens that nobody has verified");
}

#[test]
fn scopes_that_count_per_gateway() {
    assert_snapshot!(of("{actor: all, unit: day, rpu: 5}, {actor: all, unit: day, rpu: 5, scope: local}"), @"");
    assert_snapshot!(of("{actor: all, unit: day, rpu: 5}, {actor: all, unit: hour, rpu: 5, scope: global},
        {actor: all, unit: day, rpu: 5, scope: local}"), @"`global` is counted per gateway without `redis`, so every gateway admits the whole limit, and with `quota` every worker: root-all-hour-tb");
    let many = vec!["{actor: all, unit: day, rpu: 5, scope: global}"; 25].join(", ");
    assert_snapshot!(of(&many), @"`global` is counted per gateway without `redis`, so every gateway admits the whole limit, and with `quota` every worker: root-all-day-tb, root-all-day-tb-2, root-all-day-tb-3, root-all-day-tb-4, root-all-day-tb-5, root-all-day-tb-6, root-all-day-tb-7, root-all-day-tb-8, root-all-day-tb-9, root-all-day-tb-10, root-all-day-tb-11, root-all-day-tb-12, root-all-day-tb-13, root-all-day-tb-14, root-all-day-tb-15, root-all-day-tb-16, root-all-day-tb-17, root-all-day-tb-18, root-all-day-tb-19, root-all-day-tb-20 and 5 more");
}

#[test]
fn a_redis_that_nothing_uses() {
    let of = |text: &str| policy(text).warnings.join("\n");
    let rules = |scope: &str| {
        format!("limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 5, scope: {scope}}}]}}]")
    };
    let redis = "redis: {cluster: c}";
    assert_snapshot!(of(&format!("{}\n{redis}", rules("gateway"))), @"`redis` is not used, since no rule has `scope: global`");
    assert_eq!(of(&format!("{}\n{redis}", rules("global"))), "");
    // With a centre it may be for rules from there, which may come and go.
    let own = format!("{}\n{redis}\nremote: {{cluster: d, path: /}}", rules("gateway"));
    assert_eq!(of(&own), "");
    let own = policy(&own).own();
    for scope in ["gateway", "global"] {
        let remote = parse_remote(rules(scope).as_bytes(), &own).unwrap();
        assert_eq!(remote.warnings, [""; 0], "{scope}");
    }
    let alone = policy("limits: []").own();
    let remote = parse_remote(rules("global").as_bytes(), &alone).unwrap();
    assert_snapshot!(remote.warnings.join("\n"), @"`global` is counted per gateway without `redis`, so every gateway admits the whole limit, and with `quota` every worker: root-all-day-tb");
}

#[test]
fn keys_that_callers_choose() {
    let local =
        |actor: &str, unit: &str| format!("{{actor: {actor}, unit: {unit}, rpu: 5, scope: local}}");
    assert_snapshot!(of(&local("account", "second")), @"callers choose the key of these rules themselves, so one caller can pose as many; put a rule with a `client_address` actor beside them, for the same requests: root-account-second-tb");
    assert_snapshot!(of(&local("cookie", "second")), @"callers choose the key of these rules themselves, so one caller can pose as many; put a rule with a `client_address` actor beside them, for the same requests: root-cookie-second-tb");
    assert_snapshot!(of(&local("[tenant, account]", "second")), @"callers choose the key of these rules themselves, so one caller can pose as many; put a rule with a `client_address` actor beside them, for the same requests: root-tenant-account-second-tb");
    assert_snapshot!(of(&local("tenant", "day")), @"");
    // A caller who chooses a new device header each time never gets as far as its address.
    assert_snapshot!(of(&local("device", "second")), @"callers choose the key of these rules themselves, so one caller can pose as many; put a rule with a `client_address` actor beside them, for the same requests: root-device-second-tb");
    assert_snapshot!(of(&format!("{}, {}", local("account", "second"), local("address", "second"))), @"");
    assert_snapshot!(of(&format!("{}, {}", local("account", "day"), local("address", "second"))), @"callers choose the key of these rules themselves and are remembered for hours; when `keys`, 100000, of them are live, newcomers share buckets, so see that `keys` is enough: root-account-day-tb");
    assert_snapshot!(of(&local("account", "hour")), @"
    callers choose the key of these rules themselves, so one caller can pose as many; put a rule with a `client_address` actor beside them, for the same requests: root-account-hour-tb
    callers choose the key of these rules themselves and are remembered for hours; when `keys`, 100000, of them are live, newcomers share buckets, so see that `keys` is enough: root-account-hour-tb
    ");
}

#[test]
fn a_rule_on_addresses_guards_what_lies_below_it() {
    let both = |outer: &str, inner: &str| {
        let yaml = format!(
            "limits:
  - {{Url: {outer}, rules: [{{actor: address, unit: second, rpu: 5, scope: local}}]}}
  - {{Url: /a/b{inner}, rules: [{{actor: account, unit: second, rpu: 5, scope: local}}]}}
actors: {{address: [{{client_address: {{}}}}]}}"
        );
        policy(&yaml).warnings.len()
    };
    let of = |outer| both(outer, "");
    assert_eq!(of("/"), 0);
    assert_eq!(of("/a"), 0);
    assert_eq!(of("/b"), 1);
    // Callers choose whether the guard counts them, unless the condition is the same.
    assert_eq!(of("/, unless: {headers: {x-account-id: {present: true}}}"), 1);
    assert_eq!(of("/, match: {headers: {x-account-id: {present: false}}}"), 1);
    assert_eq!(of("/, unless: {addresses: [10.0.0.0/8]}"), 0);
    let same = ", match: {query: {a: b}}";
    assert_eq!(both(&format!("/{same}"), same), 0);
}

#[test]
fn an_exemption_of_everything() {
    let yaml = "{limits: [], except: {paths: [/]}}";
    assert_snapshot!(policy(yaml).warnings.join("\n"), @"`except.paths` holds `/`, so no request is judged");
}

#[test]
fn bans_of_everybody() {
    let ban = |actor| {
        of(&format!(
            "{{actor: {actor}, unit: day, rpu: 5, ban: {{after: 5, within: 1m, for: 1m}}}}"
        ))
    };
    assert_snapshot!(ban("all"), @"everybody is one caller to these rules, so a ban shuts everybody out: root-all-day-tb");
    assert_eq!(ban("address"), "");
}

#[test]
fn costs_that_callers_choose() {
    let cost =
        |place| of(&format!("{{actor: address, unit: day, rpu: 9, cost: {{{place}, max: 5}}}}"));
    assert_snapshot!(cost("header: x-cost"), @"callers choose what their requests take by these rules, unless a proxy in front sets the header of `cost`: root-address-day-tb");
    assert_eq!(cost("metadata: [a, b]"), "");
}

#[test]
fn a_larger_unit_that_allows_less() {
    let rules = |day: &str, minute: &str| {
        of(&format!(
            "{{name: d, actor: address, unit: day, algo: W, {day}}}, {{name: m, actor: address, unit: minute, {minute}}}"
        ))
    };
    assert_snapshot!(rules("rpu: 50", "rpu: 60"), @"these rules allow more in their unit than another rule of the same entry and actor allows in a larger one, so they may never refuse anybody: m");
    for (day, minute) in [
        ("rpu: 60", "rpu: 60"),
        ("rpu: 50", "rpu: 60, burst: 5"),
        ("rpu: 50, scope: local", "rpu: 60"),
        ("rpu: 50, shadow: true", "rpu: 60"),
        ("rpu: 50, cost: 5", "rpu: 60"),
    ] {
        assert_eq!(rules(day, minute), "", "{day} and {minute}");
    }
}
