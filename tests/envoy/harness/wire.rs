//! A connection between Envoy and Redis with configurable faults.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::port;

/// The fault of a connection, from its start to its end.
#[derive(Clone, Debug)]
pub enum Fault {
    /// No fault.
    None,
    /// Data for Redis is delayed.
    Late(Duration),
    /// The connection breaks after this number of bytes of the reply.
    Short(usize),
    /// A fixed reply, without any data for Redis.
    Garbage(&'static str),
    /// The connection is refused.
    Refused,
    /// The connection opens, and no data is transferred.
    Silent,
}

struct State {
    fault: Fault,
    /// Connections without data transfer.
    silenced: Vec<TcpStream>,
    ended: bool,
}

/// A connection to a server on loopback. Dropping it closes it.
pub struct Wire {
    pub port: u16,
    targets: Vec<u16>,
    state: Arc<Mutex<State>>,
    server: Option<JoinHandle<()>>,
}

impl Wire {
    /// A connection without faults.
    pub fn to(target: u16) -> Self {
        Self::to_any_of(&[target])
    }

    /// One address of several servers, each of which gets three connections in turn.
    pub fn to_any_of(targets: &[u16]) -> Self {
        let state = State { fault: Fault::None, silenced: Vec::new(), ended: false };
        let mut wire = Self {
            port: port::free(),
            targets: targets.into(),
            state: Arc::new(Mutex::new(state)),
            server: None,
        };
        wire.open();
        wire
    }

    /// Sets the fault of all further connections. Silent connections are closed.
    pub fn set(&mut self, fault: Fault) {
        let is_open = !matches!(fault, Fault::Refused);
        let mut state = self.state.lock().unwrap();
        state.fault = fault;
        state.silenced.clear();
        drop(state);
        if is_open && self.server.is_none() {
            self.open();
        } else if !is_open {
            self.close();
        }
    }

    fn open(&mut self) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).expect("a free port");
        let (state, targets) = (Arc::clone(&self.state), self.targets.clone());
        state.lock().unwrap().ended = false;
        self.server = Some(thread::spawn(move || {
            let targets = targets.into_iter().flat_map(|target| [target; 3]).collect::<Vec<_>>();
            for (client, target) in
                listener.incoming().flatten().zip(targets.iter().cycle().copied())
            {
                let fault = {
                    let mut state = state.lock().unwrap();
                    if state.ended {
                        return;
                    }
                    if matches!(state.fault, Fault::Silent) {
                        state.silenced.push(client);
                        continue;
                    }
                    state.fault.clone()
                };
                // Broken connections are expected.
                thread::spawn(move || carry(&client, target, fault));
            }
        }));
    }

    fn close(&mut self) {
        let Some(server) = self.server.take() else { return };
        self.state.lock().unwrap().ended = true;
        // Wakes the server, which then ends.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        server.join().unwrap();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.close();
    }
}

fn carry(mut client: &TcpStream, target: u16, fault: Fault) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (pause, most) = match fault {
        Fault::Garbage(text) => {
            client.write_all(text.as_bytes())?;
            client.shutdown(Shutdown::Write)?;
            return drain(client);
        }
        Fault::Late(pause) => (pause, usize::MAX),
        Fault::Short(most) => (Duration::ZERO, most),
        Fault::None | Fault::Refused | Fault::Silent => (Duration::ZERO, usize::MAX),
    };
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target))?;
    server.set_nodelay(true)?;
    thread::scope(|scope| {
        scope.spawn(|| pass_late(client, &server, pause));
        let result = pass(&server, client, most);
        // Also ends the other direction.
        let _ = client.shutdown(Shutdown::Both);
        result
    })
}

/// Reads until the peer closes.
fn drain(mut from: &TcpStream) -> io::Result<()> {
    io::copy(&mut from, &mut io::sink()).map(drop)
}

/// Forwards up to `most` bytes, and then the end of the stream.
fn pass(mut from: &TcpStream, mut to: &TcpStream, most: usize) -> io::Result<()> {
    let (mut buffer, mut left) = ([0; 16 << 10], most);
    loop {
        let count = from.read(&mut buffer)?.min(left);
        if count == 0 {
            return to.shutdown(Shutdown::Write);
        }
        to.write_all(&buffer[..count])?;
        left -= count;
    }
}

/// Forwards each piece after a fixed delay.
fn pass_late(mut from: &TcpStream, mut to: &TcpStream, pause: Duration) -> io::Result<()> {
    let (sender, pieces) = mpsc::channel::<(Instant, Vec<u8>)>();
    // The sender must be dropped before its receiver is joined.
    thread::scope(move |scope| {
        scope.spawn(move || {
            for (came, piece) in pieces {
                thread::sleep((came + pause).saturating_duration_since(Instant::now()));
                to.write_all(&piece)?;
            }
            to.shutdown(Shutdown::Write)
        });
        let mut buffer = [0; 16 << 10];
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 || sender.send((Instant::now(), buffer[..count].to_vec())).is_err() {
                return Ok(());
            }
        }
    })
}
