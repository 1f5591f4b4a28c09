//! What an instance does from time to time, and how it comes to an end.

use super::Instance;
use crate::host::{Host, Level};
use diana_policy::time::{Micros, SECOND};

/// How long no request may have come before an instance is closed that may have been replaced: a listener may
/// drain for many minutes. What a worker knows without asking is older than any use by then.
const QUIET: Micros = 2 * SECOND;

impl Instance {
    /// It judges, and has to be kept up from now on. Whether that is new.
    #[inline(always)]
    pub(crate) fn open(&self, host: &dyn Host) -> bool {
        self.closed.set(false);
        self.busy.set(true);
        self.upkeep.get().is_none() && self.begin_upkeep(host)
    }

    /// Sees to it that upkeep is due, unless everything has been handed in. Whether that is new.
    pub(crate) fn begin_upkeep(&self, host: &dyn Host) -> bool {
        let is_new = self.upkeep.get().is_none() && !self.closed.get();
        if is_new {
            self.upkeep.set(Some(host.monotonic().saturating_add(self.interval)));
        }
        is_new
    }

    /// Does what has to be done from time to time, if it is due.
    pub(crate) fn keep_up(&self, host: &dyn Host) {
        let Some(due) = self.upkeep.get() else { return };
        let now = self.now(host);
        if now.mono < due {
            return;
        }
        if self.busy.replace(false) {
            self.used.set(now.mono);
        }
        let Ok(mut engine) = self.engine.try_borrow_mut() else { return };
        let more = engine.tidy(now);
        engine.flush(&self.namespace, host);
        while let Some(callers) = engine.hot_callers() {
            host.log(Level::Info, &callers.line());
        }
        drop(engine);
        let quiet_at = self.used.get().saturating_add(QUIET);
        if self.is_old.get() && !more && now.mono >= quiet_at {
            return self.close(host);
        }
        let goes_on = more || self.is_old.get();
        self.upkeep.set(goes_on.then(|| now.mono.saturating_add(self.interval)));
    }

    /// Another one of its namespace has come: it may be that one that gets the requests from now on.
    pub(crate) fn age(&self, host: &dyn Host) {
        self.is_old.set(true);
        self.begin_upkeep(host);
    }

    /// Hands in what it holds and what it counted, if that is still to be done: hardly any request comes any more.
    pub(crate) fn close(&self, host: &dyn Host) {
        if self.closed.get() {
            return;
        }
        let Ok(mut engine) = self.engine.try_borrow_mut() else { return self.need_no_redis() };
        engine.retire(&self.namespace, self.now(host), host);
        let holds_places = engine.holds_places();
        drop(engine);
        // Whoever is under way keeps its place only as long as somebody says so.
        self.upkeep.set(holds_places.then(|| host.monotonic().saturating_add(self.interval)));
        self.closed.set(!holds_places);
        if !holds_places {
            self.need_no_redis();
        }
    }

    /// Tells the limits of its rules, or that they are no longer in force.
    pub(crate) fn tell_limits(&self, in_force: bool, host: &dyn Host) {
        let engine = self.engine.try_borrow();
        engine.into_iter().for_each(|it| it.tell_limits(&self.namespace, in_force, host));
    }

    /// It waits for nothing that a Redis would be good for which is away.
    fn need_no_redis(&self) {
        self.engine.try_borrow_mut().into_iter().for_each(|mut engine| engine.need_no_redis());
    }

    /// What another one has not settled that has ended is this one's to settle, if it goes by the same Redis. Whether it
    /// does.
    pub(crate) fn inherit(&self, other: &Instance, host: &dyn Host) -> bool {
        other.close(host);
        let Ok(mut left) = other.engine.try_borrow_mut() else { return false };
        self.engine.try_borrow_mut().is_ok_and(|mut engine| engine.inherit(&mut left))
    }

    /// Whether an instance that nobody has any more has brought everything to an end.
    pub(crate) fn is_over(&self, host: &dyn Host) -> bool {
        self.close(host);
        self.need_no_redis();
        self.next(Micros::MAX).is_none()
    }
}
