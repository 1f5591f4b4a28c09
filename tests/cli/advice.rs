//! The advice of `diana check`.

use crate::check::{GOOD, found, indented};
use crate::command::{diana_in, folder};

/// A file that is too large for `kubectl apply` gets advice.
#[test]
fn large_files_get_advice() {
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

#[test]
fn many_rules_get_advice_on_their_series() {
    let advised = |rules: usize| {
        let rules = "      - {actor: device, unit: day, rpu: 5}\n".repeat(rules);
        let (all, code) = found("rules.yaml", &format!("limits:\n  - Url: /\n    rules:\n{rules}"));
        assert_eq!(code, Some(0), "{all}");
        all.to_string()
    };
    assert!(!advised(499).contains(" series, and Envoy"));
    assert!(advised(500).contains("the metrics of 500 rules have at least 2000 series, and Envoy"));
}

/// A reduced number of callers per rule gets advice with a remedy.
#[test]
fn many_local_rules_get_advice_on_their_keys() {
    let advised = |scope: &str| {
        let rule = format!("      - {{actor: device, unit: day, rpu: 5, scope: {scope}}}\n");
        let rules = rule.repeat(520);
        let (all, code) = found("rules.yaml", &format!("limits:\n  - Url: /\n    rules:\n{rules}"));
        assert_eq!(code, Some(0), "{all}");
        all.to_string()
    };
    let local = advised("local");
    assert!(local.contains("each of these 520 rules has room for `keys: "), "{local}");
    assert!(local.contains("reduce `keys`, rules or slices to use less"), "{local}");
    assert!(!advised("gateway").contains("has room for `keys: "));
}

/// A bucket makes up for what gateways admit too much, a short window repeats it.
#[test]
fn short_windows_that_ask_after_get_advice() {
    let advised = |unit: &str, algo: &str, ask: &str| {
        let rule = format!("actor: device, unit: {unit}, rpu: 5, algo: {algo}, ask: {ask}");
        let rules = format!("    rules: [{{{rule}, scope: global}}]\n");
        let redis = "namespace: a\nredis: {cluster: redis}\n";
        let (all, _) = found("rules.yaml", &format!("{redis}limits:\n  - Url: /\n{rules}"));
        all.to_string().contains("ask-after-by-second")
    };
    assert!(advised("second", "W", "after") && advised("59s", "SW", "after"));
    assert!(!advised("minute", "W", "after") && !advised("second", "W", "before"));
    assert!(!advised("second", "TB", "after"));
}

/// The advice about rules, and that about files and manifests.
#[test]
fn each_advice_can_be_accepted() {
    let of_files = ["large-file", "native-module", "overridden-policy", "shared-namespace"];
    let ids: Vec<&str> = diana_config::advice_ids().chain(of_files).collect();
    assert!(ids.contains(&"chosen-key") && ids.contains(&"local-scope"), "{ids:?}");
    let folder = folder(&[("rules.yaml", "limits: []")]);
    let accepted = |ids: &[&str]| {
        diana_in(&folder, &["check", "--accept", &ids.join(","), "rules.yaml"], b"").code
    };
    assert_eq!(accepted(&ids), Some(0));
    // The filter applies such documents differently from their text.
    for mistake in ["empty-condition", "wildcard", "redis-without-namespace", "start-unused"] {
        assert_eq!(accepted(&[mistake]), Some(2), "{mistake}");
    }
}
