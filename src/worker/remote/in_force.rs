//! The documents that the workers of this process use, and how many gateways there are.
//!
//! A poll names the document that all workers use, and never a newer one: the entry of a worker that
//! does not run stays until its next tick. An entry is dropped only if its worker does not confirm it
//! for a minute after a new worker has started: that worker ended without a call of the host, and the
//! new one replaces it.

use diana_policy::gateways::{GatewayCount, MOST_GATEWAYS};
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;

/// How long a worker may stay silent after a new one has come.
pub const SILENT: Micros = 60 * SECOND;

/// How long a record that has just begun may lack workers.
pub const YOUNG: Micros = SECOND;

/// Lost writes in a row before an update is given up until the next tick.
const ATTEMPTS: usize = 100;

/// The record in shared data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InForce {
    /// When its first worker came.
    begun: Micros,
    /// The gateways that share the limits of the fleet, as the configuration server reports.
    pub gateways: GatewayCount,
    workers: Vec<WorkerDocument>,
}

/// The document of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WorkerDocument {
    /// Identifies the worker.
    worker: u64,
    /// The version of its document; 0 is none.
    version: u64,
    /// Since when it has this one; 0 if it came with an older one.
    since: Micros,
    /// Since when it is to confirm that it is there; 0 if it has.
    asked: Micros,
}

impl InForce {
    /// Reads the record.
    pub fn read(data: &dyn SharedData, key: &str) -> InForce {
        InForce::of(&words::read_all(data, key).0)
    }

    /// Updates the record. Returns it as written, or with the change if all attempts failed.
    pub fn update(data: &dyn SharedData, key: &str, change: &dyn Fn(&mut InForce)) -> InForce {
        let mut record = InForce::default();
        for _ in 0..ATTEMPTS {
            let (words, number) = words::read_all(data, key);
            record = InForce::of(&words);
            change(&mut record);
            let changed = record.words();
            if changed == words || words::write_all(&changed, data, key, number) {
                break;
            }
        }
        record
    }

    /// Sets the document of a worker, which comes if it has no entry yet. `newest` is the version
    /// that the server has, as far as the gateway knows.
    pub fn set(&mut self, worker: u64, version: u64, newest: u64, now: Micros) {
        let is_silent = |it: &WorkerDocument| {
            it.asked != 0 && !(it.asked..it.asked.saturating_add(SILENT)).contains(&now)
        };
        self.workers.retain(|it| it.worker == worker || !is_silent(it));
        if let Some(own) = self.workers.iter_mut().find(|it| it.worker == worker) {
            if own.version != version {
                (own.version, own.since) = (version, now);
            }
            own.asked = 0;
            return;
        }
        if self.workers.is_empty() {
            self.begun = now;
        }
        for other in self.workers.iter_mut().filter(|it| it.asked == 0) {
            other.asked = now.max(1);
        }
        let since = if version == newest { now } else { 0 };
        self.workers.push(WorkerDocument { worker, version, since, asked: 0 });
    }

    /// Removes a worker.
    pub fn remove(&mut self, worker: u64) {
        self.workers.retain(|it| it.worker != worker);
    }

    /// The version of the document that all workers use: the oldest one while they differ.
    /// 0 if a worker has none, or if the record may lack workers.
    #[must_use]
    pub fn version(&self, newest: u64, now: Micros) -> u64 {
        let is_young = (self.begun..self.begun.saturating_add(YOUNG)).contains(&now);
        if is_young || self.workers.iter().any(|it| it.version == 0) {
            return 0;
        }
        let is_old = |it: &&WorkerDocument| it.version != newest;
        let oldest = self.workers.iter().filter(is_old).min_by_key(|it| it.since);
        let any = self.workers.first();
        oldest.or(any).map_or(0, |it| it.version)
    }

    fn of(words: &[u64]) -> InForce {
        let Some(([begun, known, since, fewer], rest)) = words.split_first_chunk() else {
            return InForce::default();
        };
        let (workers, rest) = rest.as_chunks();
        // Corrupt words count as an empty record.
        if !rest.is_empty() || *known > MOST_GATEWAYS {
            return InForce::default();
        }
        let worker = |[worker, version, since, asked]: &[u64; 4]| WorkerDocument {
            worker: *worker,
            version: *version,
            since: *since,
            asked: *asked,
        };
        InForce {
            begun: *begun,
            gateways: GatewayCount::of([*known, *since, *fewer]),
            workers: workers.iter().map(worker).collect(),
        }
    }

    fn words(&self) -> Vec<u64> {
        let mut words = vec![self.begun];
        words.extend(self.gateways.words());
        for WorkerDocument { worker, version, since, asked } in &self.workers {
            words.extend([*worker, *version, *since, *asked]);
        }
        words
    }
}
