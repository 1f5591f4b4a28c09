//! Streams that end before the headers of the upstream, or around them: only the client causes a
//! cost, and `failed` counts every end without such headers.

use serde_json::{Value, json};

use super::left;
use super::local_replies::filters;
use super::upstream::{self, ACT};
use crate::harness::{Client, Envoy, Gateway, Http2, eventually, free_port, request};
use crate::metrics::settles;

const LIMIT: u64 = 10_000;
const RESERVE: u64 = 100;
const MOST: u64 = 300;

/// The behaviour of a client.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Does {
    /// Waits for the response.
    Stays,
    /// Announces a large body, and sends it.
    Uploads,
    /// Announces a body, and sends a part of it.
    Stalls,
    /// As `Stalls`, and resets the connection.
    LeavesUpload,
    /// Leaves after its request has passed.
    Leaves,
    /// Leaves after a response with status 100.
    LeavesAfterContinue,
    /// Sends a body that is no HTTP/1.1.
    Garbles,
    /// Resets its stream of HTTP/2, with this code.
    Resets(u32),
}
use Does::{Garbles, Leaves, LeavesAfterContinue, LeavesUpload, Resets, Stalls, Stays, Uploads};

fn rules() -> String {
    format!(
        "accepted: {{headers: true}}
actors: {{case: [{{header: x-case}}]}}
limits:
  - Url: /
    rules:
      - name: tokens
        actor: account
        unit: day
        rpu: {LIMIT}
        algo: W
        scope: gateway
        cost: {{response: {{header: x-tokens-used}}, reserve: {RESERVE}, max: {MOST}}}
      - {{name: failed, actor: case, unit: day, rpu: 1, algo: W, scope: gateway, expose: false,
         count: {{failed: true}}}}
      - {{name: places, actor: all, in_flight: 3, scope: gateway, expose: false}}"
    )
}

fn routes() -> Value {
    let to = |prefix: &str, route: Value| json!({"match": {"prefix": prefix}, "route": route});
    let retry = |more: Value| {
        let mut policy = json!({"retry_on": "5xx,reset", "num_retries": 2,
            "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.01s"}});
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"cluster": "upstream", "retry_policy": policy})
    };
    let brief = json!({"max_stream_duration": "0.15s"});
    let direct = json!({"status": 200, "body": {"inline_string": "mine\n"}});
    let moves = json!({"max_internal_redirects": 1});
    json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        to("/down", json!({"cluster": "down"})),
        to("/nobody", json!({"cluster": "nobody"})),
        to("/nowhere", json!({"cluster_header": "x-no-such-cluster"})),
        to("/unknown", json!({"cluster_header": "x-cluster"})),
        to("/full", json!({"cluster": "full"})),
        to("/longest", json!({"cluster": "longest"})),
        {"match": {"prefix": "/direct"}, "direct_response": direct},
        {"match": {"prefix": "/moved"}, "redirect": {"path_redirect": "/elsewhere"}},
        to("/hasty", json!({"cluster": "upstream", "timeout": "0.15s"})),
        to("/attempts", retry(json!({"per_try_timeout": "0.1s"}))),
        to("/again", retry(json!({}))),
        to("/idle", json!({"cluster": "upstream", "idle_timeout": "0.15s"})),
        to("/brief", json!({"cluster": "upstream", "max_stream_duration": brief})),
        to("/moves", json!({"cluster": "upstream", "internal_redirect_policy": moves})),
        // All other paths have no route.
        {"match": {"safe_regex": {"regex": "/(grpc|elsewhere)?"}}, "route": {"cluster": "upstream"}},
    ]}]})
}

const ABORT: (&str, &str) = ("x-envoy-fault-abort-request", "418");
const DELAY: (&str, &str) = ("x-envoy-fault-delay-request", "60000");
const DENIED: (&str, &str) = ("x-denied", "yes");
const SCRIPTED: (&str, &str) = ("x-scripted", "40");
const BUFFERED: (&str, &str) = ("x-buffered", "yes");
const GRPC: (&str, &str) = ("content-type", "application/grpc");
const UPGRADE: (&str, &str) = ("upgrade", "websocket");
const NONE: (&str, &str) = ("x-more", "none");

