//! A load that comes when it comes, however long answers take, on several gateways.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::Client;
use super::clock::Clock;
use super::load::Shot;

/// One request of a load.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// The gateway that it went to, by its place in the load.
    pub gateway: usize,
    /// What became of it. Its path is its request, by its place in the load.
    pub shot: Shot,
}

impl Hit {
    pub fn wait(&self) -> Duration {
        Duration::from_micros(self.shot.received - self.shot.due)
    }
}

/// A load on some gateways.
pub struct OpenLoad<'l> {
    /// The port of each gateway, and its share.
    pub gateways: &'l [(u16, u32)],
    /// Requests per second, on all gateways together.
    pub rate: u32,
    pub lasting: Duration,
    /// How many requests can wait at once; whoever comes while so many do is sent late.
    pub patience: usize,
    /// The bytes of each request, which take turns.
    pub requests: &'l [Vec<u8>],
}

/// Ends a load, also if a test fails meanwhile.
struct End<'l>(&'l AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl OpenLoad<'_> {
    /// Sends the load and returns every request, in the order in which they were due.
    pub fn fire(&self) -> Vec<Hit> {
        self.send_until(&AtomicBool::new(false))
    }

    /// As [`OpenLoad::fire`], but ends with an act if that is earlier.
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
        let turns = self.turns();
        let (clock, next) = (Clock::new(), AtomicUsize::new(0));
        let mut hits: Vec<Hit> = thread::scope(|scope| {
            let senders: Vec<_> = (0..self.patience)
                .map(|_| scope.spawn(|| self.send(&clock, &next, &turns, over)))
                .collect();
            senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
        });
        hits.sort_by_key(|hit| hit.shot.due);
        hits
    }

    /// Takes whatever is due next, until nothing is left.
    fn send(
        &self,
        clock: &Clock,
        next: &AtomicUsize,
        turns: &[usize],
        over: &AtomicBool,
    ) -> Vec<Hit> {
        let mut clients: Vec<Option<Client>> = self.gateways.iter().map(|_| None).collect();
        let mut hits = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let after = Duration::from_secs(1) * u32::try_from(number).unwrap() / self.rate;
            if after >= self.lasting || over.load(Ordering::Relaxed) {
                return hits;
            }
            let gateway = turns[number % turns.len()];
            let client = &mut clients[gateway];
            if client.is_none() {
                *client = Client::connect(self.gateways[gateway].0).ok();
            }
            let due = clock.start() + after;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let (due, path) = (clock.at(due), number % self.requests.len());
            let sent = clock.now();
            let answer = client.as_mut().and_then(|client| client.send(&self.requests[path]).ok());
            let status = answer.map_or(0, |answer| answer.status);
            if status == 0 {
                *client = None;
            }
            let shot = Shot { due, sent, received: clock.now(), status, path };
            hits.push(Hit { gateway, shot });
        }
    }

    /// Whose turn it is: each gateway as often as its share says, and as evenly as can be.
    fn turns(&self) -> Vec<usize> {
        let all: u32 = self.gateways.iter().map(|(_, share)| share).sum();
        let mut lag = vec![0_i64; self.gateways.len()];
        let turn = |_| {
            for (lag, (_, share)) in lag.iter_mut().zip(self.gateways) {
                *lag += i64::from(*share);
            }
            let most = (0..lag.len()).max_by_key(|gateway| lag[*gateway]).unwrap();
            lag[most] -= i64::from(all);
            most
        };
        (0..all).map(turn).collect()
    }
}
