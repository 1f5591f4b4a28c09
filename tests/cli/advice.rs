//! What `diana check` advises.

use serde_json::Value;

use crate::check::{GOOD, found, indented};

/// The names that the advice about covered rules names, the idle one first.
fn covered(rules: &str) -> Vec<Vec<String>> {
    let text = format!("limits:\n{rules}");
    let (all, code) = found("rules.yaml", &text);
    assert_eq!(code, Some(0), "{all}");
    let findings = all["findings"].as_array().unwrap().iter();
    let about = findings.filter(|one| one["message"].as_str().unwrap().contains("never refuses"));
    let names = |one: &Value| serde_json::from_value(one["rules"].clone()).unwrap();
    about.map(names).collect()
}

#[test]
fn a_rule_that_never_refuses_is_told_with_the_one_that_covers_it() {
    let two = |path: &str, idle: &str, strict: &str| {
        format!(
            "  - {{Url: {path}, rules: [{{name: idle, actor: device, {idle}}}]}}\n  - {{Url: /, rules: [{{name: strict, actor: device, {strict}}}]}}\n"
        )
    };
    let is_covered =
        |path: &str, idle: &str, strict: &str| !covered(&two(path, idle, strict)).is_empty();
    let (day, minute) = ("unit: day, rpu: 14400, algo: W", "unit: minute, rpu: 10, algo: W");
    assert_eq!(covered(&two("/a", day, minute)), [["idle", "strict"]]);
    // One permit less and it is of use at last.
    assert!(!is_covered("/a", "unit: day, rpu: 14399, algo: W", minute));
    assert!(is_covered("/a", "unit: second, rpu: 20, algo: TB", "unit: second, rpu: 20, algo: TB"));
    assert!(!is_covered(
        "/a",
        "unit: second, rpu: 20, algo: TB",
        "unit: second, rpu: 20, burst: 21, algo: TB"
    ));
    // What a bucket lets through at once is too much for windows.
    assert!(!is_covered(
        "/a",
        "unit: minute, rpu: 600, algo: W",
        "unit: second, rpu: 10, algo: TB"
    ));
    assert!(!is_covered("/a", day, "unit: minute, rpu: 10, algo: W, shadow: true"));
    assert!(!is_covered("/a", day, "unit: minute, rpu: 10, algo: W, scope: local"));
    assert!(!is_covered("/a", "unit: day, rpu: 14400, algo: W, cost: 2", minute));
}

