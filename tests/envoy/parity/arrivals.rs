//! Sources of callers, conditions, costs of requests, and answers.

use diana_request::identity::REGISTRY;

use super::{absent_from, behind_filters};
use crate::harness::{Envoy, Gateway, Response, exchange, request};

/// A request: its method, what follows its path, and its headers.
type Sent = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// `{"sub":"ada"}` and `{"sub":"bob"}` in base64.
const ADA: &str = "eyJzdWIiOiJhZGEifQ";
const BOB: &str = "eyJzdWIiOiJib2IifQ";

/// The end of an entry's path, a source, and requests of two callers.
const SOURCES: [(&str, &str, Sent, Sent); 23] = [
    (
        "",
        "{header: x-caller}",
        ("GET", "", &[("x-caller", "a")]),
        ("GET", "", &[("x-caller", "b")]),
    ),
    (
        "",
        "{header: x-caller, lower: true}",
        ("GET", "", &[("x-caller", "A")]),
        ("GET", "", &[("x-caller", "b")]),
    ),
    (
        "",
        "{header: x-caller, strip_prefix: v-}",
        ("GET", "", &[("x-caller", "v-a")]),
        ("GET", "", &[("x-caller", "b")]),
    ),
    (
        "",
        "{cookie: sid}",
        ("GET", "", &[("cookie", "x=1; sid=a")]),
        ("GET", "", &[("cookie", "sid=b")]),
    ),
    ("", "{query: key}", ("GET", "?key=a", &[]), ("GET", "?x=1&key=b", &[])),
    (
        "",
        "{client_address: {}}",
        ("GET", "", &[("x-forwarded-for", "192.0.2.1")]),
        ("GET", "", &[("x-forwarded-for", "192.0.2.2")]),
    ),
    (
        "",
        "{client_address: {v4: 24, v6: 64}}",
        ("GET", "", &[("x-forwarded-for", "192.0.2.1")]),
        ("GET", "", &[("x-forwarded-for", "192.0.3.1")]),
    ),
    (
        "",
        "{jwt_claim: sub, payload_header: x-claims}",
        ("GET", "", &[("x-claims", ADA)]),
        ("GET", "", &[("x-claims", BOB)]),
    ),
    (
        "",
        "{metadata: [some, text]}",
        ("GET", "", &[("x-text", "a")]),
        ("GET", "", &[("x-text", "b")]),
    ),
    (
        "",
        "{metadata: [some, number]}",
        ("GET", "", &[("x-number", "1")]),
        ("GET", "", &[("x-number", "2")]),
    ),
    (
        "",
        "{metadata: [some, number]}",
        ("GET", "", &[("x-number", "-1.5")]),
        ("GET", "", &[("x-number", "0")]),
    ),
    (
        "",
        "{metadata: [some, flag]}",
        ("GET", "", &[("x-flag", "true")]),
        ("GET", "", &[("x-flag", "false")]),
    ),
    (
        "",
        "{metadata: [some, list]}",
        ("GET", "", &[("x-list", "a")]),
        ("GET", "", &[("x-list", "b")]),
    ),
    (
        "",
        "{filter_state: some.state}",
        ("GET", "", &[("x-state", "a")]),
        ("GET", "", &[("x-state", "b")]),
    ),
    ("/{part}/x", "{path_param: part}", ("GET", "/a/x", &[]), ("GET", "/b/x", &[])),
    ("/*", "{attribute: path}", ("GET", "/a", &[]), ("GET", "/b", &[])),
    ("", "{attribute: method}", ("GET", "", &[]), ("PUT", "", &[])),
    (
        "",
        "{attribute: host}",
        ("GET", "", &[("host", "a.example")]),
        ("GET", "", &[("host", "b.example")]),
    ),
    (
        "",
        "{header: x-none}, {header: x-caller}",
        ("GET", "", &[("x-caller", "a")]),
        ("GET", "", &[("x-none", "b")]),
    ),
    (
        "",
        "{header: x-caller}",
        ("GET", "", &[("x-caller", "\u{e9}")]),
        ("GET", "", &[("x-caller", "e")]),
    ),
    // Two values: all such requests are one caller, and none of a value's.
    (
        "",
        "{header: x-caller}",
        ("GET", "", &[("x-caller", "a"), ("x-caller", "b")]),
        ("GET", "", &[("x-caller", "a")]),
    ),
    ("", "{query: key}", ("GET", "?key=a&key=b", &[]), ("GET", "?key=a", &[])),
    (
        "",
        "{cookie: sid}",
        ("GET", "", &[("cookie", "sid=a; sid=b")]),
        ("GET", "", &[("cookie", "sid=a")]),
    ),
];

