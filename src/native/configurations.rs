//! The configurations of this process, and what Envoy's main thread is to do with them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use diana_policy::Switches;

use crate::abi::ConfigScheduler;
use crate::password::Password;

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

/// All configurations, the latest last.
pub(crate) fn known() -> MutexGuard<'static, Vec<Configuration>> {
    static KNOWN: Mutex<Vec<Configuration>> = Mutex::new(Vec::new());
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number, the name and the text of each configuration.
pub(crate) fn all() -> Vec<(u32, Vec<u8>, Vec<u8>)> {
    known().iter().map(|it| (it.number, it.name.clone(), it.text.clone())).collect()
}

/// The switches for a configuration.
pub(crate) fn switches(number: u32) -> Switches {
    let known = known();
    known.iter().find(|it| it.number == number).map(|it| it.switches).unwrap_or_default()
}

/// The password of Redis in a secret of Envoy.
pub(crate) fn password(number: u32) -> Option<String> {
    let known = known();
    known.iter().find(|it| it.number == number).and_then(|it| it.password.value())
}

/// Makes the main thread call a configuration. Returns false if it has ended.
pub(crate) fn schedule(number: u32) -> bool {
    let known = known();
    let found = known.iter().find(|it| it.number == number);
    found.is_some_and(|it| {
        it.scheduler.commit(WORK);
        true
    })
}

/// Makes the main thread look at what operators change without an update.
pub(crate) fn schedule_look() {
    known().iter().for_each(|it| it.scheduler.commit(LOOK));
}

/// Makes the main thread report metrics.
pub(crate) fn schedule_metrics() {
    if let Some(latest) = known().last() {
        latest.scheduler.commit(WORK);
    }
}
