//! Panics. A panic is a bug, and must cost a request its check at most, never the gateway.

use std::panic::set_hook;

use crate::abi::{LogLevel, log};
use crate::{metrics, slot};

/// Logs panics. The hook is that of this library, and of no other one in the process.
pub(crate) fn install() {
    set_hook(Box::new(|panic| log(LogLevel::Error, &format!("diana {panic}"))));
}

/// Counts a panic, and rebuilds the worker in which it happened.
pub(crate) fn recover(hook: &'static str) {
    log(LogLevel::Error, &format!("the panic in `{hook}` was caught: its request passes"));
    metrics::count_fault(hook);
    slot::all().iter().for_each(slot::Slot::recover);
}

/// Panics of tests.
#[cfg(feature = "faults")]
pub(crate) mod injected {
    use std::cell::Cell;
    use std::panic::panic_any;

    thread_local! {
        static HOOK: Cell<&'static str> = const { Cell::new("") };
    }

    /// A hook begins.
    pub(crate) fn begin(hook: &'static str) {
        HOOK.set(hook);
    }

    /// Panics if the file of `DIANA_FAULTS` names the hook.
    pub(crate) fn panic() {
        let file = std::env::var_os("DIANA_FAULTS");
        let wanted = file.and_then(|file| std::fs::read_to_string(file).ok());
        if wanted.is_some_and(|wanted| wanted.trim() == HOOK.get()) {
            panic_any("a test wants it");
        }
    }
}
