//! An invalid configuration is refused, with every problem in Envoy's log. A valid one may be a
//! `Struct`.

use serde_json::json;

use crate::harness::{Gateway, assert_no_trap, eventually, validate};

const GOOD: &str = "limits: [{Url: /, rules: [{actor: all, unit: hour, rpu: 2, scope: local}]}]";

const BAD: &str = "
limits:
  - Url: sample
    rules:
      - {actor: all, unit: fortnight, rpu: 2}
      - {actor: nobody, unit: second, rpu: 2, algo: XX}
      - {actor: all, unit: second, rpu: 2, bust: 3}
";

/// The paths of the problems in `BAD`.
const PROBLEM_PATHS: [&str; 5] = [
    "limits[0].Url",
    "limits[0].rules[0].unit",
    "limits[0].rules[1].actor",
    "limits[0].rules[1].algo",
    "limits[0].rules[2]",
];

#[track_caller]
fn assert_problems(log: &str) {
    for path in PROBLEM_PATHS {
        assert!(log.contains(path), "{path} is not in the log:\n{log}");
    }
    assert!(log.contains("burst"), "the log does not ask whether `burst` was meant:\n{log}");
    assert_no_trap(log);
}

#[test]
fn validation_of_invalid_rules_fails() {
    assert!(validate(&Gateway::with(GOOD)).status.success());
    let refused = validate(&Gateway::with(BAD));
    assert_eq!(refused.status.code(), Some(1));
    assert_problems(&String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn bad_update_leaves_the_old_rules_in_force() {
    let deep = "[".repeat(5_000);
    let mut bomb = String::from("a0: &a0 [x, x]\n");
    for level in 1..40 {
        let below = level - 1;
        bomb += &format!("a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]\n");
    }
    let bad = [BAD, "", "limits", "limits: 3", "{", "limits: [{]}", "\u{0}", &deep, &bomb];
    let envoy = Gateway::with(GOOD).start();
    assert_eq!(envoy.get("/", &[]).status, 200);
    for (count, text) in (1..).zip(bad) {
        envoy.put(&Gateway::with(text));
        let rejected = || envoy.stat("listener_manager.lds.update_rejected");
        let start: String = text.chars().take(20).collect();
        let refused = || (rejected() == Some(count)).then_some(());
        eventually(&format!("Envoy to refuse {start:?}"), refused);
    }
    assert_problems(&envoy.log());
    // The usage is unchanged, too.
    assert_eq!(envoy.statuses(2, "/", &[]), [200, 503]);
    envoy.update(&Gateway::with("limits: []"));
    eventually("the next good update", || (envoy.get("/", &[]).status == 200).then_some(()));
}

#[test]
fn struct_of_envoy_is_read() {
    let rule = json!({"actor": "all", "unit": "hour", "rpu": 2, "scope": "local"});
    let rules = json!({"limits": [{"Url": "/", "rules": [rule]}]});
    let envoy = Gateway::with_struct(rules).start_shared();
    assert_eq!(envoy.statuses(3, "/", &[]), [200, 200, 503]);
}

/// A process whose environment chose that it admits while no document was ever good.
#[test]
fn new_process_admits_without_a_good_document_until_it_is_mended() {
    let with = |text: &str| Gateway::with(text).variable("DIANA_WITHOUT_DOCUMENT", "admit");
    let envoy = with(BAD).start();
    assert_eq!(envoy.statuses(9, "/", &[]), [200; 9]);
    // The dynamic module writes its log after the first responses.
    let line = "had no good document in this process";
    let log = eventually("its line", || Some(envoy.log()).filter(|log| log.contains(line)));
    assert_problems(&log);
    assert_eq!(log.matches(line).count(), 1, "{log}");
    assert!(envoy.metric("without_document") >= Some(1));
    envoy.update(&with(GOOD));
    let refused = || (envoy.get("/", &[]).status == 503).then_some(());
    eventually("a limit", refused);
    // Now it has a good document, and keeps it.
    envoy.put(&with("limits: 3"));
    let rejected = || (envoy.stat("listener_manager.lds.update_rejected") == Some(1)).then_some(());
    eventually("Envoy to refuse a mistake", rejected);
    assert_eq!(envoy.get("/", &[]).status, 503);
    // Envoy remembers that this one was accepted, and does not ask the module again.
    envoy.update(&with(BAD));
    eventually("no limit", || (envoy.get("/", &[]).status == 200).then_some(()));
}
