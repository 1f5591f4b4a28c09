//! A load generator: many connections, each at its own steady pace.

use std::thread;
use std::time::{Duration, Instant};

use super::client::{Client, request};
use super::clock::Clock;

/// One request of a load: when it was due, sent and answered, in microseconds of Unix time, and how.
#[derive(Clone, Copy, Debug)]
pub struct Shot {
    pub due: u64,
    pub sent: u64,
    pub received: u64,
    /// The status, or 0 if there was no proper answer.
    pub status: u16,
    /// Its path, by its place in the load.
    pub path: usize,
}

/// A load on some paths, each of which gets its share.
pub struct Load {
    pub connections: u32,
    /// Requests per second of all connections together.
    pub rate: u32,
    pub seconds: u32,
    pub paths: &'static [&'static str],
}

impl Load {
    /// Sends the load and returns every request, in the order of the answers.
    pub fn fire(&self, port: u16) -> Vec<Shot> {
        let clock = Clock::new();
        let connection = |number| self.connection(port, number, &clock);
        let mut shots: Vec<Shot> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.connections)
                .map(|number| scope.spawn(move || connection(number)))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        shots.sort_by_key(|shot| shot.received);
        shots
    }

    fn connection(&self, port: u16, number: u32, clock: &Clock) -> Vec<Shot> {
        let requests: Vec<_> = self.paths.iter().map(|path| request("GET", path, &[])).collect();
        let mut turns = (0..requests.len()).cycle().skip(number as usize % requests.len());
        let pause = Duration::from_secs(1) * self.connections / self.rate;
        let mut due = clock.start() + pause * number / self.connections;
        let end = clock.start() + Duration::from_secs(self.seconds.into());
        let mut client = Client::connect(port);
        let mut shots = Vec::new();
        while due < end {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let path = turns.next().unwrap();
            let sent = clock.now();
            let answer = client.as_mut().ok().and_then(|client| client.send(&requests[path]).ok());
            let status = answer.map_or(0, |answer| answer.status);
            shots.push(Shot { due: clock.at(due), sent, received: clock.now(), status, path });
            if status == 0 {
                client = Client::connect(port);
            }
            // A late connection does not catch up, or it would send bursts.
            due = (due + pause).max(Instant::now());
        }
        shots
    }
}
