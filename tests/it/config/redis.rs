//! The meaning of `redis`.

use super::policy;
use diana_config::parse_remote;
use diana_policy::redis::{OnFailure, Redis};

fn redis(settings: &str) -> Redis {
    policy(&format!("limits: []\nredis: {settings}")).redis.unwrap()
}

#[test]
fn defaults() {
    let wanted = Redis {
        cluster: "diana_redis".into(),
        timeout: 20_000,
        on_failure: OnFailure::Gateway,
        username_env: None,
        password_env: None,
        db: 0,
        parts: 1,
    };
    assert_eq!(redis("{cluster: diana_redis}"), wanted);
    assert_eq!(policy("limits: []").redis, None);
}

#[test]
fn every_key() {
    let wanted = Redis {
        cluster: "outbound|6379||redis.local".into(),
        timeout: 1_000,
        on_failure: OnFailure::Deny,
        username_env: Some("DIANA_REDIS_USERNAME".into()),
        password_env: Some("DIANA_REDIS_PASSWORD".into()),
        db: 65_535,
        parts: 1,
    };
    let settings = "
  cluster: outbound|6379||redis.local
  timeout: 1ms
  on_failure: deny
  username_env: DIANA_REDIS_USERNAME
  password_env: DIANA_REDIS_PASSWORD
  db: 65535";
    assert_eq!(redis(settings), wanted);
    assert_eq!(redis("{cluster: c, timeout: 1s}").timeout, 1_000_000);
    for (name, meaning) in [("gateway", OnFailure::Gateway), ("allow", OnFailure::Allow)] {
        assert_eq!(redis(&format!("{{cluster: c, on_failure: {name}}}")).on_failure, meaning);
    }
}

#[test]
fn rule_may_have_its_own_on_failure() {
    let rules = |more: &str| {
        format!(
            "limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 1, scope: global{more}}}]}}]"
        )
    };
    for (more, wanted) in [
        ("", None),
        (", on_failure: gateway", Some(OnFailure::Gateway)),
        (", on_failure: allow", Some(OnFailure::Allow)),
        (", on_failure: deny", Some(OnFailure::Deny)),
    ] {
        assert_eq!(policy(&rules(more)).limits[0].rules[0].on_failure, wanted);
    }
}

#[test]
fn the_gateways_own_stays_in_force_under_remote_rules() {
    let local = policy("limits: []\nredis: {cluster: c, db: 5}\nremote: {cluster: d, path: /}");
    let remote = parse_remote(b"limits: []", &local.own()).unwrap();
    assert!(remote.redis.is_some_and(|redis| redis.db == 5));
    assert_eq!(parse_remote(b"limits: []", &policy("limits: []").own()).unwrap().redis, None);
}

#[test]
fn parts() {
    assert_eq!(redis("{cluster: c, proxied: true}").parts, 1);
    assert_eq!(redis("{cluster: c, proxied: true, parts: 1024}").parts, 1024);
    assert_eq!(redis("{cluster: c, proxied: false, parts: 1}").parts, 1);
}
