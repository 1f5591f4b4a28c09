//! Tokens of a language model, counted by the files of envoy/llm/, with a server that responds like
//! models.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::harness::{
    Arrival, Client, Envoy, Gateway, Response, Upstream, eventually, exchange, hcm_filter, request,
    shipped_text,
};
use crate::settling::left_after;
use crate::settling::upstream::{self, ACT};

const PATH: &str = "/v1/chat/completions";
const LIMIT: u64 = 200_000;
const RESERVE: u64 = 500;
const MOST: u64 = 20_000;

/// The requested kind of response, and tokens: `stream`, `whole`, `large`, `cut`, or `error` without
/// tokens. The server compresses it if the client accepts that.
const KIND: &str = "x-asks";
/// The parameters of the media type of the response.
const CHARSET: &str = "x-charset";

fn answer(arrival: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    let (how, tokens) = arrival.header(KIND).and_then(|asks| asks.split_once(' ')).unwrap();
    let usage = format!(
        r#""usage":{{"prompt_tokens":0,"completion_tokens":{tokens},"total_tokens":{tokens}}}"#
    );
    let head = r#""id":"c-1","created":1,"model":"m""#;
    if arrival.header("accept-encoding").is_some() {
        let fields = "content-type: application/json\r\ncontent-encoding: gzip";
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\ncontent-length: 2\r\n\r\n\x1f\x01");
        return to.write_all(text.as_bytes());
    }
    let charset = arrival.header(CHARSET).unwrap_or_default();
    if matches!(how, "whole" | "large" | "error") {
        let content = "Hello".repeat(if how == "large" { 500_000 } else { 1 });
        let message = format!(r#"{{"role":"assistant","content":"{content}"}}"#);
        let choice = format!(r#"{{"index":0,"message":{message},"finish_reason":"stop"}}"#);
        let whole =
            format!(r#"{{{head},"object":"chat.completion","choices":[{choice}],{usage}}}"#);
        let (status, body) = match how {
            "error" => (tokens, r#"{"error":{"message":"too much","code":null}}"#),
            _ => ("200", &*whole),
        };
        let fields = format!("content-type: application/json{charset}");
        let length = body.len();
        let text =
            format!("HTTP/1.1 {status} So\r\n{fields}\r\ncontent-length: {length}\r\n\r\n{body}");
        return to.write_all(text.as_bytes());
    }
    let fields = format!("content-type: text/event-stream{charset}\r\ntransfer-encoding: chunked");
    to.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes())?;
    let mut send = |bytes: &str| {
        to.write_all(format!("{:x}\r\n{bytes}\r\n", bytes.len()).as_bytes())?;
        // Another packet.
        thread::sleep(Duration::from_millis(2));
        io::Result::Ok(())
    };
    let event =
        |rest: &str| format!("data: {{{head},\"object\":\"chat.completion.chunk\",{rest}}}\n\n");
    for part in ["Hel", "lo"] {
        let delta =
            format!(r#""choices":[{{"index":0,"delta":{{"content":"{part}"}}}}],"usage":null"#);
        send(&event(&delta))?;
    }
    if how == "cut" {
        return Err(ErrorKind::ConnectionReset.into());
    }
    // The last event is split in two.
    let last = event(&format!(r#""choices":[],{usage}"#));
    let (one, two) = last.split_at(last.len() / 2);
    send(one)?;
    send(two)?;
    send("data: [DONE]\n\n")?;
    to.write_all(b"0\r\n\r\n")
}

fn post(envoy: &Envoy, path: &str, headers: &[(&str, &str)]) -> Response {
    exchange(envoy.port, &request("POST", path, headers)).unwrap()
}

/// Each request costs the reported tokens, or the maximum if the report is missing.
fn play(file: &str) {
    let model = Upstream::answering(answer);
    let envoy = Gateway::as_in_llm(file, &model).workers(2).start_shared();
    let gzip = ("accept-encoding", "gzip, br");
    let charset = (CHARSET, "; charset=utf-8");
    let none = ("x-more", "none");
    for (number, (asks, more, used)) in [
        ("stream 0", none, 0),
        ("stream 42", none, 42),
        ("stream 12345", charset, 12_345),
        ("stream 99999", gzip, MOST),
        ("stream 77", gzip, 77),
        ("whole 1234", none, 1234),
        ("whole 1234", gzip, 1234),
        ("whole 1234", charset, 1234),
        ("large 1234", none, 1234),
        ("error 429", none, 0),
        ("error 500", charset, 0),
        ("cut 42", none, MOST),
    ]
    .into_iter()
    .enumerate()
    {
        let account = number.to_string();
        let mut client = Client::connect(envoy.port).unwrap();
        let headers = [("x-account-id", &*account), (KIND, asks), more];
        client.write(&request("POST", PATH, &headers)).unwrap();
        // An aborted response is invalid.
        assert_eq!(client.read().is_ok(), !asks.starts_with("cut"), "{asks}");
        let mut last = 0;
        eventually(&format!("{asks} to cost {used} by {file}.yaml"), || {
            last = LIMIT
                - RESERVE
                - left_after(&post(
                    &envoy,
                    PATH,
                    &[("x-account-id", &account), (KIND, "stream 0")],
                ));
            (last == used).then_some(())
        });
    }
    envoy.assert_unharmed();
}

/// The header of the example is read if a filter before Diana removes it, and not if the route does.
#[test]
fn header_is_removed_after_diana_has_read_it() {
    const TOKENS: &str = "x-tokens-used";
    let rules = shipped_text("envoy/examples/llm-tokens.yaml");
    let rules = format!("accepted: {{headers: true}}\n{rules}");
    let service = upstream::start();
    let remove = json!({"mutations": {"response_mutations": [{"remove": TOKENS}]}});
    let name = "envoy.filters.http.header_mutation";
    let filter = hcm_filter(name, "header_mutation", "HeaderMutation", remove);
    let by_route = |names: &[&str]| {
        json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{
            "match": {"prefix": "/"},
            "route": {"cluster": "upstream"},
            "response_headers_to_remove": names,
        }]}]})
    };
    let gateway = || Gateway::with(&rules).cluster("upstream", service.port);
    for (gateway, used) in [
        (gateway().behind(filter).routed(by_route(&[]), json!({})), 40),
        (gateway().routed(by_route(&[TOKENS]), json!({})), MOST),
    ] {
        let envoy = gateway.start();
        let response = envoy.get(PATH, &[("x-account-id", "ann"), (ACT, "tokens 40")]);
        assert_eq!((response.status, response.header(TOKENS)), (200, None));
        eventually(&format!("{used} used"), || {
            // An error is free.
            let probe = envoy.get(PATH, &[("x-account-id", "ann"), (ACT, "status 500")]);
            (LIMIT - RESERVE - left_after(&probe) == used).then_some(())
        });
        envoy.assert_unharmed();
    }
}

#[test]
fn metadata_filters_cost_the_tokens() {
    play("sse");
}

#[test]
fn protocol_filter_costs_its_tokens() {
    play("protocol");
}

/// The requested response: a file of `models/`, or else an error without tokens.
fn recorded(arrival: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    let name = arrival.header(KIND).unwrap();
    let Some((_, ending)) = name.split_once('.') else {
        return to.write_all(b"HTTP/1.1 500 Error\r\ncontent-length: 0\r\n\r\n");
    };
    let kind = match ending {
        "sse" => "text/event-stream; charset=utf-8",
        "ndjson" => "application/x-ndjson",
        _ => "application/json",
    };
    let body = shipped_text(&format!("tests/envoy/models/{name}"));
    // Longer than the events that the filter reads by default.
    let body = body.replace("LONG", &"word ".repeat(5_000));
    let fields = format!("content-type: {kind}\r\ntransfer-encoding: chunked");
    to.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes())?;
    // No event is whole in a packet.
    for part in body.as_bytes().chunks(body.len().div_ceil(40)) {
        to.write_all(format!("{:x}\r\n", part.len()).as_bytes())?;
        to.write_all(&[part, b"\r\n"].concat())?;
        thread::sleep(Duration::from_millis(1));
    }
    to.write_all(b"0\r\n\r\n")
}

