//! Keys that conflict with `in_flight`.

fn problems(rule: &str) -> String {
    let document = format!("limits: [{{Url: /, rules: [{rule}]}}]");
    diana_config::Reader::default()
        .policy(document.as_bytes())
        .err()
        .map(|all| all.to_string())
        .unwrap_or_default()
}

#[test]
fn in_flight_refuses_keys_of_time_windows() {
    for key in [
        "unit: second",
        "rpu: 5",
        "algo: W",
        "cost: 2",
        "count: {status: [401]}",
        "burst: 3",
        "slices: 5",
        "ban: {after: 1, within: 1m, for: 1m}",
        "quota: {accounts: 5}",
        "max_delay: 1s",
        "warm_up: 1s",
    ] {
        let found = problems(&format!("{{actor: account, in_flight: 20, {key}}}"));
        assert!(found.contains("not allowed with `in_flight`"), "{key}: {found}");
        assert_eq!(found.lines().count(), 1, "{key}: {found}");
    }
    for limit in ["0", "1000001", "-1", "ten", "1.5", "[]"] {
        let found = problems(&format!("{{actor: account, in_flight: {limit}}}"));
        assert!(found.contains("1 … 1000000"), "{limit}: {found}");
    }
    for rule in ["{actor: account, in_flight: 1}", "{actor: all, in_flight: 1000000, scope: local}"]
    {
        assert_eq!(problems(rule), "", "{rule}");
    }
}

#[test]
fn in_flight_rule_has_a_default_name() {
    let document = "limits: [{Url: /a, rules: [{actor: account, in_flight: 1}, {actor: account, in_flight: 2}]}]";
    let policy = diana_config::Reader::default().policy(document.as_bytes()).unwrap();
    let names: Vec<_> = policy.limits[0].rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["a-account-in_flight", "a-account-in_flight-2"]);
    assert!(
        policy.warnings.iter().any(|line| line.contains("occupy the `in_flight` slots")),
        "{:?}",
        policy.warnings
    );
}
