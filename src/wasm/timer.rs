//! When this VM is called again: as often as something waits in it, and not at all when nothing does.
//!
//! Each root has a timer of its own, and the host sets that of the root that it is calling about. Since
//! every tick does what is due for the whole VM, whichever root is called sees to it that it is called
//! again in time for whatever waits by then. A root that ends hands this on to another one.

use std::cell::RefCell;

use super::abi;
use diana_core::time::{Micros, SECOND};

const MILLISECOND: Micros = SECOND / 1000;

thread_local! {
    static TIMERS: RefCell<Vec<Timer>> = const { RefCell::new(Vec::new()) };
}

/// The timer of one root, in the host's milliseconds.
#[derive(Debug, Clone, Copy)]
struct Timer {
    root: u32,
    /// The period that the host was told; 0 is off.
    period: u32,
    /// When the host calls the next time. To tell it a period puts that off, however short it is.
    fires: Micros,
    /// When the root is due for what no other can do in its place.
    own: Option<Micros>,
}

/// A root begins.
pub(super) fn begin(root: u32) {
    change(root, |_| {});
}

/// A root comes back at `instant` for what only it can do.
pub(super) fn own(root: u32, instant: Micros) {
    change(root, |timer| timer.own = Some(instant));
}

/// Sees to it that the host calls in time for what `next` says. Called about `root`, as whatever is here.
pub(super) fn settle(root: u32, next: impl Fn(Micros) -> Option<Micros>) {
    // By the earliest instant that could be meant, which mostly spares the look at the clock.
    let Some(soonest) = of(root).next(next(0)) else { return };
    if of(root).fires <= soonest {
        return;
    }
    let now = abi::monotonic();
    if let Some(due) = of(root).next(next(now)) {
        change(root, |timer| timer.wake(due, now));
    }
}

/// Waits for what is due next, on the root's own account or by `next`. To be done on each tick, after
/// which the host's period begins anew.
pub(super) fn rest(root: u32, next: impl Fn(Micros) -> Option<Micros>) {
    let (period, now) = pause(root, next);
    change(root, |timer| timer.set(period, now));
}

/// The period after which something is due for a root, and now.
fn pause(root: u32, next: impl Fn(Micros) -> Option<Micros>) -> (u32, Micros) {
    let now = abi::monotonic();
    let due = of(root).next(next(now));
    (due.map_or(0, |due| milliseconds(due.saturating_sub(now))), now)
}

/// A root ends; the latest of the others takes over what it would have come back for. Whether there is
/// another one.
pub(super) fn end(root: u32, next: impl Fn(Micros) -> Option<Micros>) -> bool {
    change(root, |timer| timer.set(0, 0));
    let others: Vec<u32> = TIMERS.with_borrow_mut(|timers| {
        timers.retain(|timer| timer.root != root);
        timers.iter().rev().map(|timer| timer.root).collect()
    });
    let heir = others.into_iter().find(|other| abi::set_effective_context(*other));
    if let Some(heir) = heir {
        // Whatever the host was told before.
        let (period, now) = pause(heir, next);
        change(heir, |timer| timer.tell(period, now));
    }
    abi::set_effective_context(root);
    heir.is_some()
}

fn of(root: u32) -> Timer {
    let known = |timers: &Vec<Timer>| timers.iter().find(|timer| timer.root == root).copied();
    TIMERS.with_borrow(known).unwrap_or(Timer::off(root))
}

fn change(root: u32, change: impl FnOnce(&mut Timer)) {
    let mut timer = of(root);
    change(&mut timer);
    TIMERS.with_borrow_mut(|timers| match timers.iter_mut().find(|known| known.root == root) {
        Some(known) => *known = timer,
        None => timers.push(timer),
    });
}

impl Timer {
    fn off(root: u32) -> Timer {
        Timer { root, period: 0, fires: Micros::MAX, own: None }
    }

    fn next(&self, of_all: Option<Micros>) -> Option<Micros> {
        [self.own, of_all].into_iter().flatten().min()
    }

    /// Comes back no later than at `instant`, in whole milliseconds.
    fn wake(&mut self, instant: Micros, now: Micros) {
        let period = milliseconds(instant.saturating_sub(now));
        if later(now, period) < self.fires {
            self.set(period, now);
        }
    }

    fn set(&mut self, period: u32, now: Micros) {
        if self.period != period {
            self.tell(period, now);
        } else if period > 0 {
            self.fires = later(now, period);
        }
    }

    fn tell(&mut self, period: u32, now: Micros) {
        self.fires = if period == 0 { Micros::MAX } else { later(now, period) };
        self.period = period;
        abi::set_tick_period(period);
    }
}

fn later(now: Micros, period: u32) -> Micros {
    now.saturating_add(Micros::from(period) * MILLISECOND)
}

fn milliseconds(ticks: Micros) -> u32 {
    u32::try_from(ticks.div_ceil(MILLISECOND).max(1)).unwrap_or(u32::MAX)
}
