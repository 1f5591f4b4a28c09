use insta::assert_snapshot;

/// What is said about `response`.
fn of(response: &str) -> String {
    super::super::messages(&format!("limits: []\nresponse: {response}"))
}

#[test]
fn shape() {
    assert_snapshot!(of("429"), @"response: found `429`, allowed: a mapping such as `{status: 429, body: slow down}`");
    assert_snapshot!(of("{code: 429}"), @"response.code: unknown key, allowed: status, body, content_type, headers, problem, jitter, fields");
    assert_snapshot!(of("{status: 200}"), @"response.status: found `200`, allowed: a whole number, 400 … 599");
    assert_snapshot!(of("{status: '429'}"), @"response.status: found the text `429`, allowed: a whole number, 400 … 599; write 429, without quotes");
}

#[test]
fn body() {
    assert_snapshot!(of("{body: 5}"), @"response.body: found `5`, allowed: text; put it in quotes to make it text");
    assert_snapshot!(of("\n  body: |\n    slow down\n"), @"response.body: ends in a newline, which gRPC cannot carry; in YAML write `|-`, not `|`");
    assert_snapshot!(of(r#"{body: "a\x07b"}"#), @"response.body: found a control character, allowed: lines of text");
    assert_snapshot!(of(&format!("{{body: {}}}", "x".repeat(8193))), @"response.body: found 8193 bytes, allowed: at most 8192");
    assert_snapshot!(of("{content_type: ''}"), @"response.content_type: found ``, allowed: at most 1024 visible ASCII characters, and spaces only between them");
}

#[test]
fn what_is_told() {
    assert_snapshot!(of("{problem: 1, jitter: 2h, fields: github}"), @"
    response.problem: found `1`, allowed: true or false
    response.jitter: found `2h`, allowed: a duration, 0 … 1h: a whole number of ms, s, m, h or d, such as `1500ms`
    response.fields: found `github`, allowed: ietf, x-ratelimit
    ");
    assert_snapshot!(of("{problem: true, content_type: text/plain}"), @"response.content_type: means nothing beside `problem`, which is application/problem+json");
    assert_snapshot!(of("{fields: x-ratelimit, headers: {X-RateLimit-Reset: '5'}}"), @"response.headers: found `x-ratelimit-reset`, which `fields: x-ratelimit` sets");
}

#[test]
fn headers() {
    assert_snapshot!(of("{headers: [x-a]}"), @"response.headers: found a list, allowed: a mapping such as `{x-reason: rate limit}`");
    assert_snapshot!(of("{headers: {'x a': b}}"), @"response.headers.`x a`: not a header's name");
    assert_snapshot!(of(r#"{headers: {x-a: "b\r\nx-c: d", x-b: grün, x-c: 5, x-d: ' a'}}"#), @r#"
    response.headers.x-a: found `b\r\nx-c: d`, allowed: at most 1024 visible ASCII characters, and spaces only between them
    response.headers.x-b: found `grün`, allowed: at most 1024 visible ASCII characters, and spaces only between them
    response.headers.x-c: found `5`, allowed: at most 1024 visible ASCII characters, and spaces only between them; put it in quotes to make it text
    response.headers.x-d: found ` a`, allowed: at most 1024 visible ASCII characters, and spaces only between them
    "#);
    assert_snapshot!(of("{headers: {Retry-After: '5', content-length: '0', ':status': '200'}}"), @"
    response.headers.Retry-After: set by the proxy or the filter itself
    response.headers.content-length: set by the proxy or the filter itself
    response.headers.`:status`: not a header's name
    ");
    assert_snapshot!(of("{headers: {Content-Type: text/html}}"), @"response.headers.Content-Type: set by the proxy or the filter itself; use `content_type`");
    assert_snapshot!(of("{headers: {x-a: b, X-A: c}}"), @"response.headers.X-A: duplicate key: the same header as `x-a`");
    let many: Vec<String> = (0..33).map(|number| format!("x-{number}: a")).collect();
    assert_snapshot!(of(&format!("{{headers: {{{}}}}}", many.join(", "))), @"response.headers: found 33 headers, allowed: at most 32");
}
