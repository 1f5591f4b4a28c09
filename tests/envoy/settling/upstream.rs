//! A service that does what requests say: how it answers, and how it fails.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::harness::{Arrival, Upstream};

/// What a request wants done, in words: `tokens 40`, `status 401`, `sleep 300` milliseconds before the answer,
/// `close` instead of one, `cut` or `hang` in the middle of it, `empty`, `event 40` of a stream of events.
pub const ACT: &str = "x-act";

pub fn start() -> Upstream {
    Upstream::answering(answer)
}

fn answer(arrival: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    let mut words = arrival.header(ACT).unwrap_or_default().split_whitespace();
    let (mut status, mut fields, mut body) = ("200", String::new(), "ok\n");
    let (mut breaks, mut event) = (None, None);
    while let Some(word) = words.next() {
        match word {
            "tokens" => {
                let tokens = words.next().unwrap_or_default();
                fields += &format!("x-tokens-used: {tokens}\r\n");
            }
            "status" => status = words.next().unwrap_or_default(),
            "to" => fields += &format!("location: {}\r\n", words.next().unwrap_or_default()),
            "sleep" => pause(words.next()),
            "close" => return Err(ErrorKind::ConnectionReset.into()),
            "cut" | "hang" => breaks = Some(word),
            "empty" => body = "",
            "event" => event = words.next(),
            other => panic!("cannot {other}"),
        }
    }
    if let Some(tokens) = event {
        return events(tokens, breaks, to);
    }
    let length = if breaks.is_some() { 1000 } else { body.len() };
    let head = format!("HTTP/1.1 {status} Told\r\n{fields}content-length: {length}\r\n\r\n");
    to.write_all(format!("{head}{body}").as_bytes())?;
    break_off(breaks)
}

/// Answers as a model does that streams: events with parts of the answer, and the usage in the last one.
fn events(tokens: &str, breaks: Option<&str>, to: &mut &TcpStream) -> io::Result<()> {
    to.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    let mut event = |data: String| {
        let text = format!("data: {data}\n\n");
        to.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    };
    for part in ["Hel", "lo"] {
        event(format!(
            r#"{{"id":"1","object":"chat.completion.chunk","model":"m","choices":[{{"index":0,"delta":{{"content":"{part}"}}}}],"usage":null}}"#
        ))?;
        thread::sleep(Duration::from_millis(5));
    }
    break_off(breaks)?;
    event(format!(
        r#"{{"id":"1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{{"prompt_tokens":1,"completion_tokens":{tokens},"total_tokens":{tokens}}}}}"#
    ))?;
    event("[DONE]".into())?;
    to.write_all(b"0\r\n\r\n")
}

fn break_off(how: Option<&str>) -> io::Result<()> {
    match how {
        None => return Ok(()),
        Some("hang") => thread::sleep(Duration::from_secs(3)),
        Some(_) => {}
    }
    Err(ErrorKind::ConnectionReset.into())
}

fn pause(milliseconds: Option<&str>) {
    let milliseconds = milliseconds.and_then(|text| text.parse().ok()).unwrap_or_default();
    thread::sleep(Duration::from_millis(milliseconds));
}
