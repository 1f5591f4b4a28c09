//! Handles Ctrl-C: the first one ends a long operation early with its results so far, the second
//! one ends the command at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Installs the handler. The returned function is true after the first Ctrl-C.
pub fn watch() -> impl Fn() -> bool {
    let header_usage = || {
        if IS_INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    // If the handler cannot be installed, the first Ctrl-C ends the command.
    _ = ctrlc::set_handler(header_usage);
    || IS_INTERRUPTED.load(Ordering::Relaxed)
}
