//! Tokens of a language model, counted by the files of envoy/llm/, with a server that responds like
//! models.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::harness::{Arrival, Client, Gateway, Upstream, eventually, request};
use crate::settling::left;

const PATH: &str = "/v1/chat/completions";
const LIMIT: u64 = 200_000;
const RESERVE: u64 = 500;
const MOST: u64 = 20_000;

/// The requested kind of response: `stream`, `whole` or `cut`, and tokens.
const KIND: &str = "x-asks";

fn answer(arrival: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    let (how, tokens) = arrival.header(KIND).and_then(|asks| asks.split_once(' ')).unwrap();
    let usage = format!(
        r#""usage":{{"prompt_tokens":0,"completion_tokens":{tokens},"total_tokens":{tokens}}}"#
    );
    let head = r#""id":"c-1","created":1,"model":"m""#;
    if how == "whole" {
        let choice = r#"{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}"#;
        let body = format!(r#"{{{head},"object":"chat.completion","choices":[{choice}],{usage}}}"#);
        let fields = "content-type: application/json";
        let length = body.len();
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\ncontent-length: {length}\r\n\r\n{body}");
        return to.write_all(text.as_bytes());
    }
    let fields = "content-type: text/event-stream\r\ntransfer-encoding: chunked";
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

/// Each request costs the reported tokens, or the maximum if the report is missing.
fn play(file: &str, answers_whole: bool) {
    let model = Upstream::answering(answer);
    let envoy = Gateway::as_in_llm(file, &model).workers(2).start_shared();
    let whole = if answers_whole { 1234 } else { MOST };
    for (number, (asks, used)) in [
        ("stream 0", 0),
        ("stream 42", 42),
        ("stream 12345", 12_345),
        ("stream 99999", MOST),
        ("whole 1234", whole),
        ("cut 42", MOST),
    ]
    .into_iter()
    .enumerate()
    {
        let account = number.to_string();
        let mut client = Client::connect(envoy.port).unwrap();
        let headers = [("x-account-id", &*account), (KIND, asks)];
        client.write(&request("POST", PATH, &headers)).unwrap();
        // An aborted response is invalid.
        assert_eq!(client.read().is_ok(), !asks.starts_with("cut"), "{asks}");
        let mut last = 0;
        eventually(&format!("{asks} to cost {used} by {file}.yaml"), || {
            last = LIMIT
                - RESERVE
                - left(&envoy, PATH, &[("x-account-id", &account), (KIND, "stream 0")]);
            (last == used).then_some(())
        });
    }
    envoy.assert_unharmed();
}

#[test]
fn event_stream_costs_its_tokens() {
    play("sse", false);
}

#[test]
fn protocol_filter_costs_its_tokens() {
    play("protocol", true);
}
