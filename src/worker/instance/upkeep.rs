//! The periodic work of an instance, and its end.

use super::Instance;
use crate::host::{Host, Level};
use crate::redis::RedisConnection;
use diana_policy::Metric;
use diana_policy::time::{Micros, SECOND};

/// Time without requests after which a possibly replaced instance is closed, since a listener may
/// drain for many minutes. The worker's leases and remembered refusals have expired by then.
const QUIET: Micros = 2 * SECOND;

/// Maximum number of waits that are recorded at once.
const MOST_WAITS: usize = 64;

impl Instance {
    /// Counts a request, which makes upkeep necessary. Returns true if upkeep was not scheduled
    /// before.
    #[inline(always)]
    pub(crate) fn record_request(&self, host: &dyn Host) -> bool {
        self.requests.set(self.requests.get().wrapping_add(1));
        self.next_maintenance.get().is_none() && self.reopen(host)
    }

    /// Records a change of the charges of a request, which makes upkeep necessary.
    #[inline(always)]
    pub(crate) fn record_activity(&self, host: &dyn Host) {
        self.busy.set(true);
        if self.next_maintenance.get().is_none() {
            self.reopen(host);
        }
    }

    /// Schedules upkeep, also of an instance that was closed: a closed one has none.
    #[inline(never)]
    fn reopen(&self, host: &dyn Host) -> bool {
        self.closed.set(false);
        self.schedule_maintenance(host)
    }

    /// Schedules upkeep, unless the instance is closed. Returns true if it was not scheduled
    /// before.
    pub(crate) fn schedule_maintenance(&self, host: &dyn Host) -> bool {
        let is_new = self.next_maintenance.get().is_none() && !self.closed.get();
        if is_new {
            self.next_maintenance.set(Some(host.monotonic().saturating_add(self.interval)));
        }
        is_new
    }

    /// Does the periodic work, if it is due.
    pub(crate) fn maintain(&self, host: &dyn Host) {
        let Some(due) = self.next_maintenance.get() else { return };
        let now = self.now(host);
        if now.mono < due {
            return;
        }
        if self.busy.replace(false) || self.requests.get() > 0 {
            self.last_used.set(now.mono);
        }
        let Ok(mut limiter) = self.limiter.try_borrow_mut() else { return };
        let more = limiter.maintain(now);
        let warn = |line: &str| host.log(Level::Warn, line);
        // Before the flush, which resets the number of requests.
        let (requests, data) = (self.requests.get(), host.data());
        limiter.unused_entries(&self.namespace, requests, (&*data, host), &warn);
        limiter.flush(&self.namespace, host);
        self.flush_requests(host);
        while let Some(callers) = limiter.hot_callers() {
            host.log(Level::Info, &callers.line());
        }
        limiter.rounded_callers(&self.namespace, &*data, &warn);
        let waits = limiter.missing_sources(&self.namespace, &*data, &warn);
        drop(limiter);
        let quiet_at = self.last_used.get().saturating_add(QUIET);
        if self.is_replaced.get() && !more && now.mono >= quiet_at {
            return self.close(host);
        }
        let stays_active = more || waits || self.is_replaced.get();
        self.next_maintenance.set(stays_active.then(|| now.mono.saturating_add(self.interval)));
    }

    /// Reports the counts of its rules since the last flush.
    pub fn flush(&self, host: &dyn Host) {
        self.with_limiter(host, |limiter| limiter.flush(&self.namespace, host));
        self.flush_requests(host);
    }

    /// Reports the number of requests that it saw since the last flush, and their waits.
    fn flush_requests(&self, host: &dyn Host) {
        let requests = self.requests.take();
        if requests > 0 {
            host.add(Metric::Requests, &[&self.namespace], requests.cast_signed());
        }
        self.flush_waits(&mut self.waits.borrow_mut(), host);
    }

    /// Records how many ticks a request waited for Redis.
    pub(crate) fn record_wait(&self, ticks: Micros, host: &dyn Host) {
        let mut waits = self.waits.borrow_mut();
        waits.push(ticks);
        if waits.len() >= MOST_WAITS {
            self.flush_waits(&mut waits, host);
        }
    }

    fn flush_waits(&self, waits: &mut Vec<Micros>, host: &dyn Host) {
        if !waits.is_empty() {
            host.record(Metric::FleetWait, &[&self.namespace], waits);
            waits.clear();
        }
    }

    /// A later instance of its namespace exists, and may receive all further requests.
    pub(crate) fn mark_replaced(&self, host: &dyn Host) {
        self.is_replaced.set(true);
        self.schedule_maintenance(host);
    }

    /// Returns its leases and reports its counts, unless that has been done. Few further requests
    /// are expected.
    pub(crate) fn close(&self, host: &dyn Host) {
        if self.closed.get() {
            return;
        }
        let Ok(mut limiter) = self.limiter.try_borrow_mut() else { return self.stop_probing() };
        limiter.retire(&self.namespace, self.now(host), host);
        self.flush_requests(host);
        let holds_slots = limiter.holds_slots();
        drop(limiter);
        // In-flight slots of open requests must be renewed until they end.
        self.next_maintenance
            .set(holds_slots.then(|| host.monotonic().saturating_add(self.interval)));
        self.closed.set(!holds_slots);
        if !holds_slots {
            self.stop_probing();
        }
    }

    /// Sets the metrics with its document and the limits of its rules. `in_force` is false when the
    /// rules no longer apply.
    pub(crate) fn report_limits(&self, in_force: bool, host: &dyn Host) {
        let document = if in_force { self.checksum } else { 0 };
        host.set(Metric::Document, &[&self.namespace], document.into());
        let limiter = self.limiter.try_borrow();
        limiter.into_iter().for_each(|it| it.report_limits(&self.namespace, in_force, host));
    }

    /// Stops probing Redis: no rule of this instance needs it.
    fn stop_probing(&self) {
        self.redis.iter().for_each(RedisConnection::stop_probing);
    }

    /// Takes over the open settlements of an instance that has ended. Returns false if it uses
    /// another Redis.
    pub(crate) fn inherit(&self, other: &Instance, host: &dyn Host) -> bool {
        other.close(host);
        self.redis.as_ref().zip(other.redis.as_ref()).is_some_and(|(own, left)| own.inherit(left))
    }

    /// Closes an instance without root and streams. Returns true if it has no work left.
    pub(crate) fn is_finished(&self, host: &dyn Host) -> bool {
        self.close(host);
        self.stop_probing();
        self.next(Micros::MAX).is_none()
    }
}
