//! The forms that a configuration may have.

use serde_json::json;

use crate::harness::Gateway;

#[track_caller]
fn assert_two_are_admitted(gateway: &Gateway) {
    let envoy = gateway.start_shared();
    assert_eq!(envoy.statuses(3, "/", &[]), [200, 200, 503]);
}

#[test]
fn yaml() {
    assert_two_are_admitted(&Gateway::with(
        "limits: [{Url: /, rules: [{actor: all, unit: hour, rpu: 2, scope: local}]}]",
    ));
}

#[test]
fn json() {
    assert_two_are_admitted(&Gateway::with(
        r#"{"limits":[{"url":"/","rules":[{"actor":"all","unit":"hour","rpu":2.0,"scope":"local"}]}]}"#,
    ));
}

#[test]
fn form_of_the_seed() {
    assert_two_are_admitted(&Gateway::with(
        "
Url: /
rules:
  - actor: all
    unit: hour
    rpu: 2
    algo: TB
    scope: local
---
Url: /other
rules:
  - {actor: all, unit: hour, rpu: 1, algo: SW, scope: local}
",
    ));
}

#[test]
fn object_of_envoy() {
    let rule = json!({"actor": "all", "unit": "hour", "rpu": 2, "scope": "local"});
    assert_two_are_admitted(&Gateway::with_struct(
        json!({"limits": [{"Url": "/", "rules": [rule]}]}),
    ));
}
