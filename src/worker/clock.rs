//! The clocks of a worker.

use std::cell::Cell;

use diana_policy::Metric;
use diana_policy::port::Clock;
use diana_policy::time::{Micros, Now, SECOND};

use super::host::{Host, Level};

/// Maximum duration of reading both clocks. A longer one means that the host interrupted the
/// worker, which would shift windows by that duration for a second.
const AT_ONCE: Micros = SECOND / 2000;

/// Maximum number of attempts.
const TRIES: usize = 4;

/// The offset of the wall clock from the monotonic clock. Only the monotonic clock is read each
/// time. The offset is updated at most once a second.
#[derive(Debug, Default)]
pub(crate) struct ClockOffset {
    /// Ticks that the wall clock is ahead of the monotonic one.
    ahead: Cell<i64>,
    /// The time of the next update. Zero in the beginning.
    due: Cell<Micros>,
}

/// The clocks of a worker during one of the host's calls.
pub(crate) struct HostClock<'a> {
    pub(crate) offset: &'a ClockOffset,
    pub(crate) host: &'a dyn Host,
    /// The label of the metric that counts backward steps of the wall clock.
    pub(crate) namespace: &'a str,
}

impl Clock for HostClock<'_> {
    fn now(&self) -> Now {
        let mut mono = self.host.monotonic();
        let ClockOffset { ahead, due } = self.offset;
        if mono >= due.get() {
            self.update_offset(&mut mono);
        }
        Now { mono, wall: mono.saturating_add_signed(ahead.get()) }
    }
}

impl HostClock<'_> {
    /// Updates the offset, and the reading of the monotonic clock.
    #[cold]
    fn update_offset(&self, mono: &mut Micros) {
        let ClockOffset { ahead, due } = self.offset;
        let latest = read_both(self.host, mono);
        let back = ahead.get().saturating_sub(latest);
        // Slewing by a time server changes it by less than a millisecond per second.
        if due.replace(mono.saturating_add(SECOND)) > 0 && back > SECOND as i64 {
            self.report_step_back(back.unsigned_abs());
        }
        ahead.set(latest);
    }

    /// Counts and logs a backward step of the wall clock.
    #[cold]
    fn report_step_back(&self, by: Micros) {
        self.host.add(Metric::ClockSteppedBack, &[self.namespace], 1);
        let line = format!(
            "the wall clock stepped back by {} s; an open window ends at most one unit after its first request",
            by / SECOND
        );
        self.host.log(Level::Warn, &line);
    }
}

/// Reads the offset of the wall clock, and the monotonic clock again.
fn read_both(host: &dyn Host, mono: &mut Micros) -> i64 {
    let mut ahead = 0;
    for _ in 0..TRIES {
        ahead = host.wall() as i64 - *mono as i64;
        let before = std::mem::replace(mono, host.monotonic());
        if mono.saturating_sub(before) < AT_ONCE {
            break;
        }
    }
    ahead
}
