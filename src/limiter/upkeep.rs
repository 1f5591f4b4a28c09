//! When the work of a limiter between requests is due.

use std::rc::Rc;

use diana_policy::Metric;
use diana_policy::time::Micros;
use diana_store::slots::Traffic;

/// When upkeep is due. Bans and hot keys are less urgent than the return of leases.
pub(crate) struct Upkeep {
    /// Ticks between two calls.
    pub(crate) tick_interval: Micros,
    /// Ticks between two updates of bans and hot keys; zero if no rule has either.
    update_interval: Micros,
    /// The latest of these updates.
    updated_at: Option<Micros>,
    /// Whether any rule has checked a request.
    pub(crate) serves: bool,
    /// Counters of reads and writes of shared data.
    pub(crate) traffic: Rc<Traffic>,
    /// How rules of scope `global` are counted, as last reported.
    pub(crate) mode: Option<Metric>,
}

impl Upkeep {
    pub(crate) fn new(
        tick_interval: Micros,
        update_interval: Micros,
        traffic: Rc<Traffic>,
    ) -> Upkeep {
        let (updated_at, serves, mode) = (None, false, None);
        Upkeep { tick_interval, update_interval, updated_at, serves, traffic, mode }
    }

    /// Returns true if an update of bans and hot keys is due, and records that it is made.
    pub(crate) fn begin_update(&mut self, now: Micros) -> bool {
        let is_due =
            self.updated_at.is_none_or(|at| now.saturating_sub(at) >= self.update_interval);
        if is_due {
            self.updated_at = Some(now);
        }
        is_due
    }
}