/// A condition, a request that meets it, and one that does not.
const CONDITIONS: [(&str, Sent, Sent); 26] = [
    ("{methods: [POST]}", ("POST", "", &[]), ("GET", "", &[])),
    (
        "{hosts: ['*.example.org']}",
        ("GET", "", &[("host", "A.example.org:80")]),
        ("GET", "", &[("host", "example.org")]),
    ),
    (
        "{addresses: [192.0.2.0/24]}",
        ("GET", "", &[("x-forwarded-for", "192.0.2.9")]),
        ("GET", "", &[("x-forwarded-for", "192.0.3.9")]),
    ),
    ("{headers: {x-a: {exact: b}}}", ("GET", "", &[("x-a", "b")]), ("GET", "", &[("x-a", "B")])),
    (
        "{headers: {x-a: {exact: b, ignore_case: true}}}",
        ("GET", "", &[("x-a", "B")]),
        ("GET", "", &[("x-a", "c")]),
    ),
    ("{headers: {x-a: {prefix: b}}}", ("GET", "", &[("x-a", "bc")]), ("GET", "", &[("x-a", "cb")])),
    ("{headers: {x-a: {suffix: b}}}", ("GET", "", &[("x-a", "cb")]), ("GET", "", &[("x-a", "bc")])),
    (
        "{headers: {x-a: {contains: b}}}",
        ("GET", "", &[("x-a", "abc")]),
        ("GET", "", &[("x-a", "ac")]),
    ),
    ("{headers: {x-a: {in: [b, c]}}}", ("GET", "", &[("x-a", "c")]), ("GET", "", &[("x-a", "d")])),
    ("{headers: {x-a: {present: true}}}", ("GET", "", &[("x-a", "c")]), ("GET", "", &[])),
    (
        "{headers: {x-a: {present: false}}}",
        ("GET", "", &[("x-a", " ")]),
        ("GET", "", &[("x-a", "c")]),
    ),
    ("{headers: {x-a: {not: b}}}", ("GET", "", &[]), ("GET", "", &[("x-a", "b")])),
    (
        "{headers: {x-a: {not: {prefix: b}}}}",
        ("GET", "", &[("x-a", "cb")]),
        ("GET", "", &[("x-a", "bc")]),
    ),
    ("{headers: {x-a: {gt: 3}}}", ("GET", "", &[("x-a", "3.1")]), ("GET", "", &[("x-a", "3")])),
    (
        "{headers: {x-a: {ge: 3, lt: 5}}}",
        ("GET", "", &[("x-a", "3")]),
        ("GET", "", &[("x-a", "5")]),
    ),
    ("{headers: {x-a: {le: 3}}}", ("GET", "", &[("x-a", "-3")]), ("GET", "", &[("x-a", "x")])),
    ("{query: {q: b}}", ("GET", "?q=b", &[]), ("GET", "?q=c", &[])),
    (
        "{cookies: {c: b}}",
        ("GET", "", &[("cookie", "a=1; c=b")]),
        ("GET", "", &[("cookie", "c=c")]),
    ),
    (
        "{metadata: {some: {text: b}}}",
        ("GET", "", &[("x-text", "b")]),
        ("GET", "", &[("x-text", "c")]),
    ),
    (
        "{metadata: {some: {number: '5'}}}",
        ("GET", "", &[("x-number", "5")]),
        ("GET", "", &[("x-number", "6")]),
    ),
    (
        "{metadata: {some: {number: {gt: 1.5}}}}",
        ("GET", "", &[("x-number", "1.6")]),
        ("GET", "", &[("x-number", "1.5")]),
    ),
    (
        "{metadata: {some: {flag: 'true'}}}",
        ("GET", "", &[("x-flag", "true")]),
        ("GET", "", &[("x-flag", "false")]),
    ),
    (
        "{metadata: {some: {list: b}}}",
        ("GET", "", &[("x-list", "b")]),
        ("GET", "", &[("x-list", "c")]),
    ),
    (
        "{metadata: {some: [{key: [list], test: more}]}}",
        ("GET", "", &[("x-list", "b")]),
        ("GET", "", &[]),
    ),
    (
        "[{methods: [PUT]}, {headers: {x-a: b}, query: {q: c}}]",
        ("GET", "?q=c", &[("x-a", "b")]),
        ("GET", "?q=c", &[]),
    ),
    ("{headers: {x-a: b}}", ("GET", "", &[("x-a", "b")]), ("GET", "", &[("x-a", "c")])),
];

