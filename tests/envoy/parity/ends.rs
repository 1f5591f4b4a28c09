//! Costs and outcomes that the end of a request shows.

use super::{absent_from, behind_filters, routes};
use crate::harness::{Gateway, eventually, exchange, request};
use crate::settling::left;
use crate::settling::upstream::{self, ACT};

const LIMIT: u64 = 10_000;

/// What the request sends besides: a header, and the bytes of its body.
type More = ((&'static str, &'static str), usize);
const NO_MORE: More = (("x-more", "none"), 0);
const FIVE: More = (("x-number", "5"), 0);

/// The rest of a rule, a path, instructions for the upstream, what the request has besides, and the permits that it uses.
const ENDS: [(&str, &str, &str, More, u64); 36] = [
    (
        "cost: {response: {header: x-tokens-used}, reserve: 10, max: 300}",
        "/",
        "tokens 40",
        NO_MORE,
        40,
    ),
    (
        "cost: {response: {header: x-tokens-used}, reserve: 10, max: 300}",
        "/",
        "tokens 400",
        NO_MORE,
        300,
    ),
    ("cost: {response: {header: x-tokens-used}, reserve: 10, max: 300}", "/", "", NO_MORE, 300),
    (
        "cost: {response: {header: x-tokens-used}, reserve: 10, max: 300, missing: reserve}",
        "/",
        "",
        NO_MORE,
        10,
    ),
    (
        "cost: {response: {header: x-tokens-used}, reserve: 10, max: 300, error: 7}",
        "/",
        "status 500",
        NO_MORE,
        7,
    ),
    (
        "cost: {response: {header: x-tokens-used}, reserve: 10, max: 300}",
        "/",
        "status 500",
        NO_MORE,
        0,
    ),
    (
        "cost: {response: {header: x-tokens-used}, reserve: 10, max: 300}",
        "/",
        "status 500 tokens 40",
        NO_MORE,
        40,
    ),
    ("cost: {response: {header: x-tokens-used}, reserve: 10, max: 300}", "/nobody", "", NO_MORE, 0),
    ("cost: {response: {metadata: [some, number]}, max: 300}", "/", "", FIVE, 5),
    (
        "cost: {response: {metadata: [some, number]}, max: 300}",
        "/",
        "",
        (("x-number", "5.5"), 0),
        6,
    ),
    (
        "cost: {response: {metadata: [some, number]}, max: 300}",
        "/",
        "",
        (("x-number", "-5"), 0),
        300,
    ),
    ("cost: {response: {metadata: [some, number]}, max: 300, missing: 8}", "/", "", NO_MORE, 8),
    (
        "cost: {response: {metadata: [some, text], type: text}, max: 300}",
        "/",
        "",
        (("x-text", "31"), 0),
        31,
    ),
    (
        "cost: {response: {metadata: [some, text], type: text}, max: 300}",
        "/",
        "",
        (("x-text", "gold"), 0),
        300,
    ),
    ("cost: {response: {bytes: response}, max: 3000}", "/", "size 1000", NO_MORE, 1000),
    ("cost: {response: {bytes: response, times: 0.001}, max: 3000}", "/", "size 1001", NO_MORE, 2),
    ("cost: {response: {bytes: response}, max: 3000}", "/nobody", "", NO_MORE, 19),
    ("cost: {response: {bytes: request}, max: 3000}", "/", "", (("x-more", "none"), 700), 700),
    (
        "cost: {response: {sum: [{bytes: request}, {bytes: response, times: 3}]}, max: 3000}",
        "/",
        "size 10",
        (("x-more", "none"), 70),
        100,
    ),
    (
        "cost: {response: {sum: [{metadata: [some, number], times: -1}, {bytes: response}]}, max: 3000}",
        "/",
        "size 10",
        FIVE,
        5,
    ),
    // More than no time.
    ("cost: {response: {duration: true}, max: 1}", "/", "", NO_MORE, 1),
    (
        "cost: {response: {header: x-tokens-used}, reserve: {metadata: [some, number], default: 3, max: 9}, max: 300, missing: 4}",
        "/",
        "",
        FIVE,
        4,
    ),
    (
        "cost: {response: {header: x-tokens-used}, max: 300}, count: {status: [5xx]}",
        "/",
        "tokens 40",
        NO_MORE,
        0,
    ),
    (
        "cost: {response: {header: x-tokens-used}, max: 300}, count: {status: [2xx]}",
        "/",
        "tokens 40",
        NO_MORE,
        40,
    ),
    ("count: {status: [401]}", "/", "status 401", NO_MORE, 1),
    ("count: {status: [401]}", "/", "status 402", NO_MORE, 0),
    ("count: {status: [4xx]}, cost: 3", "/", "status 402", NO_MORE, 3),
    ("count: {details: [no_healthy_upstream]}", "/nobody", "", NO_MORE, 1),
    ("count: {details: [no_healthy_upstream]}", "/", "", NO_MORE, 0),
    ("count: {failed: true}", "/nobody", "", NO_MORE, 1),
    ("count: {failed: true}", "/", "close", NO_MORE, 1),
    ("count: {failed: true}", "/", "status 503", NO_MORE, 0),
    ("count: {grpc_status: [16]}", "/", "rpc 16", NO_MORE, 1),
    ("count: {grpc_status: [16]}", "/", "rpc 0", NO_MORE, 0),
    ("cost: {response: {trailer: x-used}, max: 300}", "/", "rpc 0 used 40", NO_MORE, 40),
    ("cost: {response: {trailer: x-used}, max: 300}", "/", "rpc 0", NO_MORE, 300),
];

/// The keys of `cost.response` and of `count`.
const KEYS: [&str; 17] = [
    "header",
    "metadata",
    "type",
    "bytes",
    "duration",
    "sum",
    "times",
    "reserve",
    "max",
    "missing",
    "error",
    "count",
    "status",
    "details",
    "failed",
    "grpc_status",
    "trailer",
];

#[test]
fn ends_are_charged_alike() {
    let (mut rules, mut actors) = (String::new(), String::new());
    for (number, (rest, ..)) in ENDS.iter().enumerate() {
        rules += &format!("  - {{actor: a{number}, unit: day, rpu: {LIMIT}, algo: W, {rest}}}\n");
        actors += &format!("  a{number}: [{{header: x-case-{number}}}]\n");
    }
    let document = format!(
        "accepted: {{headers: true}}\nactors:\n{actors}limits:\n- Url: /\n  rules:\n{rules}"
    );
    assert_eq!(absent_from(&document, &KEYS), [""; 0], "in no rule");
    let service = upstream::start();
    let gateway = Gateway::with(&document)
        .cluster("upstream", service.port)
        .of_trailers()
        .empty_cluster("nobody")
        .routed(routes("upstream"), serde_json::json!({}));
    let envoy = behind_filters(gateway).start();
    for (number, (rest, path, act, (header, length), used)) in ENDS.into_iter().enumerate() {
        let case = format!("x-case-{number}");
        let length = length.to_string();
        let headers = [(&*case, "1"), (ACT, act), header, ("content-length", &length)];
        let body = vec![b'a'; length.parse().unwrap()];
        let sent = [request("POST", path, &headers), body].concat();
        exchange(envoy.port, &sent).unwrap();
        eventually("the request to end", || (envoy.active() == 0).then_some(()));
        let [before, after] = ["2", "1"].map(|caller| left(&envoy, "/", &[(&case, caller)]));
        assert_eq!(before - after, used, "{rest} after {path} {act} {header:?}");
    }
    envoy.assert_unharmed();
}
