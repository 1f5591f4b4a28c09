//! What stands where a Redis should be: it hands on what it is told, and says of some keys what a test wants.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::port;

#[derive(Default)]
struct State {
    /// What is said to scripts about keys that have the first in them.
    sayings: Vec<(String, &'static str)>,
    ended: bool,
}

/// An imposter in front of a Redis on loopback; dropping it ends it.
pub struct Imposter {
    pub port: u16,
    state: Arc<Mutex<State>>,
    server: Option<JoinHandle<()>>,
}

impl Imposter {
    /// One that says what the Redis at a port says.
    pub fn before(redis: u16) -> Imposter {
        let port = port::free();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
        let state = Arc::new(Mutex::new(State::default()));
        let server = {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    if state.lock().unwrap().ended {
                        return;
                    }
                    let state = Arc::clone(&state);
                    // Connections end when their clients want it.
                    thread::spawn(move || carry(&client, redis, &state));
                }
            })
        };
        Imposter { port, state, server: Some(server) }
    }

    /// From the next script on, those about keys that have this in them are told so, and Redis hears of nothing.
    pub fn say(&self, of: String, saying: &'static str) {
        self.state.lock().unwrap().sayings.push((of, saying));
    }

    /// Says what Redis says again.
    pub fn behave(&self) {
        self.state.lock().unwrap().sayings.clear();
    }
}

impl Drop for Imposter {
    fn drop(&mut self) {
        self.state.lock().unwrap().ended = true;
        // Wakes the server, which then sees that it is over.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        self.server.take().into_iter().for_each(|server| drop(server.join()));
    }
}

fn carry(mut client: &TcpStream, redis: u16, state: &Mutex<State>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut redis = TcpStream::connect((Ipv4Addr::LOCALHOST, redis))?;
    redis.set_nodelay(true)?;
    let (mut commands, mut answers) = (BufReader::new(client), BufReader::new(redis.try_clone()?));
    loop {
        let command = value(&mut commands)?;
        let saying = saying(&state.lock().unwrap().sayings, &command);
        match saying {
            Some(text) => client.write_all(text.as_bytes())?,
            None => {
                redis.write_all(&command)?;
                client.write_all(&value(&mut answers)?)?;
            }
        }
    }
}

/// What is said to a command, if not what Redis says.
fn saying(sayings: &[(String, &'static str)], command: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(command);
    let is_of = |(of, _): &&(String, _)| text.contains(of);
    sayings.iter().find(is_of).map(|(_, saying)| *saying)
}

/// The bytes of what comes next, a command or an answer.
fn value(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_until(b'\n', &mut bytes)?;
    let line = String::from_utf8_lossy(&bytes);
    let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::UnexpectedEof)?;
    let count = || rest.trim_end().parse::<i64>().map_err(io::Error::other);
    match kind {
        "*" => {
            for _ in 0..count()? {
                bytes.extend(value(from)?);
            }
        }
        "$" if count()? >= 0 => {
            let length = count()? as u64 + 2;
            from.take(length).read_to_end(&mut bytes)?;
        }
        _ => {}
    }
    Ok(bytes)
}
