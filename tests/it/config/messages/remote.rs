//! `remote`, and documents that come from there.

use diana_config::parse_remote;
use insta::assert_snapshot;

use super::super::{messages, policy};

/// What is said about `remote`.
fn of(remote: &str) -> String {
    messages(&format!("limits: []\nremote: {remote}"))
}

/// What is said about these settings beside those that are required.
fn with(settings: &str) -> String {
    of(&format!("{{cluster: c, path: /p, {settings}}}"))
}

#[test]
fn shape() {
    assert_snapshot!(of("on"), @"remote: found `on`, allowed: a mapping such as `{cluster: config_centre, path: /diana.yaml}`");
    assert_snapshot!(of("{}"), @"
    remote.cluster: required, allowed: the name of a cluster in Envoy, up to 255 visible ASCII characters
    remote.path: required, allowed: a path such as `/diana.yaml`, which begins with `/`, with its query, up to 2048 visible ASCII characters
    ");
    assert_snapshot!(with("paht: /x, interval: 5s"), @"
    remote.paht: unknown key, allowed: cluster, authority, path, method, headers, body, every, timeout, value, base64, max_size; did you mean `path`?
    remote.interval: unknown key, allowed: cluster, authority, path, method, headers, body, every, timeout, value, base64, max_size
    ");
}

#[test]
fn whom_to_ask_for_what() {
    assert_snapshot!(of("{cluster: '', path: diana.yaml}"), @"
    remote.cluster: found ``, allowed: the name of a cluster in Envoy, up to 255 visible ASCII characters
    remote.path: found `diana.yaml`, allowed: a path such as `/diana.yaml`, which begins with `/`, with its query, up to 2048 visible ASCII characters
    ");
    assert_snapshot!(of("{cluster: 'a b', authority: [x], path: '/a b'}"), @"
    remote.cluster: found `a b`, allowed: the name of a cluster in Envoy, up to 255 visible ASCII characters
    remote.authority: found a list, allowed: a host such as config.example.com, up to 255 visible ASCII characters
    remote.path: found `/a b`, allowed: a path such as `/diana.yaml`, which begins with `/`, with its query, up to 2048 visible ASCII characters
    ");
    assert_snapshot!(with(r#"method: put, authority: "a\tb""#), @r#"
    remote.method: found `put`, allowed: GET, POST
    remote.authority: found `a\tb`, allowed: a host such as config.example.com, up to 255 visible ASCII characters
    "#);
    assert_snapshot!(with("body: x"), @"remote.body: means nothing to `method: GET`; write `method: POST`");
    assert_snapshot!(with("method: POST, body: {key: x}"), @"remote.body: found a mapping, allowed: text");
    assert_snapshot!(with(&format!("method: POST, body: {}", "x".repeat(65_537))), @"remote.body: found 65537 bytes, allowed: at most 65536");
}

#[test]
fn headers() {
    assert_snapshot!(with("headers: x"), @"remote.headers: found `x`, allowed: a mapping such as `{x-token: {env: DIANA_TOKEN}}`");
    assert_snapshot!(with(r#"headers: {host: a, Content-Length: '5', "x y": z, x-a: "a\nb"}"#), @r#"
    remote.headers.host: set by the proxy or the filter itself; use `authority`
    remote.headers.Content-Length: set by the proxy or the filter itself
    remote.headers.`x y`: not a header's name
    remote.headers.x-a: found `a\nb`, allowed: at most 1024 visible ASCII characters, and spaces only between them
    "#);
    assert_snapshot!(with("headers: {x-a: {environment: A}, x-b: {env: 'A B'}, x-c: {env: 5}, x-d: [A]}"), @"
    remote.headers.x-a.env: required, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`
    remote.headers.x-a.environment: unknown key, allowed: env; did you mean `env`?
    remote.headers.x-b.env: found `A B`, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`
    remote.headers.x-c.env: found `5`, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`; put it in quotes to make it text
    remote.headers.x-d: found a list, allowed: at most 1024 visible ASCII characters, and spaces only between them
    ");
    assert_snapshot!(with("headers: {x-a: {env: A}, X-A: b}"), @"remote.headers.X-A: duplicate key: the same header as `x-a`");
}

#[test]
fn numbers() {
    assert_snapshot!(with("every: 500ms, timeout: 0, max_size: 1000"), @"
    remote.every: found `500ms`, allowed: a duration, 1s … 1d: a whole number of ms, s, m, h or d, such as `1500ms`
    remote.timeout: found `0`, allowed: a duration, 10ms … 30s: a whole number of ms, s, m, h or d, such as `1500ms`
    remote.max_size: found `1000`, allowed: a size, 1KiB … 16MiB: a whole number of KiB or MiB, such as `64KiB`
    ");
    assert_snapshot!(with("every: 2d, timeout: 31s, max_size: 17MiB"), @"
    remote.every: found `2d`, allowed: a duration, 1s … 1d: a whole number of ms, s, m, h or d, such as `1500ms`
    remote.timeout: found `31s`, allowed: a duration, 10ms … 30s: a whole number of ms, s, m, h or d, such as `1500ms`
    remote.max_size: found `17MiB`, allowed: a size, 1KiB … 16MiB: a whole number of KiB or MiB, such as `64KiB`
    ");
    assert_snapshot!(with("every: 2s, timeout: 3s, max_size: 1.5MiB"), @"
    remote.timeout: found `3s`, allowed: at most `every`, 2s
    remote.max_size: found `1.5MiB`, allowed: a size, 1KiB … 16MiB: a whole number of KiB or MiB, such as `64KiB`
    ");
    assert_snapshot!(with("max_size: 0KiB"), @"remote.max_size: found `0KiB`, allowed: a size, 1KiB … 16MiB: a whole number of KiB or MiB, such as `64KiB`");
    assert_snapshot!(with("every: 10, timeout: 1, max_size: 1MB"), @"
    remote.every: found `10`, allowed: a duration, 1s … 1d: a whole number of ms, s, m, h or d, such as `1500ms`
    remote.timeout: found `1`, allowed: a duration, 10ms … 30s: a whole number of ms, s, m, h or d, such as `1500ms`
    remote.max_size: found `1MB`, allowed: a size, 1KiB … 16MiB: a whole number of KiB or MiB, such as `64KiB`
    ");
}

#[test]
fn place_in_the_answer() {
    assert_snapshot!(with("value: kvs/0/value, base64: 1"), @"
    remote.value: found `kvs/0/value`, allowed: a JSON pointer such as `/kvs/0/value`, which begins with `/`, with `~0` for `~` and `~1` for `/` in a name
    remote.base64: found `1`, allowed: true or false
    ");
    assert_snapshot!(with("value: '', base64: 'true'"), @"
    remote.value: found ``, allowed: a JSON pointer such as `/kvs/0/value`, which begins with `/`, with `~0` for `~` and `~1` for `/` in a name
    remote.base64: found the text `true`, allowed: true, without quotes
    ");
    assert_snapshot!(with("value: /a~2b"), @"remote.value: found `/a~2b`, allowed: a JSON pointer such as `/kvs/0/value`, which begins with `/`, with `~0` for `~` and `~1` for `/` in a name");
    assert_snapshot!(with("value: /a~"), @"remote.value: found `/a~`, allowed: a JSON pointer such as `/kvs/0/value`, which begins with `/`, with `~0` for `~` and `~1` for `/` in a name");
}

#[test]
fn what_a_document_has_no_say_in() {
    let own = policy("limits: []").own();
    let problems = |text: &str| parse_remote(text.as_bytes(), &own).unwrap_err().to_string();
    assert_snapshot!(problems("limits: []\nnamespace: x\nkeys: 5\nlog: none\naccepted: {}\nredis: {cluster: c}\nremote: {cluster: c, path: /}"), @"
    2:1 namespace: belongs to the gateway's own configuration, allowed in a remote one: limits, actors, except, time_zone, response, shadow, plans
    3:1 keys: belongs to the gateway's own configuration, allowed in a remote one: limits, actors, except, time_zone, response, shadow, plans
    4:1 log: belongs to the gateway's own configuration, allowed in a remote one: limits, actors, except, time_zone, response, shadow, plans
    5:1 accepted: belongs to the gateway's own configuration, allowed in a remote one: limits, actors, except, time_zone, response, shadow, plans
    6:1 redis: belongs to the gateway's own configuration, allowed in a remote one: limits, actors, except, time_zone, response, shadow, plans
    7:1 remote: belongs to the gateway's own configuration, allowed in a remote one: limits, actors, except, time_zone, response, shadow, plans
    ");
    assert_snapshot!(problems("limits: [{Url: x}]\nkeys: many"), @"
    1:10 limits[0].rules: required, allowed: a list of rules such as `{actor: device, unit: second, rpu: 10}`
    1:16 limits[0].Url: `x` must begin with `/`
    2:1 keys: belongs to the gateway's own configuration, allowed in a remote one: limits, actors, except, time_zone, response, shadow, plans
    ");
    assert_snapshot!(problems("# nothing"), @"1:10 limits: required, allowed: a list of `{Url, rules}`; `[]` limits nothing");
    assert_snapshot!(problems("{limits: ["), @"1:10 not valid YAML: unclosed bracket '['");
    assert_snapshot!(parse_remote(b"limits: []\n# \xff", &own).unwrap_err().to_string(), @"found a byte that is not UTF-8 at offset 13");
}
