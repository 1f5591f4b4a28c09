//! Workers that receive requests, and an oracle for all of them.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use diana_policy::Hot;
use diana_policy::key::Key;
use diana_policy::time::{Micros, SECOND};
use diana_store::hot::spotter::{Spotter, Storage};
use fastrand::Rng;
use kit::fake::FakeSharedData;

/// The interval at which workers add up their counts, and its maximum delay.
const PACE: Micros = SECOND / 10;
const LATE: Micros = SECOND / 100;

pub const OVER: u64 = 500;
pub const PER: Micros = 10 * SECOND;

/// A log line of a worker.
#[derive(Debug, Clone)]
pub struct List {
    /// Maximum error by which a count is too low.
    pub missed: u64,
    /// Keys and their counts.
    pub top: Vec<(u64, u64)>,
}

impl List {
    fn read(line: &str) -> List {
        let field = |name: &str| {
            let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
            fields.find(|field| field.0 == name).expect(line).1
        };
        let top = field("top").split(',').map(|pair| {
            let (hash, count) = pair.split_once(':').expect(line);
            let key = u128::from_str_radix(hash, 16).expect(line);
            let hash = (key >> 64) as u64;
            assert_eq!(key, u128::from(hash) << 64 | u128::from(!hash), "both halves: {line}");
            (hash, count.parse().expect(line))
        });
        List { missed: field("missed").parse().expect(line), top: top.collect() }
    }
}

/// The key with this first half.
pub fn whole(hash: u64) -> Key {
    Key { hash, second_hash: !hash }
}

/// Workers, and the requests of each key.
pub struct Workers {
    rng: Rng,
    now: Micros,
    workers: Vec<(Spotter, Micros)>,
    past: HashMap<u64, VecDeque<Micros>>,
    /// The last list, and the requests so far.
    pub list: Option<List>,
    pub requests: u64,
    /// The maximum error of a count, and the instants of lists.
    pub missed: u64,
    pub reported: Vec<Micros>,
    /// The keys that were hot at any time.
    hot: HashMap<u64, ()>,
}

pub fn hot() -> Hot {
    Hot { over: OVER, per: PER, header: None, top: 100, reveal: false }
}

impl Workers {
    /// A single worker, or several with shared counts.
    pub fn new(seed: u64, workers: usize) -> Workers {
        let (mut rng, data) = (Rng::with_seed(seed), Rc::new(FakeSharedData::default()));
        let now = 1_000 * SECOND + rng.u64(0..PER);
        let place = || match workers {
            1 => Storage::Worker,
            _ => Storage::Gateway(data.clone(), "hot".into()),
        };
        let workers = (0..workers)
            .map(|_| (Spotter::new(hot(), place(), None), now + rng.u64(0..PACE)))
            .collect();
        let (past, hot, reported) = (HashMap::new(), HashMap::new(), Vec::new());
        Workers { rng, now, workers, past, list: None, requests: 0, missed: 0, reported, hot }
    }

    /// A request in a random worker. Callers with a single request need not be remembered.
    pub fn see(&mut self, key: u64, remember: bool) {
        self.requests += 1;
        let worker = self.rng.usize(0..self.workers.len());
        self.workers[worker].0.count(whole(key));
        if remember {
            self.past.entry(key).or_default().push_back(self.now);
        }
    }

    /// Advances the clock, and workers add up their counts.
    pub fn pass(&mut self, ticks: Micros) {
        let end = self.now + ticks;
        while let Some(next) = (0..self.workers.len()).min_by_key(|&worker| self.workers[worker].1)
            && self.workers[next].1 <= end
        {
            self.now = self.workers[next].1;
            self.workers[next].1 = self.now + PACE + self.rng.u64(0..LATE);
            self.workers[next].0.maintain(self.now);
            if let Some(list) = self.workers[next].0.list.take() {
                let list = List::read(&list);
                self.reported.push(self.now);
                self.missed = self.missed.max(list.missed);
                self.list = Some(list);
            }
            self.verify(next);
        }
        self.now = end;
    }

    /// Every key that is certainly hot is marked, and no other.
    fn verify(&mut self, worker: usize) {
        let now = self.now;
        let longest = PER * 6 / 5 + PACE + LATE;
        for (key, past) in &mut self.past {
            while past.front().is_some_and(|at| *at + longest < now) {
                past.pop_front();
            }
            let recent = |at: &&Micros| **at + PER > now && **at + PACE + LATE <= now;
            let surely = past.iter().filter(recent).count() as u64;
            let perhaps = past.len() as u64;
            let is_hot = self.workers[worker].0.is_hot(*key);
            if surely > 2 * OVER {
                assert!(is_hot, "{surely} requests and not marked at {now}");
            }
            if is_hot {
                assert!(perhaps > OVER, "marked after {perhaps} requests at {now}");
                self.hot.insert(*key, ());
            }
        }
    }

    /// The number of keys that were hot at any time.
    pub fn hot_keys(&self) -> usize {
        self.hot.len()
    }

    /// Returns true if no worker knows a hot key.
    pub fn is_calm(&mut self) -> bool {
        self.workers.iter().all(|worker| worker.0.is_calm())
    }
}