/// The keys of conditions and their tests.
const KEYS: [&str; 6] = ["methods", "hosts", "addresses", "headers", "query", "cookies"];
const TESTS: [&str; 12] = [
    "exact",
    "prefix",
    "suffix",
    "contains",
    "in",
    "present",
    "not",
    "gt",
    "ge",
    "lt",
    "le",
    "ignore_case",
];

/// A cost, requests in turn, and their statuses with ten permits.
const COSTS: [(&str, &[Sent], &[u16]); 6] = [
    ("4", &[("GET", "", &[]), ("GET", "", &[]), ("GET", "", &[])], &[200, 200, 503]),
    (
        "{header: x-cost, default: 2, max: 6}",
        &[
            ("GET", "", &[("x-cost", "9")]),
            ("GET", "", &[("x-cost", "3")]),
            ("GET", "", &[]),
            ("GET", "", &[("x-cost", "1")]),
        ],
        &[200, 200, 503, 200],
    ),
    (
        "{query: n, default: 2, max: 6}",
        &[("GET", "?n=5", &[]), ("GET", "?x=1", &[]), ("GET", "?n=4", &[]), ("GET", "?n=3", &[])],
        &[200, 200, 503, 200],
    ),
    (
        "{metadata: [some, number], default: 2, max: 6}",
        &[
            ("GET", "", &[("x-number", "4.2")]),
            ("GET", "", &[("x-number", "6")]),
            ("GET", "", &[("x-number", "5")]),
        ],
        &[200, 503, 200],
    ),
    (
        "{metadata: [some, text], type: text, default: 2, max: 6}",
        &[
            ("GET", "", &[("x-text", "5")]),
            ("GET", "", &[("x-text", "gold")]),
            ("GET", "", &[("x-text", "4")]),
        ],
        &[200, 200, 503],
    ),
    // Two values cost the most.
    (
        "{header: x-cost, default: 1, max: 6}",
        &[("GET", "", &[("x-cost", "1"), ("x-cost", "1")]), ("GET", "", &[("x-cost", "5")])],
        &[200, 503],
    ),
];

