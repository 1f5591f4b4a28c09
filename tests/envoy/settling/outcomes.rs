//! The cost of each outcome of a stream.

use std::thread;

use serde_json::{Value, json};

use super::left;
use super::upstream::{self, ACT};
use crate::harness::{Client, Gateway, eventually, free_port, request};
use crate::metrics::settles;

const LIMIT: u64 = 10_000;
const RESERVE: u64 = 100;
const MOST: u64 = 300;

/// The behaviour of a client.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    /// Waits for the response.
    Stays,
    /// Sends a HEAD request.
    AsksForHead,
    /// Leaves after its request has passed.
    LeavesEarly,
    /// Leaves after the response has begun.
    LeavesAmid,
}
use Does::{AsksForHead, LeavesAmid, LeavesEarly, Stays};

fn rules(algo: &str, scope: &str) -> String {
    format!(
        "accepted: {{headers: true}}
limits:
  - Url: /
    rules:
      - name: tokens
        actor: account
        unit: day
        rpu: {LIMIT}
        algo: {algo}
        scope: {scope}
        cost: {{response: {{header: x-tokens-used}}, reserve: {RESERVE}, max: {MOST}}}
      - {{name: places, actor: all, in_flight: 3, scope: {scope}, expose: false}}"
    )
}

fn routes() -> Value {
    let to = |prefix: &str, route: Value| json!({"match": {"prefix": prefix}, "route": route});
    let redirected = json!({"max_internal_redirects": 1});
    let brief = json!({"max_stream_duration": "0.15s"});
    let direct = json!({"status": 200, "body": {"inline_string": "mine\n"}});
    json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        to("/down", json!({"cluster": "down"})),
        to("/nobody", json!({"cluster": "nobody"})),
        to("/nowhere", json!({"cluster_header": "x-no-such-cluster"})),
        to("/unknown", json!({"cluster_header": "x-cluster"})),
        {"match": {"prefix": "/direct"}, "direct_response": direct},
        to("/hasty", json!({"cluster": "upstream", "timeout": "0.15s"})),
        to("/idle", json!({"cluster": "upstream", "idle_timeout": "0.15s"})),
        to("/brief", json!({"cluster": "upstream", "max_stream_duration": brief})),
        to("/again", json!({
            "cluster": "upstream",
            "retry_policy": {"retry_on": "5xx,reset", "num_retries": 2,
                "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.01s"}},
        })),
        to("/moves", json!({"cluster": "upstream", "internal_redirect_policy": redirected})),
        // All other paths have no route.
        {"match": {"safe_regex": {"regex": "/(grpc|elsewhere)?"}}, "route": {"cluster": "upstream"}},
    ]}]})
}

#[test]
fn every_outcome_costs_what_was_used() {
    thread::scope(|threads| {
        for (algo, scope) in [("W", "local"), ("SW", "gateway")] {
            threads.spawn(move || play(algo, scope));
        }
    });
}

