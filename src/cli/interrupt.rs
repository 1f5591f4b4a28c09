//! Ctrl-C, which ends a long work early, with what is known so far; a second one ends the command at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to wait for it. Says from then on whether it came.
pub fn watch() -> impl Fn() -> bool {
    let heard = || {
        if IS_INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    // Where nobody can be told, the command ends at the first one.
    _ = ctrlc::set_handler(heard);
    || IS_INTERRUPTED.load(Ordering::Relaxed)
}
