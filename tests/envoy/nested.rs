//! Several rules for one request: the order, and that a refused request leaves all as they were.

use crate::harness::{Envoy, Gateway};

fn nested() -> Envoy {
    Gateway::with(
        "
limits:
  - Url: /sample
    rules:
      - {name: sample, actor: account, unit: hour, rpu: 3, scope: local}
  - Url: /
    rules:
      - {name: everything, actor: all, unit: hour, rpu: 10, scope: local}
",
    )
    .start_shared()
}

#[test]
fn a_refused_request_charges_no_rule() {
    let envoy = nested();
    let ada = [("x-account-id", "ada")];
    assert_eq!(envoy.statuses(6, "/sample/1", &ada), [200, 200, 200, 503, 503, 503]);
    // Three of ten are used, although six have been judged.
    assert_eq!(envoy.statuses(8, "/else", &[]), [200, 200, 200, 200, 200, 200, 200, 503]);
}

#[test]
fn the_other_way_round_the_inner_rule_is_not_charged() {
    let envoy = nested();
    assert_eq!(envoy.statuses(10, "/else", &[]), [200; 10]);
    let ada = [("x-account-id", "ada")];
    for _ in 0..5 {
        let refused = envoy.get("/sample", &ada);
        assert_eq!(refused.status, 503);
        let fields = refused.header("ratelimit").unwrap();
        assert!(fields.contains(r#""sample";r=3"#), "/sample has been charged: {fields}");
    }
}

#[test]
fn the_first_refusing_rule_is_named_and_the_longest_wait_is_told() {
    let envoy = Gateway::with(
        "
limits:
  - Url: /sample
    rules: [{name: inner, actor: all, unit: day, rpu: 1, scope: local}]
  - Url: /
    rules: [{name: outer, actor: all, unit: hour, rpu: 1, scope: local}]
",
    )
    .start_shared();
    assert_eq!(envoy.get("/sample", &[]).status, 200);
    let refused = envoy.get("/sample", &[]);
    let wait: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((3_601..=86_400).contains(&wait), "waits {wait} s, no longer than the outer rule");
    super::metrics::settles(&envoy, "rule.outer.refused", 1);
    super::metrics::settles(&envoy, "rule.inner.refused", 0);
}

#[test]
fn rules_cover_whole_segments() {
    let envoy = Gateway::with(
        "limits: [{Url: /sample, rules: [{actor: all, unit: hour, rpu: 0, scope: local}]}]",
    )
    .start_shared();
    for path in ["/sample", "/sample/", "/sample/1/2", "/sample?x=1", "/sample/?"] {
        assert_eq!(envoy.get(path, &[]).status, 503, "{path}");
    }
    for path in ["/", "/samples", "/sampl", "/other/sample", "/Sample"] {
        assert_eq!(envoy.get(path, &[]).status, 200, "{path}");
    }
}

#[test]
fn conditions_must_all_hold() {
    let envoy = Gateway::with(
        r#"
limits:
  - Url: /
    match: {methods: [POST], hosts: ["*.example.com"], headers: {x-app: {prefix: mobile}}}
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
"#,
    )
    .start_shared();
    let post = |host, app| {
        let headers = [("host", host), ("x-app", app), ("content-length", "0")];
        let bytes = crate::harness::request("POST", "/", &headers);
        crate::harness::exchange(envoy.port, &bytes).unwrap().status
    };
    assert_eq!(post("shop.example.com", "mobile-7"), 503);
    assert_eq!(post("SHOP.Example.com:8080", "mobile"), 503);
    assert_eq!(post("example.com", "mobile"), 200);
    assert_eq!(post("shop.example.com", "web"), 200);
    assert_eq!(envoy.get("/", &[("x-app", "mobile")]).status, 200);
}