fn play(algo: &str, scope: &str) {
    let workers = if scope == "local" { 1 } else { 3 };
    let service = upstream::start();
    let envoy = Gateway::with(&rules(algo, scope))
        .workers(workers)
        .cluster("upstream", service.port)
        .of_trailers()
        .cluster("down", free_port())
        .empty_cluster("nobody")
        .routed(routes(), json!({}))
        .start();
    for (number, (path, act, does, status, used)) in [
        ("/", "tokens 40", Stays, 200, 40),
        ("/", "tokens 250", Stays, 200, 250),
        ("/", "tokens 2.5", Stays, 200, 3),
        ("/", "tokens 999", Stays, 200, MOST),
        ("/", "", Stays, 200, MOST),
        ("/", "tokens -5", Stays, 200, MOST),
        ("/", "tokens lots", Stays, 200, MOST),
        ("/", "tokens 1000000000000000000000000000000", Stays, 200, MOST),
        ("/", "tokens 5 tokens 5", Stays, 200, MOST),
        ("/", "status 204 tokens 40 empty", Stays, 204, 40),
        ("/", "status 500 tokens 40", Stays, 500, 40),
        ("/", "tokens 40 sleep 50", Stays, 200, 40),
        ("/", "tokens 40 empty", AsksForHead, 200, 40),
        ("/", "empty", AsksForHead, 200, MOST),
        // Ends with trailers.
        ("/grpc", "tokens 40 trailers", Stays, 200, 40),
        ("/grpc", "trailers", Stays, 200, MOST),
        // No response of the upstream.
        ("/", "close", Stays, 503, 0),
        ("/down", "", Stays, 503, 0),
        ("/nobody", "", Stays, 503, 0),
        ("/", "garbage", Stays, 502, 0),
        ("/nowhere", "", Stays, 503, 0),
        ("/unknown", "", Stays, 503, 0),
        ("/hasty", "tokens 40 sleep 400", Stays, 504, 0),
        // Trailers only, from the gateway and from the upstream.
        ("/down/grpc", "", Stays, 200, 0),
        ("/grpc", "tokens 40 empty", Stays, 200, 40),
        // Envoy responded.
        ("/direct", "", Stays, 200, MOST),
        ("/unrouted", "", Stays, 404, MOST),
        ("/idle", "tokens 40 sleep 400", Stays, 504, MOST),
        // A response that has begun has its header.
        ("/", "tokens 40 cut", Stays, 0, 40),
        ("/hasty", "tokens 40 hang", Stays, 0, 40),
        ("/idle", "tokens 40 hang", Stays, 0, 40),
        ("/idle", "hang", Stays, 0, MOST),
        ("/brief", "tokens 40 hang", Stays, 0, 40),
        ("/brief", "hang", Stays, 0, MOST),
        ("/", "cut", Stays, 0, MOST),
        ("/", "tokens 40 hang", LeavesAmid, 0, 40),
        ("/", "hang", LeavesAmid, 0, MOST),
        // A client does not escape by leaving.
        ("/", "tokens 40 sleep 2000", LeavesEarly, 0, MOST),
        // The last attempt counts.
        ("/again", "status 503 tokens 40", Stays, 503, 40),
        ("/again", "close", Stays, 503, 0),
        // By two streams, of which only the second uses permits.
        ("/moves", "status 302 to http://here/elsewhere tokens 40", Stays, 302, 40),
    ]
    .into_iter()
    .enumerate()
    {
        let account = format!("{number}");
        let mut client = Client::connect(envoy.port).unwrap();
        let kind = if path.ends_with("/grpc") { "application/grpc" } else { "text/plain" };
        let headers = [
            ("x-account-id", &*account),
            (ACT, act),
            ("x-cluster", "unknown"),
            ("content-type", kind),
        ];
        let method = if does == AsksForHead { "HEAD" } else { "GET" };
        client.write(&request(method, path, &headers)).unwrap();
        match does {
            Stays | AsksForHead => {
                let seen = client.read().map_or(0, |response| response.status);
                assert_eq!(seen, status, "{path} {act}");
            }
            LeavesEarly => {
                eventually("the request to come through", || {
                    let arrivals = service.arrivals();
                    let is_it = |name| name == Some(&*account);
                    arrivals.iter().any(|it| is_it(it.header("x-account-id"))).then_some(())
                });
                client.reset();
            }
            LeavesAmid => {
                client.wait().unwrap();
                client.reset();
            }
        }
        let mut last = 0;
        eventually(&format!("{used} used by {path} {act}, {algo} in {scope}"), || {
            last = LIMIT
                - RESERVE
                - left(&envoy, "/", &[("x-account-id", &account), (ACT, "tokens 0")]);
            (last == used).then_some(())
        });
    }
    // For an invalid request, the filter only receives the end of the stream.
    let mut client = Client::connect(envoy.port).unwrap();
    client.write(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(client.read().unwrap().status, 400);
    settles(&envoy, "rule.places.in_flight", 0);
    let count = |what: &str| envoy.sum(&format!("wasmcustom.diana.diana.rule.tokens.{what}"));
    settles(&envoy, "rule.tokens.untold_client_left", 1);
    for (why, times) in [("unusable", 4), ("absent", 7), ("cut", 3)] {
        settles(&envoy, &format!("rule.tokens.untold_{why}"), times);
    }
    assert!(count("debt") > 0 && count("refunded") > 0 && count("settled") > 27);
    envoy.assert_unharmed();
}