#[test]
fn advice_stands_at_the_rules_that_it_is_about() {
    let text =
        GOOD.replace("rpu: 10", "rpu: 10, scope: local, ban: {after: 5, within: 1m, for: 1m}");
    let (all, code) = found("rules.yaml", &text);
    let lines: Vec<(u64, &str)> = all["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["line"].as_u64().unwrap(), one["message"].as_str().unwrap()))
        .collect();
    assert!(
        code == Some(0) && lines.len() == 2 && lines.iter().all(|(line, _)| *line == 4),
        "{all}"
    );
    assert!(lines.iter().any(|(_, text)| text.contains("a ban shuts everybody out")), "{all}");
    assert!(lines.iter().any(|(_, text)| text.contains("up to N times as much")), "{all}");
}

#[test]
fn encoded_text_under_unless_gets_advice() {
    let advised = |field: &str, test: &str| {
        let rules = format!(
            "limits: [{{Url: /, unless: {{{field}: {{x: {test}}}}}, rules: [{{name: few, actor: device, unit: second, rpu: 10}}]}}]"
        );
        let (all, code) = found("rules.yaml", &rules);
        assert_eq!(code, Some(0), "{all}");
        let advice = all["findings"].as_array().unwrap().iter();
        let about = |it: &&Value| it["message"].as_str().unwrap().contains("percent-encoded text");
        let rules: Vec<&Value> = advice.filter(about).map(|it| &it["rules"]).collect();
        rules == [&serde_json::json!(["few"])]
    };
    for field in ["query", "cookies"] {
        for test in
            ["ada%40example.com", "{in: [a, b%2fc]}", "{not: '%C3%A9'}", "{contains: '%20'}"]
        {
            assert!(advised(field, test), "{field} {test}");
        }
        for test in ["ada@example.com", "100%", "'%zz'", "{present: true}", "{in: [a, é]}"] {
            assert!(!advised(field, test), "{field} {test}");
        }
    }
    // Headers are compared as they stand.
    assert!(!advised("headers", "a%20b"));
}

/// The names that advice with this text names, where entries are `limits` and the actors `x`, `y`, `either`, `claim` and `token`
/// read a header `x` or `y`, both, a verified `sub` and that of any token.
fn advised(limits: &[&str], text: &str) -> Vec<String> {
    let actors = "x: [{header: X}], y: [{header: y}], either: [{header: x}, {cookie: x}], \
                  claim: [{jwt_claim: sub, payload: jwt}], token: [{jwt_claim: sub, unverified: true}]";
    let limits = limits.join("\n  - ");
    let (all, code) =
        found("rules.yaml", &format!("limits:\n  - {limits}\nactors: {{{actors}}}\n"));
    assert_eq!(code, Some(0), "{all}");
    let advice = all["findings"].as_array().unwrap().iter();
    let about = |it: &&Value| it["message"].as_str().unwrap().contains(text);
    let names = |it: &Value| serde_json::from_value::<Vec<String>>(it["rules"].clone()).unwrap();
    advice.filter(about).flat_map(names).collect()
}

/// An entry with one rule for each actor, named after it.
fn entry(more: &str, rules: &[&str]) -> String {
    let rule = |actor: &&str| {
        let name = actor.split(", ").next().unwrap().replace(['[', ']', ','], "");
        format!("{{name: {name}, actor: {actor}, unit: day, rpu: 5}}")
    };
    let rules: Vec<String> = rules.iter().map(rule).collect();
    format!("{{Url: /, {more}rules: [{}]}}", rules.join(", "))
}

#[test]
fn rule_for_requests_without_its_caller_gets_advice() {
    let idle = |more: &str, actor: &str| {
        !advised(&[&entry(more, &[actor])], "these rules count no request").is_empty()
    };
    let present = "headers: {x: {present: true}}";
    let unless = format!("unless: {{{present}}}, ");
    assert!(idle(&unless, "x"));
    assert!(idle(&format!("unless: [{{methods: [GET]}}, {{{present}}}], "), "x"));
    assert!(idle("match: {headers: {x: {present: false}}}, ", "x"));
    assert!(idle("unless: {claims: {payload: jwt, values: {sub: {present: true}}}}, ", "claim"));
    for actor in ["x, absent: share", "y", "either", "address", "all"] {
        assert!(!idle(&unless, actor), "{actor}");
    }
    assert!(!idle(&format!("unless: {{methods: [GET], {present}}}, "), "x"));
    assert!(!idle("unless: {headers: {x: {present: false}}}, ", "x"));
    assert!(!idle(&format!("match: {{{present}}}, "), "x"));
}

#[test]
fn requests_between_two_entries_get_advice() {
    let leaky = |limits: &[&str]| advised(limits, "no rule limits them");
    let [x, token] =
        ["x", "authorization"].map(|name| format!("headers: {{{name}: {{present: true}}}}"));
    let without = |present: &str| entry(&format!("unless: {{{present}}}, "), &["address"]);
    let with = |present: &str, actor: &str| entry(&format!("match: {{{present}}}, "), &[actor]);

    // A header without a claim in it.
    assert_eq!(leaky(&[&entry("", &["token"]), &without(&token)]), ["token"]);
    assert_eq!(leaky(&[&with(&token, "claim"), &without(&token)]), ["claim"]);
    // A part of a caller alone.
    assert_eq!(leaky(&[&entry("", &["[x,y]"]), &without(&x)]), ["xy"]);
    assert_eq!(
        leaky(&[&with(&x, "y"), &entry("match: {headers: {x: {present: false}}}, ", &["address"])]),
        ["y"]
    );

    // The actor finds all that has the value, or another rule counts the rest.
    assert_eq!(leaky(&[&with(&x, "x"), &without(&x)]), [""; 0]);
    assert_eq!(leaky(&[&entry("", &["either"]), &without(&x)]), [""; 0]);
    let claim = "claims: {payload: jwt, values: {sub: {present: true}}}";
    assert_eq!(leaky(&[&entry("", &["claim"]), &without(claim)]), [""; 0]);
    assert_eq!(leaky(&[&with(&x, "y, absent: share"), &without(&x)]), [""; 0]);
    assert_eq!(leaky(&[&with(&token, "claim"), &without(&token), &entry("", &["all"])]), [""; 0]);
    let no_options = entry("unless: {methods: [OPTIONS]}, ", &["x"]);
    assert_eq!(leaky(&[&no_options, &without(&x)]), [""; 0]);
    // The rule is in the entry that takes the requests out.
    assert_eq!(leaky(&[&entry(&format!("unless: {{{x}}}, "), &["[x,y]"])]), [""; 0]);
    // Requests with the value are for no rule: an exemption.
    assert_eq!(leaky(&[&without(&x)]), [""; 0]);
    assert_eq!(leaky(&[&entry("", &["y"]), &without(&x)]), [""; 0]);
    // Other paths.
    let elsewhere = with(&x, "y").replace("Url: /,", "Url: /a,");
    assert_eq!(leaky(&[&elsewhere, &without(&x).replace("Url: /,", "Url: /b,")]), [""; 0]);
    assert_eq!(leaky(&[&elsewhere, &without(&x)]), ["y"]);
}

/// What is too large for `kubectl apply` is told before it is tried.
#[test]
fn large_files_come_with_advice() {
    let of_size = |size: usize| format!("{GOOD}{}\n", "#".repeat(size - GOOD.len() - 1));
    let advised = |name: &str, text: &str| {
        let (all, code) = found(name, text);
        let advice = all["findings"].as_array().unwrap().iter();
        let large = advice.filter(|it| it["message"].as_str().unwrap().contains("--server-side"));
        assert_eq!(code, Some(0), "{all}");
        large.count()
    };
    assert_eq!(advised("rules.yaml", &of_size(256 << 10)), 0);
    assert_eq!(advised("rules.yaml", &of_size((256 << 10) + 1)), 1);
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: rules}}\ndata:\n  rules.yaml: |\n{}",
        indented(&of_size(300 << 10), 4)
    );
    assert_eq!(advised("map.yaml", &map), 1);
}

