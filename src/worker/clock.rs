//! The time of a worker.

use std::cell::Cell;

use diana_policy::port::Clock;
use diana_policy::time::{Micros, Now, SECOND};

use super::host::{Host, Level};

/// Reading both clocks takes no longer, unless the worker is stopped between them: then its windows
/// would be shifted by as much for a second.
const AT_ONCE: Micros = SECOND / 2000;

/// How often they are read for that.
const TRIES: usize = 4;

/// The monotonic clock is read each time; the wall clock is that plus an offset, which is read anew at
/// most once a second.
#[derive(Debug, Default)]
pub(crate) struct Offset {
    /// How far the wall clock is ahead of the monotonic one.
    ahead: Cell<i64>,
    /// When that is to be read anew; at once in the beginning.
    due: Cell<Micros>,
}

/// The clocks of a worker, read in one of the host's calls.
pub(crate) struct Clocks<'a> {
    pub(crate) offset: &'a Offset,
    pub(crate) host: &'a dyn Host,
    /// Where a step back of the wall clock is counted.
    pub(crate) namespace: &'a str,
}

impl Clock for Clocks<'_> {
    fn now(&self) -> Now {
        let mut mono = self.host.monotonic();
        let Offset { ahead, due } = self.offset;
        if mono >= due.get() {
            self.read_anew(&mut mono);
        }
        Now { mono, wall: mono.saturating_add_signed(ahead.get()) }
    }
}

impl Clocks<'_> {
    /// Reads how far the wall clock is ahead, and with it the monotonic one.
    #[cold]
    fn read_anew(&self, mono: &mut Micros) {
        let Offset { ahead, due } = self.offset;
        let anew = read_both(self.host, mono);
        let back = ahead.get().saturating_sub(anew);
        // Slewing by a time server moves it by less than a millisecond in a second.
        if due.replace(mono.saturating_add(SECOND)) > 0 && back > SECOND as i64 {
            self.stepped_back(back.unsigned_abs());
        }
        ahead.set(anew);
    }

    /// Tells that the wall clock stepped back.
    #[cold]
    fn stepped_back(&self, by: Micros) {
        self.host.count(&format!("diana.{}.clock_stepped_back", self.namespace), 1);
        let line = format!(
            "the wall clock stepped back by {} s; a window in force ends at most one unit after its \
             first request",
            by / SECOND
        );
        self.host.log(Level::Warn, &line);
    }
}

/// How far the wall clock is ahead of the monotonic one, which is read anew.
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
