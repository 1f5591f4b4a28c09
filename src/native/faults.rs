//! Panics. A panic is a bug, and must cost a request its check at most, never the gateway.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use crate::abi::{LogLevel, log};
#[cfg(feature = "faults")]
use crate::injected;

/// Logs panics. The hook is that of this library, and of no other one in the process.
pub(crate) fn install() {
    set_hook(Box::new(|panic| log(LogLevel::Error, &format!("diana {panic}"))));
}

/// Runs a hook, or work of a thread of the module. `None` after a panic, from which the module has to recover.
pub(crate) fn caught<T>(hook: &'static str, run: impl FnOnce() -> T) -> Option<T> {
    let run = || {
        #[cfg(feature = "faults")]
        injected::begin(hook);
        run()
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => Some(done),
        Err(panic) => {
            // Dropping the panic's value may panic again.
            _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
            log(
                LogLevel::Error,
                &format!("the panic in `{hook}` was caught: its worker starts anew"),
            );
            None
        }
    }
}
