//! The roots that this process ever configured. Filters of several roots may be in one chain, also in
//! different VMs, and a later one keeps the entries of an earlier one in the access log. To look for them
//! costs 4 % of a refusal, so a process with one root does not.

use std::cell::Cell;

use super::host::Host;
use diana_policy::key::KeyHasher;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;

/// The record in shared data: a hash of the only root, or [`SEVERAL`].
const KEY: &str = "diana/2/roots";
const SEVERAL: u64 = u64::MAX;

/// Time until a worker reads the record again: another VM may have configured another root.
const STALE: Micros = 10 * SECOND;

/// Lost compare-and-swaps in a row before the record is left to the other workers.
const ATTEMPTS: usize = 8;

/// The record as a worker last read it.
#[derive(Default)]
pub(crate) struct ProcessRoots {
    is_one: Cell<bool>,
    read_at: Cell<Micros>,
    /// Whether a root was added since. The record is read before the first verdict after that, when all
    /// filters of the chain are configured.
    is_outdated: Cell<bool>,
}

impl ProcessRoots {
    /// Adds a root to the record.
    pub(crate) fn add(&self, root_id: &str, data: &dyn SharedData) {
        let mut hasher = KeyHasher::public();
        hasher.part(0, root_id.as_bytes());
        let own = hasher.finish().hash.clamp(1, SEVERAL - 1);
        for _ in 0..ATTEMPTS {
            let ([known], number) = words::read::<1>(data, KEY);
            let new = if known == 0 || known == own { own } else { SEVERAL };
            if new == known || words::write([new], data, KEY, number) {
                break;
            }
        }
        self.is_outdated.set(true);
    }

    /// Reads the record if a root was added since the last time.
    #[inline]
    pub(crate) fn update(&self, host: &dyn Host) {
        if self.is_outdated.get() {
            self.read(host);
        }
    }

    /// Reads the record if the copy is old.
    pub(crate) fn refresh(&self, host: &dyn Host) {
        if host.monotonic().saturating_sub(self.read_at.get()) >= STALE {
            self.read(host);
        }
    }

    #[inline(never)]
    fn read(&self, host: &dyn Host) {
        let ([known], _) = words::read::<1>(&*host.data(), KEY);
        self.is_one.set(known != 0 && known != SEVERAL);
        self.read_at.set(host.monotonic());
        self.is_outdated.set(false);
    }

    /// Returns true if the process has one root.
    pub(crate) fn is_one(&self) -> bool {
        self.is_one.get()
    }
}
