//! When a root is called again: as often as something waits, and not at all when nothing does.

use std::cell::Cell;

use super::abi;
use crate::time::{Micros, SECOND};

const MILLISECOND: Micros = SECOND / 1000;

/// The timer of one root, in the host's milliseconds.
#[derive(Debug, Default)]
pub(super) struct Timer {
    /// The period that the host was told; 0 is off.
    period: Cell<u32>,
    /// When the host calls the next time. To tell it a period puts that off, however short it is.
    fires: Cell<Micros>,
    /// When the root's regular work is due; none while the timer is off.
    regular: Cell<Option<Micros>>,
    /// When the configuration centre's turn is; none without one.
    remote: Cell<Option<Micros>>,
}

impl Timer {
    /// Sees to it that regular work is done within `period` ticks from `now`.
    pub(super) fn start(&self, period: Micros, now: impl FnOnce() -> Micros) {
        if self.regular.get().is_none() {
            let now = now();
            let due = now.saturating_add(period);
            self.regular.set(Some(due));
            self.wake(due, now);
        }
    }

    /// Whether regular work is due; it is not again until the next start.
    pub(super) fn is_due(&self, now: Micros) -> bool {
        let due = self.regular.get().is_some_and(|due| due <= now);
        if due {
            self.regular.set(None);
        }
        due
    }

    /// Comes back for the configuration centre at `instant`, whatever else there is to do.
    pub(super) fn remote(&self, instant: Micros, now: Micros) {
        self.remote.set(Some(instant));
        self.wake(instant, now);
    }

    /// Comes back no later than at `instant`, in whole milliseconds.
    pub(super) fn wake(&self, instant: Micros, now: Micros) {
        let period = milliseconds(instant.saturating_sub(now));
        if self.period.get() == 0 || later(now, period) < self.fires.get() {
            self.set(period, now);
        }
    }

    /// Waits for what is due next, of the regular work, the centre and `instant`. To be done in each
    /// call.
    pub(super) fn rest(&self, instant: Option<Micros>, now: Micros) {
        let next = [self.regular.get(), self.remote.get(), instant].into_iter().flatten().min();
        self.set(next.map_or(0, |next| milliseconds(next.saturating_sub(now))), now);
    }

    /// Stops.
    pub(super) fn stop(&self) {
        self.set(0, 0);
        self.regular.set(None);
        self.remote.set(None);
    }

    fn set(&self, period: u32, now: Micros) {
        self.fires.set(later(now, period));
        if self.period.replace(period) != period {
            abi::set_tick_period(period);
        }
    }
}

fn later(now: Micros, period: u32) -> Micros {
    now.saturating_add(Micros::from(period) * MILLISECOND)
}

fn milliseconds(ticks: Micros) -> u32 {
    u32::try_from(ticks.div_ceil(MILLISECOND).max(1)).unwrap_or(u32::MAX)
}