/// The rest of an entry, a request, and the statuses of it and of some more.
const RULES: [(&str, Sent, &[u16]); 17] = [
    ("rules: [{actor: all, unit: day, rpu: 2, algo: W}]", ("GET", "", &[]), &[200, 200, 503]),
    ("rules: [{actor: all, unit: day, rpu: 2, algo: SW}]", ("GET", "", &[]), &[200, 200, 503]),
    (
        "rules: [{actor: all, unit: day, rpu: 2, algo: TB, burst: 3}]",
        ("GET", "", &[]),
        &[200, 200, 200, 503],
    ),
    (
        "rules: [{actor: all, unit: minute, rpu: 600, algo: LB, max_delay: 9s}]",
        ("GET", "", &[]),
        &[200, 200],
    ),
    (
        "rules: [{actor: all, unit: month, rpu: 2, algo: W, scope: local}]",
        ("GET", "", &[]),
        &[200, 200, 503],
    ),
    ("rules: [{actor: gone, unit: day, rpu: 1, absent: skip}]", ("GET", "", &[]), &[200, 200]),
    ("rules: [{actor: gone, unit: day, rpu: 1, absent: share}]", ("GET", "", &[]), &[200, 503]),
    ("rules: [{actor: gone, unit: day, rpu: 1, absent: deny}]", ("GET", "", &[]), &[503]),
    ("rules: [{actor: all, unit: day, rpu: 0, shadow: true}]", ("GET", "", &[]), &[200, 200]),
    ("rules: [{actor: all, unit: day, rpu: 0, enforce: 0}]", ("GET", "", &[]), &[200, 200]),
    (
        "rules: [{actor: all, unit: day, rpu: 0, over: {mark: x-tier, value: low}}]",
        ("GET", "", &[]),
        &[200, 200],
    ),
    (
        "rules: [{actor: all, unit: day, rpu: 0, except: {headers: {x-a: b}}}]",
        ("GET", "", &[("x-a", "b")]),
        &[200],
    ),
    (
        "except: {addresses: [192.0.2.0/24]}, rules: [{actor: all, unit: day, rpu: 0}]",
        ("GET", "", &[("x-forwarded-for", "192.0.2.7")]),
        &[200],
    ),
    (
        "rules: [{actor: [account, caller], unit: day, rpu: 1, algo: W}]",
        ("GET", "", &[("x-account-id", "a"), ("x-caller", "b")]),
        &[200, 503],
    ),
    (
        "rules: [{actor: account, unit: day, rpu: 1, algo: W, plans: {by: [{header: x-plan}], of: {gold: {rpu: 3}}}}]",
        ("GET", "", &[("x-account-id", "a"), ("x-plan", "gold")]),
        &[200, 200, 200, 503],
    ),
    (
        "rules: [{actor: account, unit: day, rpu: 9, algo: W, cost: 9, ban: {after: 1, within: 1m, for: 1h}}]",
        ("GET", "", &[("x-account-id", "a")]),
        &[200, 503, 503],
    ),
    (
        "rules: [{actor: account, unit: day, rpu: 1, algo: W, quota: {accounts: 100}, scope: local}]",
        ("GET", "", &[("x-account-id", "a")]),
        &[200, 503],
    ),
];

/// A `response`, the content type of a request, and the status, the body and some headers of its refusal.
type Answer =
    (&'static str, &'static str, u16, &'static str, &'static [(&'static str, &'static str)]);
const ANSWERS: [Answer; 11] = [
    (
        "{}",
        "text/plain",
        503,
        "rate limit exceeded",
        &[
            ("content-type", "text/plain"),
            ("cache-control", "no-store"),
            ("x-envoy-ratelimited", "true"),
            ("ratelimit", "\"answer0\";r=0"),
            ("ratelimit-policy", "\"answer0\";q=0;w=86400"),
        ],
    ),
    (
        "{status: 429, body: '{rule} {limit} {remaining} {retry_after}.'}",
        "text/plain",
        429,
        "answer1 0 0 .",
        &[],
    ),
    (
        "{content_type: text/html, body: <p>}",
        "text/plain",
        503,
        "<p>",
        &[("content-type", "text/html")],
    ),
    (
        "{headers: {x-more: some, cache-control: private}}",
        "text/plain",
        503,
        "rate limit exceeded",
        &[("x-more", "some"), ("cache-control", "private")],
    ),
    (
        "{problem: true, body: no}",
        "text/plain",
        503,
        "",
        &[("content-type", "application/problem+json")],
    ),
    (
        "{fields: x-ratelimit}",
        "text/plain",
        503,
        "rate limit exceeded",
        &[("x-ratelimit-limit", "0"), ("x-ratelimit-remaining", "0")],
    ),
    (
        "{fields: legacy}",
        "text/plain",
        503,
        "rate limit exceeded",
        &[("ratelimit-limit", "0"), ("ratelimit-remaining", "0")],
    ),
    (
        "{body: no}",
        "application/grpc",
        200,
        "",
        &[("grpc-status", "8"), ("grpc-message", "no"), ("grpc-retry-pushback-ms", "-1")],
    ),
    ("{grpc_status: 14, body: no}", "application/grpc", 200, "", &[("grpc-status", "14")]),
    (
        "{body: no}",
        "application/proto",
        429,
        "{\"code\":\"resource_exhausted\",\"message\":\"no\"}",
        &[("content-type", "application/json")],
    ),
    (
        "{body: no}",
        "application/connect+json",
        200,
        "",
        &[("content-type", "application/connect+json")],
    ),
];

