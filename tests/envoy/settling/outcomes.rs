//! The cost of each outcome of a stream after the headers of its response.

use std::thread;

use serde_json::{Value, json};

use super::left;
use super::upstream::{self, ACT};
use crate::harness::{Client, Gateway, eventually, request};
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
    /// Leaves after the response has begun.
    LeavesAmid,
}
use Does::{AsksForHead, LeavesAmid, Stays};

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
    json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        to("/hasty", json!({"cluster": "upstream", "timeout": "0.15s"})),
        to("/idle", json!({"cluster": "upstream", "idle_timeout": "0.15s"})),
        to("/brief", json!({"cluster": "upstream", "max_stream_duration": brief})),
        to("/again", json!({
            "cluster": "upstream",
            "retry_policy": {"retry_on": "5xx,reset", "num_retries": 2,
                "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.01s"}},
        })),
        to("/moves", json!({"cluster": "upstream", "internal_redirect_policy": redirected})),
        to("/", json!({"cluster": "upstream"})),
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
        // Trailers only.
        ("/grpc", "tokens 40 empty", Stays, 200, 40),
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
        // The last attempt counts.
        ("/again", "status 503 tokens 40", Stays, 503, 40),
        // By two streams, of which only the second uses permits.
        ("/moves", "status 302 to http://here/elsewhere tokens 40", Stays, 302, 40),
    ]
    .into_iter()
    .enumerate()
    {
        let account = format!("{number}");
        let mut client = Client::connect(envoy.port).unwrap();
        let kind = if path.ends_with("/grpc") { "application/grpc" } else { "text/plain" };
        let headers = [("x-account-id", &*account), (ACT, act), ("content-type", kind)];
        let method = if does == AsksForHead { "HEAD" } else { "GET" };
        client.write(&request(method, path, &headers)).unwrap();
        match does {
            Stays | AsksForHead => {
                let seen = client.read().map_or(0, |response| response.status);
                assert_eq!(seen, status, "{path} {act}");
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
    let count = |what: &str| envoy.metric(&format!("rule.tokens.{what}")).unwrap_or(0);
    for (why, times) in [("unusable", 4), ("absent", 7), ("cut", 0)] {
        settles(&envoy, &format!("rule.tokens.untold_{why}"), times);
    }
    assert!(count("debt") > 0 && count("refunded") > 0 && count("settled") > 20);
    envoy.assert_unharmed();
}
