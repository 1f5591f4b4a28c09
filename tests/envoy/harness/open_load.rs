//! A load on one or several gateways. Requests are sent at fixed times, independent of the duration
//! of responses.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::Client;
use super::clock::Clock;

/// One request of a load. Its times are microseconds of Unix time.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    pub due: u64,
    pub sent: u64,
    pub received: u64,
    /// The status, or 0 if there was no valid response.
    pub status: u16,
    /// The index of its bytes in the load.
    pub request: usize,
}

impl Hit {
    pub fn wait(&self) -> Duration {
        Duration::from_micros(self.received - self.due)
    }
}

pub struct OpenLoad<'l> {
    /// The port of each gateway. They receive requests in turn.
    pub gateways: &'l [u16],
    /// Requests per second to all gateways together.
    pub rate: u32,
    pub lasting: Duration,
    /// The number of connections to each gateway. A request without a free connection is sent late.
    pub connections: usize,
    /// The bytes of the requests, which are sent in turn.
    pub requests: &'l [Vec<u8>],
}

/// Ends a load, also if a test fails.
struct End<'l>(&'l AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl OpenLoad<'_> {
    /// Sends the load and returns every request, ordered by due time.
    pub fn fire(&self) -> Vec<Hit> {
        self.send_until(&AtomicBool::new(false))
    }

    /// As [`OpenLoad::fire`], but ends when `act` ends.
    pub fn fire_during<T>(&self, act: impl FnOnce() -> T) -> (Vec<Hit>, T) {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let hits = scope.spawn(|| self.send_until(&over));
            let end = End(&over);
            let result = act();
            drop(end);
            (hits.join().unwrap(), result)
        })
    }

    fn send_until(&self, over: &AtomicBool) -> Vec<Hit> {
        let (clock, next) = (Clock::new(), AtomicUsize::new(0));
        let mut hits: Vec<Hit> = thread::scope(|scope| {
            let send = || self.send(&clock, &next, over);
            let senders: Vec<_> = (0..self.connections).map(|_| scope.spawn(send)).collect();
            senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
        });
        hits.sort_by_key(|hit| hit.due);
        hits
    }

    /// Sends one request after the other until the load ends.
    fn send(&self, clock: &Clock, next: &AtomicUsize, over: &AtomicBool) -> Vec<Hit> {
        let mut clients: Vec<Option<Client>> = self.gateways.iter().map(|_| None).collect();
        let mut hits = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let after = Duration::from_secs(1) * u32::try_from(number).unwrap() / self.rate;
            if after >= self.lasting || over.load(Ordering::Relaxed) {
                return hits;
            }
            let gateway = number % self.gateways.len();
            let client = &mut clients[gateway];
            if client.is_none() {
                *client = Client::connect(self.gateways[gateway]).ok();
            }
            let due = clock.start() + after;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let (due, request) = (clock.at(due), number % self.requests.len());
            let sent = clock.now();
            let answer =
                client.as_mut().and_then(|client| client.send(&self.requests[request]).ok());
            let status = answer.map_or(0, |answer| answer.status);
            if status == 0 {
                *client = None;
            }
            hits.push(Hit { due, sent, received: clock.now(), status, request });
        }
    }
}
