//! The bytes of bodies, without headers: of uploads that break off, responses of Envoy itself, and WebSockets.

use serde_json::{Value, json};

use super::left;
use super::local_replies::filters;
use super::upstream::{self, ACT};
use crate::harness::{Client, Envoy, Gateway, Http2, Outcome, eventually, request};

const LIMIT: u64 = 10_000;
const MOST: u64 = 5_000;

/// The behaviour of a client.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Sends no body.
    Gets,
    /// As `Gets`, with the method HEAD.
    AsksForHead,
    /// Sends a body in parts of this many bytes.
    Sends(&'static [usize]),
    /// The same in chunks.
    Chunks(&'static [usize]),
    /// The same by HTTP/2, whose last part ends the stream.
    Frames(&'static [usize]),
    /// Announces a body of 5,000 bytes, sends these, and closes its connection.
    BreaksOff(usize),
    /// Opens a WebSocket, waits for these bytes, sends these, and closes it.
    Talks(usize, usize),
}
use Does::{AsksForHead, BreaksOff, Chunks, Frames, Gets, Sends, Talks};

/// A path, the instructions for the upstream, a further header, and the client's behaviour. Then the bytes of the request and of
/// the response.
type Exchange = (&'static str, &'static str, (&'static str, &'static str), Does, u64, u64);

const NONE: (&str, &str) = ("x-more", "none");
const BUFFERED: (&str, &str) = ("x-buffered", "yes");
const UPGRADE: (&str, &str) = ("upgrade", "websocket");

const EXCHANGES: [Exchange; 26] = [
    ("/", "", NONE, Gets, 0, 3),
    ("/", "size 1000", NONE, Gets, 0, 1000),
    ("/", "size 3000 trailers", NONE, Gets, 0, 3000),
    ("/", "empty", NONE, Sends(&[500]), 500, 0),
    ("/", "size 9", NONE, AsksForHead, 0, 0),
    ("/", "", NONE, Sends(&[100, 200, 300]), 600, 3),
    ("/", "", NONE, Chunks(&[100, 200, 300]), 600, 3),
    ("/", "", NONE, Frames(&[100]), 100, 3),
    ("/", "", NONE, Frames(&[100, 200, 300]), 600, 3),
    // More than the rule charges at most.
    ("/", "size 6000", NONE, Sends(&[7000]), 7000, 6000),
    // A filter buffers the body.
    ("/", "", BUFFERED, Chunks(&[100, 200]), 300, 3),
    ("/", "", BUFFERED, Frames(&[100, 200]), 300, 3),
    // Envoy buffers it for another attempt, and makes one.
    ("/again", "", NONE, Frames(&[100, 200]), 300, 3),
    ("/again", "status 503 size 70", NONE, Sends(&[100, 200]), 300, 70),
    // The second leg.
    ("/moves", "status 302 to http://here/elsewhere size 70", NONE, Gets, 0, 70),
    // Diana holds all but one of them.
    ("/held", "", NONE, Gets, 0, 3),
    ("/held", "", NONE, Chunks(&[100, 200]), 300, 3),
    ("/held", "", NONE, Frames(&[100, 200]), 300, 3),
    // Envoy responds: `no healthy upstream`, `mine`, `RBAC: access denied`.
    ("/nobody", "", NONE, Gets, 0, 19),
    ("/direct", "", NONE, Gets, 0, 5),
    ("/", "", ("x-denied", "yes"), Gets, 0, 19),
    ("/", "", NONE, BreaksOff(400), 400, 0),
    ("/", "upgrade size 77", UPGRADE, Talks(77, 300), 300, 77),
    ("/", "upgrade size 2000", UPGRADE, Talks(2000, 0), 0, 2000),
    ("/", "upgrade size 0", UPGRADE, Talks(0, 10), 10, 0),
    // The upstream breaks off.
    ("/", "size 40 cut", NONE, Gets, 0, 40),
];

fn rules(scope: &str) -> String {
    let rule = |name: &str, cost: &str| {
        format!(
            "    - {{name: {name}, actor: {name}, unit: day, rpu: {LIMIT}, algo: W, scope: {scope}, cost: {{response: {cost}, reserve: 1, max: {MOST}}}}}\n"
        )
    };
    format!(
        "accepted: {{headers: true}}
actors: {{up: [{{header: x-up}}], down: [{{header: x-down}}], both: [{{header: x-both}}]}}
limits:
- Url: /held
  rules: [{{name: held, actor: all, unit: second, rpu: 20, algo: LB, max_delay: 9s, expose: false}}]
- Url: /
  rules:
{}{}{}",
        rule("up", "{bytes: request}"),
        rule("down", "{bytes: response}"),
        rule("both", "{sum: [{bytes: request, times: 0.5}, {bytes: response, times: 0.1}]}"),
    )
}

fn routes() -> Value {
    let to = |prefix: &str, route: Value| json!({"match": {"prefix": prefix}, "route": route});
    let retry = json!({"retry_on": "5xx", "num_retries": 2,
        "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.01s"}});
    let direct = json!({"status": 200, "body": {"inline_string": "mine\n"}});
    let moves = json!({"max_internal_redirects": 1});
    json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        to("/nobody", json!({"cluster": "nobody"})),
        {"match": {"prefix": "/direct"}, "direct_response": direct},
        to("/again", json!({"cluster": "upstream", "retry_policy": retry})),
        to("/moves", json!({"cluster": "upstream", "internal_redirect_policy": moves})),
        to("/", json!({"cluster": "upstream"})),
    ]}]})
}

