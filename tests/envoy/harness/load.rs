//! A load generator: many connections, each at its own steady pace.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::client::{Client, request};

/// One request of a load: when it was sent and answered, in microseconds of Unix time, and how.
#[derive(Clone, Copy, Debug)]
pub struct Shot {
    pub sent: u64,
    pub received: u64,
    /// The status, or 0 if there was no proper answer.
    pub status: u16,
}

/// A load on one path.
pub struct Load {
    pub connections: u32,
    /// Requests per second of all connections together.
    pub rate: u32,
    pub seconds: u32,
    pub path: &'static str,
}

/// Held by tests that measure under load, so that they run one at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOAD: Mutex<()> = Mutex::new(());
    LOAD.lock().unwrap_or_else(PoisonError::into_inner)
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
        let bytes = request("GET", self.path, &[]);
        let pause = Duration::from_secs(1) * self.connections / self.rate;
        let mut due = clock.start + pause * number / self.connections;
        let end = clock.start + Duration::from_secs(self.seconds.into());
        let mut client = Client::connect(port);
        let mut shots = Vec::new();
        while due < end {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let sent = clock.now();
            let answer = client.as_mut().ok().and_then(|client| client.send(&bytes).ok());
            let status = answer.map_or(0, |answer| answer.status);
            shots.push(Shot { sent, received: clock.now(), status });
            if status == 0 {
                client = Client::connect(port);
            }
            // A late connection does not catch up, or it would send bursts.
            due = (due + pause).max(Instant::now());
        }
        shots
    }
}

/// Steady time, counted from the wall clock's at the start.
struct Clock {
    start: Instant,
    wall: u64,
}

impl Clock {
    fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Self { start: Instant::now(), wall: wall.as_micros().try_into().unwrap() }
    }

    fn now(&self) -> u64 {
        let passed: u64 = self.start.elapsed().as_micros().try_into().unwrap();
        self.wall + passed
    }
}
