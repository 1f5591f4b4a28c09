//! Gauges that tell of limits, as long as they are in force.

use super::{MILLISECOND, Thread};
use diana_core::time::SECOND;

fn text(rules: &str) -> String {
    format!("keys: 500\nlimits: [{{Url: /, rules: [{rules}]}}]")
}

/// A rule's limit, its window, and the room for its callers.
fn told(thread: &Thread, rule: &str, scope: &str) -> [i64; 3] {
    let limited = format!("limit_{scope}");
    let names = [limited.as_str(), "window_us", "keys_limit"];
    names.map(|what| thread.host.count_of(&format!("diana.ns.rule.{rule}.{what}")))
}

#[test]
fn limits_are_told_before_the_first_request() {
    let day = 86_400 * SECOND as i64;
    for (rule, scope, expected) in [
        ("actor: account, unit: day, rpu: 7, algo: W, scope: local", "local", [7, day, 500]),
        (
            "actor: all, unit: second, rpu: 7, algo: SW, scope: gateway",
            "gateway",
            [7, 1_100_000, 1],
        ),
        // A bucket of 20 permits that 5 a second fill.
        (
            "actor: account, unit: second, rpu: 5, burst: 20, algo: TB, scope: global",
            "global",
            [20, 4_000_000, 500],
        ),
        ("actor: account, in_flight: 3", "gateway", [3, 0, 500]),
        (
            "actor: account, unit: day, rpu: 7, algo: W, scope: local, quota: {accounts: 90000}",
            "local",
            [7, day, 90_000],
        ),
    ] {
        let redis = "redis: {cluster: redis}\n";
        let thread = Thread::with(&format!("{redis}{}", text(&format!("{{name: r, {rule}}}"))));
        assert_eq!(told(&thread, "r", scope), expected, "{rule}");
    }
    // Without a Redis a gateway counts for itself.
    let rule = "{name: r, actor: all, unit: second, rpu: 5, algo: W, scope: global}";
    let thread = Thread::with(&text(rule));
    assert_eq!(told(&thread, "r", "gateway")[0], 5);
    assert_eq!(told(&thread, "r", "global")[0], 0);
}

fn rule(name: &str, rpu: u32) -> String {
    format!("{{name: {name}, actor: account, unit: minute, rpu: {rpu}, algo: W, scope: local}}")
}

#[test]
fn a_rule_that_ends_has_no_limit_and_one_that_goes_on_has_its_new_one() {
    let mut thread = Thread::with(&text(&[rule("goes", 5), rule("stays", 5)].join(", ")));
    let limits = |thread: &Thread| ["goes", "stays"].map(|it| told(thread, it, "local")[0]);
    assert_eq!(limits(&thread), [5, 5]);
    assert!(thread.configure(1, &text(&rule("stays", 9))));
    assert_eq!(limits(&thread), [0, 9]);
    assert_eq!(told(&thread, "goes", "local"), [0, 0, 0]);
    thread.end(1);
    assert_eq!(limits(&thread), [0, 0]);
}

/// A listener drains for many minutes beside the one that took its place.
#[test]
fn what_drains_does_not_take_the_limits_of_what_is_in_force() {
    let both = text(&[rule("goes", 5), rule("stays", 5)].join(", "));
    let mut thread = Thread::with(&both);
    assert!(thread.request(1, 10, "ann"));
    assert!(thread.configure(2, &text(&rule("stays", 9))));
    let limits = |thread: &Thread| ["goes", "stays"].map(|it| told(thread, it, "local")[0]);
    thread.pass(10 * SECOND);
    assert_eq!(limits(&thread), [5, 9], "one is in force for the streams of the other still");
    thread.end(1);
    assert_eq!(limits(&thread), [5, 9]);
    thread.streams.clear();
    thread.tick(2);
    thread.pass(MILLISECOND);
    assert_eq!(limits(&thread), [0, 9]);
}

/// What nobody is called about any more is withdrawn at once.
#[test]
fn with_the_last_root_go_the_limits() {
    let global = rule("r", 5).replace("local", "global");
    let mut thread = Thread::with(&format!("redis: {{cluster: redis}}\n{}", text(&global)));
    thread.request(1, 10, "ann");
    thread.streams.clear();
    assert_eq!(told(&thread, "r", "global")[0], 5);
    thread.end(1);
    assert_eq!(told(&thread, "r", "global")[0], 0);
}
