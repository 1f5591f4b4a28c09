//! The clocks of the host.

use std::cell::Cell;

use proxy_wasm::types::LogLevel;

use super::abi;
use super::stats::HostMetrics;
use diana_core::port::{Clock, Metrics};
use diana_core::time::{Micros, Now, SECOND};

/// Reading both clocks takes no longer, unless the worker is stopped between them: then its windows
/// would be shifted by as much for a second.
const AT_ONCE: Micros = SECOND / 2000;

/// How often they are read for that.
const TRIES: usize = 4;

thread_local! {
    static CLOCK: HostClock = const { HostClock { ahead: Cell::new(0), read: Cell::new(None) } };
}

/// The clocks of the host. The monotonic one is read each time; the wall clock is that plus an
/// offset, which is read anew at most once a second.
#[derive(Clone)]
struct HostClock {
    /// How far the wall clock is ahead of the monotonic one.
    ahead: Cell<i64>,
    /// When that was last read.
    read: Cell<Option<Micros>>,
}

/// The clocks of this VM.
pub(super) struct VmClock<'a> {
    /// Where a step back of the wall clock is counted.
    pub(super) namespace: &'a str,
}

impl Clock for VmClock<'_> {
    fn now(&self) -> Now {
        CLOCK.with(|clock| clock.now(self.namespace))
    }
}

impl HostClock {
    fn now(&self, namespace: &str) -> Now {
        let mut mono = abi::monotonic();
        let due = self.read.get().is_none_or(|read| mono.saturating_sub(read) >= SECOND);
        if due {
            let ahead = read_both(&mut mono);
            let back = self.ahead.get().saturating_sub(ahead);
            // Slewing by a time server moves it by less than a millisecond in a second.
            if self.read.replace(Some(mono)).is_some() && back > SECOND as i64 {
                stepped_back(namespace, back.unsigned_abs());
            }
            self.ahead.set(ahead);
        }
        Now { mono, wall: mono.saturating_add_signed(self.ahead.get()) }
    }
}

/// How far the wall clock is ahead of the monotonic one, which is read anew.
fn read_both(mono: &mut Micros) -> i64 {
    let mut ahead = 0;
    for _ in 0..TRIES {
        ahead = abi::wall() as i64 - *mono as i64;
        let before = std::mem::replace(mono, abi::monotonic());
        if mono.saturating_sub(before) < AT_ONCE {
            break;
        }
    }
    ahead
}

/// Tells that the wall clock stepped back.
#[cold]
fn stepped_back(namespace: &str, by: Micros) {
    HostMetrics.count(&format!("diana.{namespace}.clock_stepped_back"), 1);
    let line = format!(
        "the wall clock stepped back by {} s; a window in force ends at most one unit after its \
         first request",
        by / SECOND
    );
    abi::log(LogLevel::Warn as u32, &line);
}
