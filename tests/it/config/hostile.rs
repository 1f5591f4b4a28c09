//! Documents designed to cost time or memory. Each is refused early with a clear problem. Otherwise
//! its test does not end.

use super::{parse, problems};

/// Asserts that the first line of the report contains `what`.
fn refused(text: &str, what: &str) {
    let problems = problems(text);
    let first = problems.lines().next().unwrap_or_default();
    assert!(first.contains(what), "{}\nis not about: {what}", &first[..first.len().min(300)]);
}

#[test]
fn deep_nesting_is_refused() {
    for piece in ["[", "[\n", "{a: ", "{\"a\":[", "- ", "&a [", ": ", "[{a: \"\", b: "] {
        refused(&piece.repeat(80_000), "nested too deeply");
    }
    for piece in ["{", "? ", "? [", "- - ? ", "[[{"] {
        refused(&piece.repeat(80_000), "found a list or a mapping as a key");
    }
    refused(&"[".repeat(1_000_000), "nested too deeply");
    refused(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), "nested too deeply");
    let steps: String = (0..1_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    refused(&steps, "nested too deeply");
    refused("a: &a [*a]", "nested too deeply");
    refused(&format!("a: {}1{}", "[".repeat(32), "]".repeat(32)), "nested too deeply");
    refused(&format!("a: {}1{}", "[".repeat(31), "]".repeat(31)), "required");
}

#[test]
fn exponential_aliases_are_refused() {
    let bomb = |seed: &str| {
        (1..20).fold(format!("a0: &a0 {seed}\n"), |text, level| {
            let nine = vec![format!("*a{}", level - 1); 9].join(", ");
            format!("{text}a{level}: &a{level} [{nine}]\n")
        })
    };
    refused(&bomb("[x, x, x, x, x, x, x, x, x]"), "more than 200000 nodes");
    refused(&bomb("x"), "more than 200000 nodes");
    refused(&bomb("{&k x: 1, *k : 1, *k : 1, *k : 1}"), "more than 200000 nodes");
    let long = "x".repeat(500_000);
    refused(&format!("a: &a {long}\nb: [{}]", vec!["*a"; 100_000].join(",")), "aliases");
    refused(
        &format!("a: &a {}\nb: {{{}}}", &long[..1000], vec!["*a : 1"; 90_000].join(",")),
        "aliases",
    );
}

#[test]
fn large_documents_are_refused() {
    let limit = 1 << 20;
    refused(&" ".repeat(limit + 1), "the text has 1048577 bytes");
    refused(&" ".repeat(limit), "limits: required");
    refused(&format!("[{}]", vec!["1"; 500_000].join(",")), "too large");
    refused(&format!("&a [{}]", vec!["1"; 150_000].join(",")), "anchors contain more than");
    refused(&"---\n".repeat(limit / 4), "too large");
    refused(&format!("{}: 1", "x".repeat(limit - 3)), "not valid YAML");
    refused(&format!("limits: {}", "x".repeat(limit - 8)), "found `xxx");
    refused(&"%TAG !a! tag:x,2000:\n".repeat(limit / 21), "lines that begin with `%`");
    refused(&"Url:/\n".repeat(limit / 6), "a space is missing");
}

#[test]
fn many_problems_are_counted() {
    let limit = 1 << 20;
    let rule = "    - {actor: x, unit: y, rpu: -1}\n";
    let text = format!("limits:\n- Url: /\n  rules:\n{}", rule.repeat(25_000));
    let problems = parse(text.as_bytes()).expect_err("many problems");
    assert_eq!(problems.list().len() + problems.more(), 75_000);
    assert_eq!(problems.list().last().unwrap().position, Some((20, 24)));
    refused(&format!("{text}{}", rule.repeat(limit / rule.len() - 25_002)), "too large");
    let keys: String = (0..80_000).map(|number| format!("k{number}: 1\n")).collect();
    refused(&keys, "limits: required");
    refused(&"a: 1\n".repeat(90_000), "limits: required");
}

#[test]
fn many_rules_are_read() {
    let rule = "    - {actor: all, unit: day, rpu: 1}\n";
    let text = format!("limits:\n- Url: /\n  rules:\n{}", rule.repeat(15_000));
    let policy = parse(text.as_bytes()).expect("only many");
    let last = &policy.limits[0].rules[14_999].name;
    assert_eq!(last, "root-all-day-tb-15000");
}
