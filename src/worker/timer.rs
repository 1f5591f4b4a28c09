//! Timers: when the host calls a worker again. Without waiting work it does not.
//!
//! Each root has a timer. All work of the worker waits for the timer of the latest root: it makes
//! the calls to Redis when the timer fires, and should exist until their replies arrive. An earlier
//! root ends when its listener has drained, and the replies to its calls would be lost. A root that
//! ends transfers its work.

use std::cell::RefCell;

use diana_policy::time::{Micros, SECOND};

use super::host::Host;

const MILLISECOND: Micros = SECOND / 1000;

/// The timers of all roots of a worker.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    timers: RefCell<Vec<Timer>>,
}

/// The timer of one root, in the host's milliseconds.
#[derive(Debug, Clone, Copy)]
struct Timer {
    root: u32,
    /// The period set in the host. 0 is off.
    period: u32,
    /// The time of the host's next call. Setting a period restarts it, so even a shorter one may
    /// delay the call.
    fires_at: Micros,
    /// The time of work that only this root can do.
    own_work: Option<Micros>,
}

impl Timers {
    /// A root begins.
    pub(crate) fn begin(&self, root: u32) {
        self.change(root, |_| {});
    }

    /// Schedules work of a root that only it can do.
    pub(crate) fn schedule_own_work(&self, root: u32, instant: Micros) {
        self.change(root, |timer| timer.own_work = Some(instant));
    }

    /// Returns true if the work of the worker waits for this root's timer.
    pub(crate) fn is_latest(&self, root: u32) -> bool {
        self.latest().is_none_or(|latest| latest.root == root)
    }

    /// Ensures that the host calls in time for `next`.
    pub(crate) fn schedule(&self, host: &dyn Host, next: impl Fn(Micros) -> Option<Micros>) {
        let timer = self.latest().unwrap_or(Timer::off(host.caller()));
        // Compares with the earliest possible time first, which usually avoids reading the clock.
        let Some(soonest) = timer.next(next(0)) else { return };
        if timer.fires_at <= soonest {
            return;
        }
        self.schedule_root(timer.root, host, &next);
    }

    /// Ensures that the host calls a root in time.
    #[inline(never)]
    fn schedule_root(&self, root: u32, host: &dyn Host, next: &dyn Fn(Micros) -> Option<Micros>) {
        let now = host.monotonic();
        let Some(due) = self.of(root).next(next(now)) else { return };
        if !self.change(root, |timer| timer.ensure_call(due, now, host)) {
            self.remove(root);
            self.schedule(host, next);
        }
    }

    /// Sets the timer for the next work of the root, or for that of `next`. Required on each tick,
    /// since the host's period then restarts.
    pub(crate) fn reset_period(&self, host: &dyn Host, next: impl Fn(Micros) -> Option<Micros>) {
        let root = host.caller();
        let is_latest = self.is_latest(root);
        let (period, now) = self.next_period(root, host, |now| next(now).filter(|_| is_latest));
        self.change(root, |timer| timer.set(period, now, host));
        if !is_latest {
            self.schedule(host, next);
        }
    }

    /// The period until the next work of a root, and the current time.
    fn next_period(
        &self,
        root: u32,
        host: &dyn Host,
        next: impl Fn(Micros) -> Option<Micros>,
    ) -> (u32, Micros) {
        let now = host.monotonic();
        let due = self.of(root).next(next(now));
        (due.map_or(0, |due| milliseconds(due.saturating_sub(now))), now)
    }

    /// A root ends, and the latest of the others takes over its work. Returns false if there is no
    /// other.
    pub(crate) fn end(&self, host: &dyn Host, next: impl Fn(Micros) -> Option<Micros>) -> bool {
        let root = host.caller();
        self.change(root, |timer| timer.set(0, 0, host));
        self.remove(root);
        let others: Vec<u32> = self.timers.borrow().iter().rev().map(|timer| timer.root).collect();
        others.into_iter().any(|heir| {
            // Unconditionally, whatever its current period is.
            let (period, now) = self.next_period(heir, host, &next);
            self.change(heir, |timer| timer.set_period(period, now, host))
        })
    }

    fn latest(&self) -> Option<Timer> {
        self.timers.borrow().last().copied()
    }

    fn remove(&self, root: u32) {
        self.timers.borrow_mut().retain(|timer| timer.root != root);
    }

    fn of(&self, root: u32) -> Timer {
        let timers = self.timers.borrow();
        let known = timers.iter().find(|timer| timer.root == root).copied();
        known.unwrap_or(Timer::off(root))
    }

    fn change<T>(&self, root: u32, change: impl FnOnce(&mut Timer) -> T) -> T {
        let mut timer = self.of(root);
        let done = change(&mut timer);
        let mut timers = self.timers.borrow_mut();
        match timers.iter_mut().find(|known| known.root == root) {
            Some(known) => *known = timer,
            None => timers.push(timer),
        }
        done
    }
}

impl Timer {
    fn off(root: u32) -> Timer {
        Timer { root, period: 0, fires_at: Micros::MAX, own_work: None }
    }

    fn next(&self, of_all: Option<Micros>) -> Option<Micros> {
        [self.own_work, of_all].into_iter().flatten().min()
    }

    /// Ensures a call at `instant`, rounded up to whole milliseconds, or earlier. Returns false if
    /// the host has deleted the root.
    fn ensure_call(&mut self, instant: Micros, now: Micros, host: &dyn Host) -> bool {
        let period = milliseconds(instant.saturating_sub(now));
        later(now, period) >= self.fires_at || self.set(period, now, host)
    }

    fn set(&mut self, period: u32, now: Micros, host: &dyn Host) -> bool {
        if self.period != period {
            return self.set_period(period, now, host);
        }
        if period > 0 {
            self.fires_at = later(now, period);
        }
        true
    }

    fn set_period(&mut self, period: u32, now: Micros, host: &dyn Host) -> bool {
        self.fires_at = if period == 0 { Micros::MAX } else { later(now, period) };
        self.period = period;
        host.set_period(self.root, period)
    }
}

fn later(now: Micros, period: u32) -> Micros {
    now.saturating_add(Micros::from(period) * MILLISECOND)
}

fn milliseconds(ticks: Micros) -> u32 {
    u32::try_from(ticks.div_ceil(MILLISECOND).max(1)).unwrap_or(u32::MAX)
}