/// Responses in the shapes of providers, and their tokens.
fn play_recorded(file: &str, cases: &[(&str, &str, u64)]) {
    let model = Upstream::answering(recorded);
    let envoy = Gateway::as_in_llm(file, &model).start_shared();
    for (number, (path, response, used)) in cases.iter().enumerate() {
        let account = number.to_string();
        let body = match *path {
            MESSAGES => {
                r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}"#
            }
            RESPONSES => r#"{"model":"m","input":"Hi"}"#,
            PATH => r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#,
            _ => r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#,
        };
        let length = body.len().to_string();
        let caller = ("x-account-id", &*account);
        let kind = ("content-type", "application/json");
        let headers = [caller, (KIND, response), kind, ("content-length", &length)];
        let sent = [&request("POST", path, &headers), body.as_bytes()].concat();
        let answer = exchange(envoy.port, &sent).unwrap();
        assert_eq!(answer.status, 200, "{path} {response}: {answer:?}");
        if answer.header("ratelimit").is_none() {
            assert_eq!(*used, 0, "{path} is exempt");
            continue;
        }
        eventually(&format!("{response} to cost {used} by {file}.yaml"), || {
            // An error is free.
            let probe = post(&envoy, path, &[caller, (KIND, "error")]);
            (LIMIT - RESERVE - left_after(&probe) == *used).then_some(())
        });
    }
    envoy.assert_unharmed();
}

const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/m:streamGenerateContent?alt=sse";