/// A bucket allows twice its quota in the unit in which it refills.
#[test]
fn bucket_with_settled_cost_for_a_budget_gets_advice() {
    let advised = |more: &str| {
        let rule = format!("{{name: r, actor: device, {more}}}");
        let text = format!("limits:\n  - Url: /\n    rules: [{rule}]\n");
        let (all, code) = found("rules.yaml", &text);
        assert_eq!(code, Some(0), "{all}");
        all.to_string().contains("for a budget write `algo: W`")
    };
    let cost = "rpu: 1000, cost: {response: {header: x-used}, reserve: 5, max: 50}";
    for unit in ["hour", "day", "90m"] {
        assert!(advised(&format!("unit: {unit}, {cost}")), "{unit}");
    }
    assert!(advised(&format!("unit: day, algo: TB, {cost}")));
    for other in [
        format!("unit: minute, {cost}"),
        format!("unit: day, algo: W, {cost}"),
        format!("unit: day, algo: SW, {cost}"),
        format!("unit: day, burst: 100, {cost}"),
        "unit: day, rpu: 1000, cost: 5".into(),
        "unit: day, rpu: 1000, count: {status: [401]}".into(),
    ] {
        assert!(!advised(&other), "{other}");
    }
}

#[test]
fn many_rules_get_the_number_of_their_series() {
    let advised = |rules: usize| {
        let rules = "      - {actor: device, unit: day, rpu: 5}\n".repeat(rules);
        let (all, code) = found("rules.yaml", &format!("limits:\n  - Url: /\n    rules:\n{rules}"));
        assert_eq!(code, Some(0), "{all}");
        all.to_string()
    };
    assert!(!advised(499).contains(" series or more"));
    assert!(advised(500).contains("the metrics of 500 rules are 2000 series or more"));
}

/// The room of each rule is told where it falls, with a remedy.
#[test]
fn many_local_rules_get_advice_on_their_room() {
    let advised = |scope: &str| {
        let rule = format!("      - {{actor: device, unit: day, rpu: 5, scope: {scope}}}\n");
        let rules = rule.repeat(520);
        let (all, code) = found("rules.yaml", &format!("limits:\n  - Url: /\n    rules:\n{rules}"));
        assert_eq!(code, Some(0), "{all}");
        all.to_string()
    };
    let local = advised("local");
    assert!(local.contains("each of these 520 rules has room for `keys: "), "{local}");
    assert!(local.contains("fewer rules or slices take less"), "{local}");
    assert!(!advised("gateway").contains("has room for `keys: "));
}