#[test]
fn bodies_are_counted_without_headers() {
    let service = upstream::start();
    for scope in ["local", "gateway"] {
        let gateway = Gateway::with(&rules(scope))
            .cluster("upstream", service.port)
            .of_trailers()
            .empty_cluster("nobody")
            .routed(routes(), json!({"upgrade_configs": [{"upgrade_type": "websocket"}]}));
        let envoy = filters(gateway).start();
        for (number, exchange) in EXCHANGES.into_iter().enumerate() {
            let (path, act, more, does, up, down) = exchange;
            let name = number.to_string();
            let connection = if more == UPGRADE { "upgrade" } else { "keep-alive" };
            let own = [("x-up", &*name), ("x-down", &*name), ("x-both", &*name)];
            play(&envoy, path, &[&own[..], &[(ACT, act), more]].concat(), connection, does);
            let both = (up * 5 + down).div_ceil(10);
            for (actor, used) in [("x-up", up), ("x-down", down), ("x-both", both)] {
                let used = used.min(MOST);
                eventually(&format!("{used} for {actor} of {exchange:?}"), || {
                    let left = left(&envoy, "/", &[(actor, &name), (ACT, "empty")]);
                    (LIMIT - 1 - left == used).then_some(())
                });
            }
        }
        envoy.assert_unharmed();
    }
}

/// Sends a request, and waits for the end of its response or of its connection.
fn play(envoy: &Envoy, path: &str, headers: &[(&str, &str)], connection: &str, does: Does) {
    let body = |length: usize| vec![b'a'; length];
    let mut client = Client::connect(envoy.port).unwrap();
    let mut begin = |method: &str, more: &[(&str, &str)]| {
        let more = [headers, &[("connection", connection)], more].concat();
        client.write(&request(method, path, &more)).unwrap();
    };
    match does {
        Gets => begin("GET", &[]),
        AsksForHead => begin("HEAD", &[]),
        Sends(parts) => {
            begin("POST", &[("content-length", &parts.iter().sum::<usize>().to_string())]);
            parts.iter().for_each(|part| client.write(&body(*part)).unwrap());
        }
        Chunks(parts) => {
            begin("POST", &[("transfer-encoding", "chunked")]);
            for part in parts {
                client.write(format!("{part:x}\r\n").as_bytes()).unwrap();
                client.write(&[&body(*part)[..], b"\r\n"].concat()).unwrap();
            }
            client.write(b"0\r\n\r\n").unwrap();
        }
        Frames(parts) => {
            let mut client = Http2::connect(envoy.port).unwrap();
            let stream = client.begin("POST", path, headers);
            for (number, part) in parts.iter().enumerate() {
                client.data(stream, &body(*part), number + 1 == parts.len());
                client.flush().unwrap();
            }
            assert_eq!(client.answer().unwrap(), (stream, Outcome::Ok));
            return;
        }
        BreaksOff(length) => {
            begin("POST", &[("content-length", "5000")]);
            return client.write(&body(length)).unwrap();
        }
        Talks(reads, writes) => {
            begin("GET", &[]);
            assert_eq!(client.read_upgraded(reads).unwrap(), 101);
            return client.write(&body(writes)).unwrap();
        }
    }
    // The response to HEAD has the length of a body that does not come.
    if matches!(does, AsksForHead) { _ = client.wait().unwrap() } else { _ = client.read() }
}