fn document() -> String {
    let (mut actors, mut limits) = (String::new(), String::new());
    for (number, (path, source, ..)) in SOURCES.iter().enumerate() {
        actors += &format!("  s{number}: [{source}]\n");
        limits += &format!(
            "- {{Url: '/source/{number}{path}', rules: [{{actor: s{number}, unit: day, rpu: 1, algo: W}}]}}\n"
        );
    }
    for (number, (condition, ..)) in CONDITIONS.iter().enumerate() {
        for key in ["match", "unless"] {
            limits += &format!(
                "- {{Url: /{key}/{number}, {key}: {condition}, rules: [{{actor: all, unit: day, rpu: 0}}]}}\n"
            );
        }
    }
    for (number, (cost, ..)) in COSTS.iter().enumerate() {
        limits += &format!(
            "- {{Url: /cost/{number}, rules: [{{actor: all, unit: day, rpu: 10, algo: W, cost: {cost}}}]}}\n"
        );
    }
    for (number, (rest, ..)) in RULES.iter().enumerate() {
        limits += &format!("- {{Url: /rule/{number}, {rest}}}\n");
    }
    for (number, (response, ..)) in ANSWERS.iter().enumerate() {
        limits += &format!(
            "- {{Url: /answer/{number}, rules: [{{name: answer{number}, actor: all, unit: day, rpu: 0, algo: W, response: {response}}}]}}\n"
        );
    }
    format!(
        "limits:\n{limits}actors:\n  gone: [{{header: x-gone}}]\n  caller: [{{header: x-caller}}]\n{actors}"
    )
}

fn send(envoy: &Envoy, path: &str, sent: Sent) -> u16 {
    let (method, suffix, headers) = sent;
    ask(envoy, method, &format!("{path}{suffix}"), headers).status
}

fn ask(envoy: &Envoy, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let length: &[(&str, &str)] = if method == "GET" { &[] } else { &[("content-length", "0")] };
    exchange(envoy.port, &request(method, path, &[headers, length].concat())).unwrap()
}

#[test]
fn arrivals_are_decided_alike() {
    let document = document();
    let sources = REGISTRY.iter().map(|kind| kind.name).filter(|name| *name != "peer");
    let names: Vec<_> = sources.chain(KEYS).chain(TESTS).collect();
    assert_eq!(absent_from(&document, &names), [""; 0], "in no entry");
    let envoy = behind_filters(Gateway::with(&document)).trust_forwarded_for().start_shared();
    let mut wrong = Vec::new();
    let mut check = |what: &str, seen: Vec<u16>, expected: &[u16]| {
        if seen != expected {
            wrong.push(format!("{what}: {seen:?} instead of {expected:?}"));
        }
    };
    let all = |path: &str, sent: &[Sent]| sent.iter().map(|it| send(&envoy, path, *it)).collect();
    for (number, (_, source, one, other)) in SOURCES.into_iter().enumerate() {
        let seen = all(&format!("/source/{number}"), &[one, one, other, other]);
        check(source, seen, &[200, 503, 200, 503]);
    }
    for (number, (condition, met, unmet)) in CONDITIONS.into_iter().enumerate() {
        check(condition, all(&format!("/match/{number}"), &[met, unmet]), &[503, 200]);
        check(condition, all(&format!("/unless/{number}"), &[met, unmet]), &[200, 503]);
    }
    for (number, (cost, sent, expected)) in COSTS.into_iter().enumerate() {
        check(cost, all(&format!("/cost/{number}"), sent), expected);
    }
    for (number, (rest, sent, expected)) in RULES.into_iter().enumerate() {
        check(rest, all(&format!("/rule/{number}"), &vec![sent; expected.len()]), expected);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (number, (response, kind, status, body, headers)) in ANSWERS.into_iter().enumerate() {
        let answer = ask(&envoy, "POST", &format!("/answer/{number}"), &[("content-type", kind)]);
        assert_eq!(answer.status, status, "{response}");
        assert!(body.is_empty() || answer.body == body, "{response}: {}", answer.body);
        for (name, value) in headers {
            assert_eq!(answer.header(name), Some(*value), "{name} of {response}");
        }
        assert_eq!(answer.header("retry-after"), None, "no request ever fits: {response}");
    }
    envoy.assert_unharmed();
}
