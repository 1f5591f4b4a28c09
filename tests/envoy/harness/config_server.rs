//! A configuration server that tests control. It can also violate HTTP.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The response to each request.
#[derive(Clone)]
pub enum ServerResponse {
    Text(String),
    /// The text with this tag, or 304 to a request that has the tag.
    Tagged(String, String),
    /// The text with a number of gateways.
    Counted(String, u64),
    Status(u16),
    /// The text after a delay.
    Late(Duration, String),
    /// Half of the announced body.
    Half(String),
    /// Not HTTP.
    Garbage,
}

/// A request to a server with tags, and the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// The tag in the request.
    pub condition: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// The tag of the server's document.
    pub tag: String,
}

struct State {
    response: ServerResponse,
    /// The heads of all requests so far.
    requests: Vec<String>,
    exchanges: Vec<Exchange>,
    ended: bool,
}

/// A server on a port of loopback. Dropping it closes the port.
pub struct ConfigServer {
    pub port: u16,
    state: Arc<Mutex<State>>,
    server: Option<JoinHandle<()>>,
}

impl ConfigServer {
    /// On any port.
    pub fn start(response: ServerResponse) -> Self {
        Self::on(0, response)
    }

    /// On the port of a former server.
    pub fn on(port: u16, response: ServerResponse) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            response,
            requests: Vec::new(),
            exchanges: Vec::new(),
            ended: false,
        }));
        let shared = Arc::clone(&state);
        let server = thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.lock().unwrap().ended {
                    return;
                }
                let shared = Arc::clone(&shared);
                // A closed connection is not an error of the test.
                thread::spawn(move || stream.and_then(|stream| serve(stream, &shared)));
            }
        });
        Self { port, state, server: Some(server) }
    }

    pub fn respond_with(&self, response: ServerResponse) {
        self.state.lock().unwrap().response = response;
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }

    /// All answers with a tag so far, and 304.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.state.lock().unwrap().exchanges.clone()
    }
}

impl Drop for ConfigServer {
    fn drop(&mut self) {
        self.state.lock().unwrap().ended = true;
        // Wakes the server, which then ends.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        self.server.take().into_iter().for_each(|server| server.join().unwrap());
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut head = String::new();
    let mut from = BufReader::new(stream.try_clone()?);
    while !head.ends_with("\r\n\r\n") && from.read_line(&mut head)? > 0 {}
    let mut lines = head.lines();
    let condition = lines.find_map(|line| line.strip_prefix("if-none-match: ")).map(str::to_owned);
    let response = {
        let mut state = state.lock().unwrap();
        state.requests.push(head);
        let response = state.response.clone();
        if let ServerResponse::Tagged(_, tag) = &response {
            let status = if condition.as_ref() == Some(tag) { 304 } else { 200 };
            let tag = tag.clone();
            state.exchanges.push(Exchange { condition: condition.clone(), status, tag });
        }
        response
    };
    let reply = |status: u16, length: usize, text: &str| {
        let head = format!("HTTP/1.1 {status} x\r\nconnection: close\r\n");
        format!("{head}content-length: {length}\r\n\r\n{text}")
    };
    let bytes = match response {
        ServerResponse::Text(text) => reply(200, text.len(), &text),
        ServerResponse::Tagged(text, tag) => {
            let (status, length, text) = if condition.as_ref() == Some(&tag) {
                ("304", 0, "")
            } else {
                ("200", text.len(), &*text)
            };
            let head = format!("HTTP/1.1 {status} x\r\nconnection: close\r\netag: {tag}\r\n");
            format!("{head}content-length: {length}\r\n\r\n{text}")
        }
        ServerResponse::Counted(text, gateways) => reply(200, text.len(), &text).replacen(
            "\r\n",
            &format!("\r\nx-diana-gateways: {gateways}\r\n"),
            1,
        ),
        ServerResponse::Status(status) => reply(status, 0, ""),
        ServerResponse::Late(pause, text) => {
            thread::sleep(pause);
            reply(200, text.len(), &text)
        }
        ServerResponse::Half(text) => reply(200, 2 * text.len(), &text),
        ServerResponse::Garbage => "220 smtp.example.com\r\n".into(),
    };
    stream.write_all(bytes.as_bytes())
}