/// A path, the instructions for the upstream, a further header, and the client's behaviour. Then the
/// status of the response, the usage, and whether `failed` counts the request.
type End = (&'static str, &'static str, (&'static str, &'static str), Does, u16, u64, bool);

const ENDS: [End; 47] = [
    // The upstream was not reached, or did not respond.
    ("/nobody", "", NONE, Stays, 503, 0, true),
    ("/down", "", NONE, Stays, 503, 0, true),
    ("/down", "", GRPC, Stays, 200, 0, true),
    ("/down", "", UPGRADE, Stays, 503, 0, true),
    ("/nowhere", "", NONE, Stays, 503, 0, true),
    ("/unknown", "", NONE, Stays, 503, 0, true),
    ("/full", "", NONE, Stays, 503, 0, true),
    ("/", "close", NONE, Stays, 503, 0, true),
    ("/", "garbage", NONE, Stays, 502, 0, true),
    ("/again", "close", NONE, Stays, 503, 0, true),
    // A timeout of Envoy.
    ("/hasty", "tokens 40 sleep 400", NONE, Stays, 504, 0, true),
    ("/hasty", "continue tokens 40 sleep 400", NONE, Stays, 504, 0, true),
    ("/attempts", "tokens 40 sleep 300", NONE, Stays, 504, 0, true),
    ("/idle", "tokens 40 sleep 400", NONE, Stays, 504, 0, true),
    ("/brief", "tokens 40 sleep 400", NONE, Stays, 504, 0, true),
    ("/longest", "tokens 40 sleep 400", NONE, Stays, 504, 0, true),
    ("/idle", "", NONE, Stalls, 408, 0, true),
    // A response by Envoy or by a filter behind Diana. Its header has no effect.
    ("/direct", "", NONE, Stays, 200, 0, true),
    ("/moved", "", NONE, Stays, 301, 0, true),
    ("/unrouted", "", NONE, Stays, 404, 0, true),
    ("/", "", ABORT, Stays, 418, 0, true),
    ("/", "", DENIED, Stays, 403, 0, true),
    ("/", "", SCRIPTED, Stays, 200, 0, true),
    ("/", "", BUFFERED, Uploads, 413, 0, true),
    // The client left, which is no escape.
    ("/", "tokens 40 sleep 2000", NONE, Leaves, 0, MOST, true),
    ("/", "continue tokens 40 sleep 2000", NONE, LeavesAfterContinue, 100, MOST, true),
    ("/", "", DELAY, Leaves, 0, MOST, true),
    ("/", "", NONE, LeavesUpload, 0, MOST, true),
    ("/", "", NONE, Garbles, 400, MOST, true),
    ("/", "tokens 40 sleep 2000", NONE, Resets(8), 0, MOST, true),
    // Envoy 1.40 reports neither details nor a flag for this one.
    ("/", "tokens 40 sleep 2000", NONE, Resets(0), 0, MOST, true),
    // The upstream responded.
    ("/", "tokens 40", NONE, Stays, 200, 40, false),
    ("/", "", NONE, Stays, 200, MOST, false),
    ("/", "continue tokens 40", NONE, Stays, 200, 40, false),
    ("/", "tokens 40 empty", GRPC, Stays, 200, 40, false),
    ("/", "empty", GRPC, Stays, 200, MOST, false),
    ("/", "tokens 40 upgrade", UPGRADE, Stays, 101, 40, true),
    ("/", "upgrade", UPGRADE, Stays, 101, MOST, true),
    // It did not accept a WebSocket: Envoy withholds its body.
    ("/", "tokens 40", UPGRADE, Stays, 200, 40, true),
    ("/", "", UPGRADE, Stays, 200, MOST, true),
    ("/", "status 302 tokens 40", UPGRADE, Stays, 302, 40, true),
    ("/moves", "status 302 to http://here/elsewhere tokens 40", NONE, Stays, 302, 40, false),
    ("/again", "status 503 tokens 40", NONE, Stays, 503, 40, false),
    // An error without a number.
    ("/", "status 405", NONE, Stays, 405, 0, false),
    ("/", "status 429", NONE, Stays, 429, 0, false),
    ("/again", "status 500", NONE, Stays, 500, 0, false),
    ("/", "status 500 cut", NONE, Stays, 0, 0, true),
];

