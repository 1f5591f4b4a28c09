//! An upstream service that records requests with their time of arrival.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::clock::Clock;
use super::response::{line, read_chunks};

/// A request as received.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When its head was complete, in microseconds of Unix time.
    pub at: u64,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Arrival {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }
}

/// A running service. It ends with the tests.
pub struct Upstream {
    /// Its port on loopback.
    pub port: u16,
    seen: Arc<Mutex<Vec<Arrival>>>,
}

impl Upstream {
    /// Responds to all requests with 200.
    pub fn start() -> Self {
        Upstream::answering(|_, to| {
            to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")
        })
    }

    /// Responds by a function, on a free port. An error closes the connection.
    pub fn answering(answer: fn(&Arrival, &mut &TcpStream) -> io::Result<()>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::default();
        let (clock, upstream) = (Clock::new(), Self { port, seen: Arc::clone(&seen) });
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || {
                    connection.set_nodelay(true).unwrap();
                    let mut from = BufReader::new(&connection);
                    while serve(&mut from, clock, &seen, answer).is_ok() {}
                });
            }
        });
        upstream
    }

    /// The name of its cluster.
    pub fn cluster(&self) -> String {
        format!("upstream-{}", self.port)
    }

    /// All requests so far, in order of arrival.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let mut arrivals = self.seen.lock().unwrap().clone();
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    }
}

/// Reads one request and responds to it.
fn serve(
    from: &mut BufReader<&TcpStream>,
    clock: Clock,
    seen: &Mutex<Vec<Arrival>>,
    answer: fn(&Arrival, &mut &TcpStream) -> io::Result<()>,
) -> io::Result<()> {
    let request = line(from)?;
    let mut headers = Vec::new();
    while let Some((name, value)) = line(from)?.split_once(':') {
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let at = clock.now();
    let header = |wanted| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let mut body = Vec::new();
    if header("transfer-encoding").is_some() {
        read_chunks(from, &mut body)?;
    } else if let Some(length) = header("content-length") {
        let length = length.parse().map_err(io::Error::other)?;
        from.take(length).read_to_end(&mut body)?;
    }
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let arrival = Arrival { at, path, headers, body };
    seen.lock().unwrap().push(arrival.clone());
    answer(&arrival, from.get_mut())
}
