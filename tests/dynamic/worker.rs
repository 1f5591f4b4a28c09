//! A worker of Envoy: one thread with its streams and events. The main thread has some, too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::thread;

use fastrand::Rng;

use crate::gateway::Gateway;
use crate::stream::{self, Outcome, PATHS, Stream};

/// The events of a worker, by any thread: the stream and the number of the event.
pub type Queue = Mutex<VecDeque<(u64, u64)>>;

/// What happened to the requests.
#[derive(Debug, Default)]
pub struct Tally {
    pub passed: usize,
    pub refused: usize,
    /// Clients that left while their request waited.
    pub left: usize,
    pub held: usize,
    /// Passed requests of the rule `exact`.
    pub admitted_exactly: usize,
    /// Passed requests of the rule `grpc` whose status is 16, or whose client left before it.
    pub denied: usize,
}

/// A stream with an odd number is denied.
const DENIED_ID: u64 = 1;

pub struct Worker {
    gateway: &'static Gateway,
    number: usize,
    random: Rng,
    queue: Arc<Queue>,
    streams: BTreeMap<u64, *mut Stream>,
    tally: Tally,
}

impl Worker {
    pub fn new(gateway: &'static Gateway, number: usize, seed: u64) -> Worker {
        Worker {
            gateway,
            number,
            random: Rng::with_seed(seed),
            queue: Arc::default(),
            streams: BTreeMap::new(),
            tally: Tally::default(),
        }
    }

    /// Serves this number of requests, and ends all streams.
    pub fn run(mut self, requests: usize) -> Tally {
        (0..requests as u64).for_each(|id| self.serve(id));
        self.finish()
    }

    /// A request, and some events.
    pub fn serve(&mut self, id: u64) {
        let path = PATHS[self.random.usize(..PATHS.len())];
        self.begin(id, path);
        while self.random.bool() {
            self.turn();
        }
    }

    /// Ends all streams.
    pub fn finish(mut self) -> Tally {
        self.end_all();
        self.tally
    }

    /// Denied calls, one after another, until the rule `grpc` refuses one: of all calls, the last one to end may have returned a
    /// permit after the others were refused.
    pub fn use_up(&mut self) {
        self.end_all();
        let refused = self.tally.refused;
        while self.tally.refused == refused {
            self.serve_alone(DENIED_ID, "/grpc");
        }
    }

    /// A request, until its end.
    pub fn serve_alone(&mut self, id: u64, path: &'static str) {
        self.begin(id, path);
        self.end_all();
    }

    fn end_all(&mut self) {
        while !self.streams.is_empty() {
            self.turn();
            thread::yield_now();
        }
    }

    fn begin(&mut self, id: u64, path: &'static str) {
        let stream =
            Stream::new(self.gateway, id, self.number, path, self.queue.clone(), &mut self.random);
        let stream = Box::into_raw(stream);
        self.streams.insert(id, stream);
        stream::begin(stream);
        // SAFETY: `settle` frees the stream, later.
        self.tally.held += usize::from(unsafe { (*stream).outcome } == Outcome::Open);
    }

    /// An event, or an action of the upstream or of the client of some stream.
    fn turn(&mut self) {
        let event = self.queue.lock().unwrap().pop_front();
        if let Some((id, event)) = event {
            if let Some(stream) = self.streams.get(&id) {
                stream::schedule(*stream, event);
            }
        } else if let Some((_, &stream)) = self.some() {
            // SAFETY: as above.
            let outcome = unsafe { (*stream).outcome };
            let leaves = outcome != Outcome::Open || self.random.u8(..) == 0;
            if outcome == Outcome::Passed && self.random.u8(..4) > 0 {
                stream::respond(stream);
            }
            if leaves {
                stream::end(stream);
            }
        }
        self.settle();
    }

    fn some(&mut self) -> Option<(&u64, &*mut Stream)> {
        let place = self.random.usize(..self.streams.len().max(1));
        self.streams.iter().nth(place)
    }

    /// Counts and frees the streams that have ended.
    fn settle(&mut self) {
        // SAFETY: no hook of the stream follows.
        let has_ended = |stream: &*mut Stream| unsafe { (**stream).has_ended };
        let ended: Vec<u64> =
            self.streams.iter().filter(|(_, it)| has_ended(it)).map(|(id, _)| *id).collect();
        for stream in ended.iter().filter_map(|id| self.streams.remove(id)) {
            let stream = unsafe { Box::from_raw(stream) };
            match stream.outcome {
                Outcome::Open => self.tally.left += 1,
                Outcome::Refused => self.tally.refused += 1,
                Outcome::Passed => self.tally.passed += 1,
            }
            let is_exact = stream.path == "/exact" && stream.outcome == Outcome::Passed;
            self.tally.admitted_exactly += usize::from(is_exact);
            let is_denied =
                stream.path == "/grpc" && stream.outcome == Outcome::Passed && !stream.is_fine;
            self.tally.denied += usize::from(is_denied);
        }
    }
}