#[test]
fn only_a_begun_response_or_a_client_that_left_costs() {
    let service = upstream::start();
    let gateway = Gateway::with(&rules())
        .workers(3)
        .cluster("upstream", service.port)
        .cluster("longest", service.port)
        .of_brief_streams()
        .cluster("full", service.port)
        .of_no_requests()
        .cluster("down", free_port())
        .empty_cluster("nobody")
        .routed(
            routes(),
            json!({"proxy_100_continue": true, "upgrade_configs": [{"upgrade_type": "websocket"}]}),
        );
    let envoy = filters(gateway).start();
    for (number, end) in ENDS.into_iter().enumerate() {
        let (path, act, more, does, status, used, fails) = end;
        let name = number.to_string();
        let connection = ("connection", if more == UPGRADE { "upgrade" } else { "keep-alive" });
        let own = [("x-account-id", &*name), ("x-case", &*name), (ACT, act), more];
        let headers = [&own[..], &[("x-cluster", "unknown"), connection]].concat();
        let seen = play(&envoy, path, &headers, does);
        assert_eq!(seen, status, "{end:?}");
        let mut last = 0;
        eventually(&format!("{used} used by {end:?}"), || {
            let probe = [("x-account-id", &*name), (ACT, "tokens 0")];
            last = LIMIT - RESERVE - left(&envoy, "/", &probe);
            (last == used).then_some(())
        });
        let next = envoy.get("/", &[("x-case", &name), (ACT, "tokens 0")]);
        assert_eq!(next.refused(), fails, "{end:?}");
    }
    settles(&envoy, "rule.places.in_flight", 0);
    let local = ENDS.iter().filter(|end| end.5 == 0 && end.6 && !end.1.contains("cut")).count();
    let left = ENDS.iter().filter(|end| !matches!(end.3, Stays | Uploads | Stalls)).count();
    for (why, times) in [("unanswered", local), ("client_left", left), ("error", 4), ("cut", 0)] {
        settles(&envoy, &format!("rule.tokens.untold_{why}"), times as u64);
    }
    envoy.assert_unharmed();
}

/// Sends a request. Returns the status of its response, or 0 without one.
fn play(envoy: &Envoy, path: &str, headers: &[(&str, &str)], does: Does) -> u16 {
    let open = |envoy: &Envoy| {
        eventually("the request to be open", || (envoy.active() == 1).then_some(()));
    };
    eventually("the latest request to end", || (envoy.active() == 0).then_some(()));
    if let Resets(code) = does {
        let mut client = Http2::connect(envoy.port).unwrap();
        let is_allowed = |(name, _): &&(&str, &str)| *name != "connection";
        let headers: Vec<_> = headers.iter().filter(is_allowed).copied().collect();
        let stream = client.request(path, &headers, None);
        client.flush().unwrap();
        open(envoy);
        client.reset_with(stream, code);
        client.flush().unwrap();
        return 0;
    }
    let mut client = Client::connect(envoy.port).unwrap();
    let framing: &[(&str, &str)] = match does {
        Uploads => &[("content-length", "4000000")],
        Stalls | LeavesUpload => &[("content-length", "1000")],
        Garbles => &[("transfer-encoding", "chunked")],
        _ => &[],
    };
    let method = if framing.is_empty() { "GET" } else { "POST" };
    client.write(&request(method, path, &[headers, framing].concat())).unwrap();
    match does {
        // Envoy may respond before it has read everything.
        Uploads => _ = client.write(&vec![0; 4_000_000]),
        Stalls | LeavesUpload => client.write(b"a").unwrap(),
        Garbles => client.write(b"zz\r\n").unwrap(),
        _ => {}
    }
    match does {
        Leaves | LeavesUpload => {
            open(envoy);
            client.reset();
            0
        }
        LeavesAfterContinue => {
            let seen = client.wait().unwrap();
            client.reset();
            seen.unwrap()
        }
        _ => loop {
            let seen = client.read().map_or(0, |response| response.status);
            if seen != 100 {
                return seen;
            }
        },
    }
}
