//! A service that responds and fails as requests specify.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::harness::{Arrival, Upstream};

/// The header with instructions in words: `tokens 40`, `status 401`, `sleep 300` milliseconds
/// before the response, `continue` with status 100, `to` a location, `close`, `garbage` or `upgrade`
/// instead of a response, `cut` or `hang` in the middle of it, a body of `size` bytes, also of a WebSocket, `empty`, `trailers`
/// after it. `rpc 16` is a response of gRPC with this status in its trailers, and `denied 16` one without messages. `used 40`
/// is in the trailers, too.
pub const ACT: &str = "x-act";

pub fn start() -> Upstream {
    Upstream::answering(answer)
}

fn answer(arrival: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    let mut words = arrival.header(ACT).unwrap_or_default().split_whitespace();
    let (mut status, mut fields, mut body) = ("200", String::new(), "ok\n".to_owned());
    let (mut breaks, mut has_trailers) = (None, false);
    let mut trailers = String::new();
    while let Some(word) = words.next() {
        match word {
            "tokens" => {
                let tokens = words.next().unwrap_or_default();
                fields += &format!("x-tokens-used: {tokens}\r\n");
            }
            "status" => status = words.next().unwrap_or_default(),
            "to" => fields += &format!("location: {}\r\n", words.next().unwrap_or_default()),
            "sleep" => pause(words.next()),
            "continue" => to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            "upgrade" => {
                let head = "HTTP/1.1 101 Told\r\nconnection: upgrade\r\nupgrade: websocket";
                let frames = words.next().map_or(String::new(), |_| sized(words.next()));
                return to.write_all(format!("{head}\r\n{fields}\r\n{frames}").as_bytes());
            }
            "close" => return Err(ErrorKind::ConnectionReset.into()),
            "garbage" => return to.write_all(b"whatever\r\n\r\n"),
            "cut" | "hang" => breaks = Some(word),
            "size" => body = sized(words.next()),
            "empty" => body = String::new(),
            "trailers" => (has_trailers, trailers) = (true, "grpc-status: 0\r\n".into()),
            "rpc" | "denied" => {
                fields += "content-type: application/grpc\r\n";
                trailers += &format!("grpc-status: {}\r\n", words.next().unwrap_or_default());
                has_trailers = word == "rpc";
                body = if has_trailers { "ok\n".into() } else { String::new() };
            }
            "used" => trailers += &format!("x-used: {}\r\n", words.next().unwrap_or_default()),
            other => panic!("cannot {other}"),
        }
    }
    if !has_trailers {
        fields += &trailers;
    }
    if has_trailers && breaks.is_none() {
        let head = format!("HTTP/1.1 {status} Told\r\n{fields}transfer-encoding: chunked\r\n\r\n");
        let chunks = format!("{:x}\r\n{body}\r\n0\r\n{trailers}\r\n", body.len());
        return to.write_all(format!("{head}{chunks}").as_bytes());
    }
    let length = if breaks.is_some() { 1000 } else { body.len() };
    let head = format!("HTTP/1.1 {status} Told\r\n{fields}content-length: {length}\r\n\r\n");
    to.write_all(format!("{head}{body}").as_bytes())?;
    break_off(breaks)
}

fn sized(bytes: Option<&str>) -> String {
    "x".repeat(bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or_default())
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
