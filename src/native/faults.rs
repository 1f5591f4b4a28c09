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
    log(LogLevel::Error, &format!("the panic in `{hook}` was caught: its worker starts anew"));
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

    /// A hook begins. Panics if the file of `DIANA_FAULTS` has `before` and the hook.
    pub(crate) fn begin(hook: &'static str) {
        HOOK.set(hook);
        panic_if(&format!("before {hook}"));
    }

    /// The hook calls the worker. Panics if the file of `DIANA_FAULTS` has the hook.
    pub(crate) fn panic() {
        panic_if(HOOK.get());
    }

    fn panic_if(wanted: &str) {
        let file = std::env::var_os("DIANA_FAULTS");
        if file.and_then(|file| std::fs::read_to_string(file).ok()).is_some_and(|it| it == wanted) {
            panic_any("a test wants it");
        }
    }
}
