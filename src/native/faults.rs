//! Panics. A panic is a bug, and must cost a request its check at most, never the gateway.

use std::panic::set_hook;

use crate::abi::{LogLevel, log};
use crate::{metrics, slot};

/// Logs panics. The hook is that of this library, and of no other one in the process.
pub(crate) fn install() {
    set_hook(Box::new(|panic| log(LogLevel::Error, &format!("diana {panic}"))));
}

/// Counts a panic, and builds the worker anew in which it happened.
pub(crate) fn recover(hook: &'static str) {
    log(LogLevel::Error, &format!("the panic in `{hook}` was caught: its request passes"));
    metrics::count_fault(hook);
    slot::all().iter().for_each(slot::Slot::recover);
}