#[test]
fn providers_cost_their_tokens() {
    play_recorded(
        "sse",
        &[
            (PATH, "chat.sse", 1234),
            (PATH, "chat.json", 1235),
            (RESPONSES, "responses.sse", 2345),
            (RESPONSES, "responses.json", 2346),
            ("/v1/responses/resp_1", "responses.json", 0),
            (MESSAGES, "messages.sse", 2396),
            (MESSAGES, "messages.json", 2397),
            (MESSAGES, "messages-failed.sse", 300),
            ("/v1/messages/count_tokens", "tokens.json", 0),
            (GEMINI, "gemini.sse", 560),
            ("/v1beta/models/m:generateContent", "gemini.json", 561),
            ("/v1beta/models/m:countTokens", "gemini-count.json", 0),
            ("/v1beta/models/m:streamGenerateContent", "gemini-array.json", MOST),
        ],
    );
    play_recorded(
        "ndjson",
        &[
            ("/api/chat", "ollama.ndjson", 308),
            ("/api/chat", "ollama.json", 311),
            // The prompt was in the cache.
            ("/api/generate", "generate.ndjson", 283),
            ("/api/chat", "chat.sse", MOST),
            ("/v1beta/models/m:streamGenerateContent", "gemini-array.json", 562),
            ("/v1beta/models/m:generateContent", "gemini.json", 561),
            ("/v1beta/models/m:countTokens", "gemini-count.json", 0),
        ],
    );
}

#[test]
fn protocol_filter_reads_each_provider() {
    play_recorded(
        "protocol",
        &[
            (PATH, "chat.sse", 1234),
            (PATH, "chat.json", 1235),
            (RESPONSES, "responses.sse", 2345),
            (RESPONSES, "responses.json", 2346),
            ("/v1/responses/resp_1", "responses.json", 0),
            (MESSAGES, "messages.sse", 2396),
            (MESSAGES, "messages.json", 2397),
            ("/v1/messages/count_tokens", "tokens.json", 0),
            (GEMINI, "gemini.sse", 560),
            ("/v1beta/models/m:generateContent", "gemini.json", 561),
            ("/v1beta/models/m:countTokens", "gemini-count.json", 0),
        ],
    );
}

/// A request of `size` bytes for a model, and its response.
fn ask(envoy: &Envoy, account: &str, model: &str, size: usize, answer: &str) -> Response {
    let begin = format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":""#);
    let end = r#""}]}"#;
    let body = format!("{begin}{}{end}", "x".repeat(size - begin.len() - end.len()));
    let length = size.to_string();
    let headers = [
        ("x-account-id", account),
        ("content-type", "application/json"),
        ("content-length", &length),
        (KIND, answer),
    ];
    exchange(envoy.port, &[request("POST", PATH, &headers), body.into_bytes()].concat()).unwrap()
}

/// The estimate is a token for four bytes of the body. A request is refused, before the model is asked, if the tokens that
/// were used and the estimate exceed the limit. What the response adds stays debt.
#[test]
fn protocol_filter_estimates_before_the_model_is_asked() {
    let model = Upstream::answering(answer);
    let envoy = Gateway::as_in_llm("protocol", &model).start_shared();
    let settled = |used: u64| {
        eventually(&format!("{used} used"), || {
            // An error is free.
            let headers = [("x-account-id", "ann"), (KIND, "error 500")];
            let probe = exchange(envoy.port, &request("POST", PATH, &headers)).unwrap();
            (probe.status == 500 && left_after(&probe) == LIMIT - RESERVE - used).then_some(())
        });
    };
    for (whole, used) in (1..10).zip((MOST..).step_by(MOST as usize)) {
        let kind = if whole % 2 == 0 { "whole 20000" } else { "stream 20000" };
        assert_eq!(ask(&envoy, "ann", "m", 400, kind).status, 200);
        settled(used);
    }
    // 20,000 are left, and more than 19,999 are estimated.
    let first = ask(&envoy, "ann", "m", 79_996, "whole 10000");
    assert_eq!((first.status, left_after(&first)), (200, 1));
    settled(190_000);
    let arrivals = model.arrivals().len();
    let refused = ask(&envoy, "ann", "m", 40_004, "whole 1");
    assert_eq!((refused.status, model.arrivals().len()), (503, arrivals));
    // Another account, and a smaller request.
    assert_eq!(ask(&envoy, "bob", "m", 40_004, "whole 1").status, 200);
    assert_eq!(ask(&envoy, "ann", "m", 4_000, "stream 15000").status, 200);
    eventually("the debt", || {
        (ask(&envoy, "ann", "m", 200, "whole 1").status == 503).then_some(())
    });
    envoy.assert_unharmed();
}

/// The name of the model in the body is part of a caller.
#[test]
fn protocol_filter_names_the_model() {
    let model = Upstream::answering(answer);
    let envoy = Gateway::as_in_llm("protocol", &model).start_shared();
    let statuses = |name: &str, count| -> Vec<u16> {
        (0..count).map(|_| ask(&envoy, "cid", name, 200, "whole 0").status).collect()
    };
    assert_eq!(statuses("large", 60), [200; 60]);
    assert_eq!([statuses("large", 1), statuses("small", 1)], [[503], [200]]);
    envoy.assert_unharmed();
}
