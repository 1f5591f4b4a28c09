//! Gauges with limits, which exist as long as their rules do.

use super::{MILLISECOND, Thread};
use diana_policy::time::SECOND;
use kit::host::FakeHost;

fn text(rules: &str) -> String {
    format!("keys: 500\nlimits: [{{Url: /, rules: [{rules}]}}]")
}

/// A rule's limit, its window, and the room for its callers.
fn gauges(thread: &Thread, rule: &str, scope: &str) -> [i64; 3] {
    let limited = format!("limit_{scope}");
    let names = [limited.as_str(), "window_us", "keys_limit"];
    names.map(|what| thread.host.count_of(&format!("diana.ns.rule.{rule}.{what}")))
}

fn rule(name: &str, rpu: u32) -> String {
    format!("{{name: {name}, actor: account, unit: minute, rpu: {rpu}, algo: W, scope: local}}")
}

/// A listener drains for many minutes after its replacement.
#[test]
fn draining_instance_keeps_current_limit_gauges() {
    let both = text(&[rule("goes", 5), rule("stays", 5)].join(", "));
    let mut thread = Thread::with(&both);
    assert!(thread.request(1, 10, "ann"));
    assert!(thread.configure(2, &text(&rule("stays", 9))));
    let limits = |thread: &Thread| ["goes", "stays"].map(|it| gauges(thread, it, "local")[0]);
    thread.pass(10 * SECOND);
    assert_eq!(limits(&thread), [5, 9], "one is in force for the streams of the other still");
    thread.end(1);
    assert_eq!(limits(&thread), [5, 9]);
    thread.streams.clear();
    thread.tick(2);
    thread.pass(MILLISECOND);
    assert_eq!(limits(&thread), [0, 9]);
}

/// The gauges of a root are removed at once when it is the last one of a process to end.
#[test]
fn last_root_clears_limit_gauges() {
    let global = rule("r", 5).replace("local", "global");
    let process = Some(&*Box::leak(Box::default()));
    let mut thread = Thread::of(FakeHost { process, ..FakeHost::default() });
    assert!(thread.configure(1, &format!("redis: {{cluster: redis}}\n{}", text(&global))));
    thread.request(1, 10, "ann");
    thread.streams.clear();
    assert_eq!(gauges(&thread, "r", "global")[0], 5);
    thread.end(1);
    assert_eq!(gauges(&thread, "r", "global")[0], 0);
}
