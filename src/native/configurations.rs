//! The configurations of this process, and what Envoy's main thread is to do with them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use diana_policy::Switches;

use crate::abi::ConfigScheduler;
use crate::password::Password;

/// The first number of a root. Streams have smaller ones.
pub(crate) const FIRST_ROOT: u32 = 1 << 31;

/// The event by which the main thread makes calls and reports metrics.
pub(crate) const WORK: u64 = 0;

/// The event by which it looks at what operators change without an update.
pub(crate) const LOOK: u64 = 1;

/// A configuration in this process.
pub(crate) struct Configuration {
    /// The number of its roots.
    pub(crate) number: u32,
    pub(crate) name: Vec<u8>,
    pub(crate) text: Vec<u8>,
    pub(crate) namespace: String,
    pub(crate) switches: Switches,
    pub(crate) password: Password,
    pub(crate) scheduler: ConfigScheduler,
}

/// The configurations of this process.
#[derive(Default)]
pub(crate) struct Configurations {
    /// All of them, the latest last.
    known: Mutex<Vec<Configuration>>,
    /// How many there have been.
    count: AtomicU32,
}

impl Configurations {
    pub(crate) fn known(&self) -> MutexGuard<'_, Vec<Configuration>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the roots of a new configuration.
    pub(crate) fn new_number(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed) | FIRST_ROOT
    }

    /// The number, the name and the text of each configuration.
    pub(crate) fn all(&self) -> Vec<(u32, Vec<u8>, Vec<u8>)> {
        self.known().iter().map(|it| (it.number, it.name.clone(), it.text.clone())).collect()
    }

    /// The switches for a configuration.
    pub(crate) fn switches(&self, number: u32) -> Switches {
        let known = self.known();
        known.iter().find(|it| it.number == number).map(|it| it.switches).unwrap_or_default()
    }

    /// The password of Redis in a secret of Envoy.
    pub(crate) fn password(&self, number: u32) -> Option<String> {
        let known = self.known();
        known.iter().find(|it| it.number == number).and_then(|it| it.password.value())
    }

    /// Makes the main thread call a configuration. Returns false if it has ended.
    pub(crate) fn schedule(&self, number: u32) -> bool {
        let known = self.known();
        let found = known.iter().find(|it| it.number == number);
        found.is_some_and(|it| {
            it.scheduler.commit(WORK);
            true
        })
    }

    /// Makes the main thread look at what operators change without an update.
    pub(crate) fn schedule_look(&self) {
        self.known().iter().for_each(|it| it.scheduler.commit(LOOK));
    }

    /// Makes the main thread report metrics.
    pub(crate) fn schedule_metrics(&self) {
        if let Some(latest) = self.known().last() {
            latest.scheduler.commit(WORK);
        }
    }
}
