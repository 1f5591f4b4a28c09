//! `redis`.

use insta::assert_snapshot;

use super::super::messages;

/// What is said about `redis`.
fn of(redis: &str) -> String {
    messages(&format!("limits: []\nredis: {redis}"))
}

/// What is said about these settings beside the one that is required.
fn with(settings: &str) -> String {
    of(&format!("{{cluster: c, {settings}}}"))
}

#[test]
fn shape() {
    assert_snapshot!(of("on"), @"redis: found `on`, allowed: a mapping such as `{cluster: diana_redis}`");
    assert_snapshot!(of("{}"), @"redis.cluster: required, allowed: the name of a cluster in Envoy, up to 255 visible ASCII characters");
    assert_snapshot!(with("clutser: x, host: 10.0.0.1, password: secret"), @"
    redis.clutser: unknown key, allowed: cluster, timeout, on_failure, username_env, password_env, db, proxied, parts; did you mean `cluster`?
    redis.host: unknown key, allowed: cluster, timeout, on_failure, username_env, password_env, db, proxied, parts
    redis.password: unknown key, allowed: cluster, timeout, on_failure, username_env, password_env, db, proxied, parts; did you mean `password_env`?
    ");
    assert_snapshot!(messages("limits: []\nreddis: {cluster: c}"), @"reddis: unknown key, allowed: limits, actors, except, time_zone, response, shadow, namespace, keys, log, accepted, mark, redis, remote, explain, plans, admin; did you mean `redis`?");
}

#[test]
fn whom_to_ask() {
    assert_snapshot!(of("{cluster: ''}"), @"redis.cluster: found ``, allowed: the name of a cluster in Envoy, up to 255 visible ASCII characters");
    assert_snapshot!(of("{cluster: [a, b], db: 1}"), @"redis.cluster: found a list, allowed: the name of a cluster in Envoy, up to 255 visible ASCII characters");
    assert_snapshot!(of("{cluster: 'a b', db: 1}"), @"redis.cluster: found `a b`, allowed: the name of a cluster in Envoy, up to 255 visible ASCII characters");
    assert_snapshot!(of(&format!("{{cluster: {}}}", "x".repeat(256))), @"redis.cluster: found `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`, allowed: the name of a cluster in Envoy, up to 255 visible ASCII characters");
}

#[test]
fn numbers() {
    assert_snapshot!(with("timeout: 0, db: -1"), @"
    redis.timeout: found `0`, allowed: a duration, 1ms … 1s: a whole number of ms, s, m, h or d, such as `1500ms`
    redis.db: found `-1`, allowed: a whole number, 0 … 65535
    ");
    assert_snapshot!(with("timeout: 1001ms, db: 65536"), @"
    redis.timeout: found `1001ms`, allowed: a duration, 1ms … 1s: a whole number of ms, s, m, h or d, such as `1500ms`
    redis.db: found `65536`, allowed: a whole number, 0 … 65535
    ");
    assert_snapshot!(with("timeout: 20, db: '1'"), @"
    redis.timeout: found `20`, allowed: a duration, 1ms … 1s: a whole number of ms, s, m, h or d, such as `1500ms`
    redis.db: found the text `1`, allowed: a whole number, 0 … 65535; write 1, without quotes
    ");
    assert_snapshot!(with("timeout: 500us, db: prod"), @"
    redis.timeout: found `500us`, allowed: a duration, 1ms … 1s: a whole number of ms, s, m, h or d, such as `1500ms`
    redis.db: found `prod`, allowed: a whole number, 0 … 65535
    ");
}

#[test]
fn on_failure() {
    assert_snapshot!(with("on_failure: gatway"), @"redis.on_failure: found `gatway`, allowed: gateway, allow, deny; did you mean `gateway`?");
    assert_snapshot!(with("on_failure: true"), @"redis.on_failure: found `true`, allowed: gateway, allow, deny");
}

#[test]
fn secrets() {
    assert_snapshot!(with("password_env: 'A B', username_env: A-B"), @"
    redis.password_env: found `A B`, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`
    redis.username_env: found `A-B`, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`
    ");
    assert_snapshot!(with("password_env: '', username_env: 5"), @"
    redis.password_env: found ``, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`
    redis.username_env: found `5`, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`; put it in quotes to make it text
    ");
    assert_snapshot!(with("username_env: DIANA_REDIS_USERNAME"), @"redis.username_env: means nothing without `password_env`");
    assert_snapshot!(with("password_env: {env: A}"), @"redis.password_env: found a mapping, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`");
}

#[test]
fn proxies() {
    assert_snapshot!(with("proxied: true, username_env: U, password_env: P, db: 0"), @"
    redis.username_env: means nothing with `proxied: true`: the proxy logs in, to database 0
    redis.password_env: means nothing with `proxied: true`: the proxy logs in, to database 0
    redis.db: means nothing with `proxied: true`: the proxy logs in, to database 0
    ");
    assert_snapshot!(with("parts: 2"), @"redis.parts: means nothing without `proxied: true`: Redis itself is one part");
    assert_snapshot!(with("proxied: no, parts: 2"), @"redis.proxied: found `no`, allowed: true or false");
    assert_snapshot!(with("proxied: true, parts: 0"), @"redis.parts: found `0`, allowed: a whole number, 1 … 1024");
    assert_snapshot!(with("proxied: true, parts: 1025"), @"redis.parts: found `1025`, allowed: a whole number, 1 … 1024");
    assert_snapshot!(with("proxied: true, parts: sixteen"), @"redis.parts: found `sixteen`, allowed: a whole number, 1 … 1024");
}
