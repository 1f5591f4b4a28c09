//! A minimal HTTP/2 client that sends many requests on one connection. It does not compress
//! headers, and only distinguishes whether the status of a response is 200.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use super::client::PATIENCE;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// The end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// Another status.
    Refused,
    Reset,
}

/// A connection.
pub struct Http2 {
    stream: BufReader<TcpStream>,
    next: u32,
    /// Frames that have not been sent.
    pending: Vec<u8>,
    /// Open streams with status 200.
    ok: VecDeque<u32>,
}

impl Http2 {
    /// Connects to a port on loopback with prior knowledge of HTTP/2.
    pub fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (stream, pending) =
            (BufReader::new(stream), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec());
        let mut client = Self { stream, next: 1, pending, ok: VecDeque::new() };
        client.frame(SETTINGS, 0, 0, &[]);
        // All bodies together may have two gigabytes. The client never updates the window.
        client.frame(WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes());
        Ok(client)
    }

    /// Queues a request with a short `body`, and returns the number of its stream.
    pub fn request(&mut self, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> u32 {
        let method = if body.is_some() { "POST" } else { "GET" };
        self.send(method, path, headers, body)
    }

    /// As [`Http2::request`], with any method.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> u32 {
        let id = self.headers(method, path, headers, body.is_none());
        if let Some(body) = body {
            self.data(id, body, true);
        }
        id
    }

    /// Queues the headers of a request whose body follows, and returns the number of its stream.
    pub fn begin(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) -> u32 {
        self.headers(method, path, headers, false)
    }

    /// Queues a part of the body of a request.
    pub fn data(&mut self, id: u32, part: &[u8], ends: bool) {
        self.frame(DATA, if ends { END_STREAM } else { 0 }, id, part);
    }

    fn headers(&mut self, method: &str, path: &str, headers: &[(&str, &str)], ends: bool) -> u32 {
        let id = self.next;
        self.next += 2;
        // `:scheme: http` is in the static table.
        let mut block = vec![0x86];
        let fields = [(":method", method), (":path", path), (":authority", "shop.example.com")];
        for (name, value) in fields.iter().chain(headers) {
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).unwrap());
                block.extend(text.bytes());
            }
        }
        let end = if ends { END_STREAM } else { 0 };
        self.frame(HEADERS, END_HEADERS | end, id, &block);
        id
    }

    /// Queues the reset of a stream: its client no longer wants the response.
    pub fn reset(&mut self, id: u32) {
        const CANCEL: u32 = 8;
        self.reset_with(id, CANCEL);
    }

    /// Queues the reset of a stream with a code.
    pub fn reset_with(&mut self, id: u32, code: u32) {
        self.frame(RST_STREAM, 0, id, &code.to_be_bytes());
    }

    /// Sends all queued frames.
    pub fn flush(&mut self) -> io::Result<()> {
        self.stream.get_mut().write_all(&std::mem::take(&mut self.pending))
    }

    /// The next stream that ends, and its outcome.
    pub fn answer(&mut self) -> io::Result<(u32, Outcome)> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head)?;
            let [a, b, c, kind, flags, id @ ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.stream.read_exact(&mut payload)?;
            let id = u32::from_be_bytes(id);
            match kind {
                SETTINGS | PING if flags & ACK == 0 => {
                    let echo = if kind == PING { payload.as_slice() } else { &[] };
                    self.frame(kind, ACK, 0, echo);
                    self.flush()?;
                }
                RST_STREAM => return Ok((id, Outcome::Reset)),
                HEADERS if is_ok(&payload) => self.ok.push_back(id),
                _ => {}
            }
            if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                let ok = self.ok.iter().position(|found| *found == id);
                let ok = ok.and_then(|place| self.ok.remove(place));
                return Ok((id, if ok.is_some() { Outcome::Ok } else { Outcome::Refused }));
            }
        }
    }

    fn frame(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) {
        let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
        self.pending.extend(length);
        self.pending.extend([kind, flags]);
        self.pending.extend(id.to_be_bytes());
        self.pending.extend(payload);
    }
}

/// Returns true if a block of headers begins with `:status: 200`, which is in the static table,
/// possibly after updates of the dynamic table's size.
fn is_ok(block: &[u8]) -> bool {
    block.iter().find(|byte| **byte >> 5 != 1) == Some(&0x88)
}
