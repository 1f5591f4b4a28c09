//! Panics of tests.

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
