//! A connection with accounts of its own, which come in turn as chance will have it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::harness::{Clock, Http2, Outcome};

/// Accounts of a connection.
pub const ACCOUNTS: u16 = 2_000;

/// Requests that are sent at once.
const BATCH: u32 = 25;

/// A request: whose it was, when it was sent and answered in microseconds, and whether it was admitted.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub account: u16,
    pub sent: u64,
    pub received: u64,
    pub admitted: bool,
}

/// A client on one connection.
pub struct Caller {
    number: u32,
    client: Http2,
}

impl Caller {
    pub fn connect(port: u16) -> Caller {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Caller { number, client: Http2::connect(port).unwrap() }
    }

    /// Calls so often in a second, and tells of all requests in their order.
    pub fn call(mut self, rate: u32, clock: &Clock, over: &AtomicBool) -> Vec<Event> {
        let mut rng = Rng::with_seed(self.number.into());
        let pause = Duration::from_secs(1) * BATCH / rate;
        let mut due = Instant::now() + pause * self.number / 16;
        let mut events = Vec::new();
        while !over.load(Ordering::Relaxed) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            self.batch(&mut rng, clock, &mut events);
            // Who is late does not catch up.
            due = (due + pause).max(Instant::now());
        }
        events
    }

    fn batch(&mut self, rng: &mut Rng, clock: &Clock, events: &mut Vec<Event>) {
        let first = events.len();
        let mut streams = Vec::new();
        let sent = clock.now();
        for _ in 0..BATCH {
            let account = rng.u16(0..ACCOUNTS);
            let name = format!("{}-{account}", self.number);
            streams.push(self.client.request("/", &[("x-account-id", &name)], None));
            events.push(Event { account, sent, received: 0, admitted: false });
        }
        self.client.flush().unwrap();
        for _ in 0..BATCH {
            let (stream, outcome) = self.client.answer().unwrap();
            assert_ne!(outcome, Outcome::Reset);
            let place = streams.iter().position(|known| *known == stream).unwrap();
            let event = &mut events[first + place];
            (event.received, event.admitted) = (clock.now(), outcome == Outcome::Ok);
        }
    }
}
