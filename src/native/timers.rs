//! What the threads of this module do: `diana` runs the timers of all workers, and `diana-pipe` delivers replies.

use diana_policy::time::Micros;

use crate::abi::has_runtime;
use crate::calls::{CallId, CallReply};
use crate::faults::guarded;
use crate::{cell, clock, configurations, switches};

/// Starts the thread for timers, unless it runs.
pub(crate) fn start() {
    clock::start(run);
}

/// The worker of a call receives the reply, from the thread for calls.
pub(crate) fn deliver(call: CallId, reply: CallReply) {
    guarded("pipe", || cell::deliver(call, reply));
}

fn run() {
    let mut looks_at = if has_runtime() { clock::monotonic() } else { Micros::MAX };
    loop {
        let now = clock::monotonic();
        if looks_at <= now {
            configurations::schedule_look();
            looks_at = now.saturating_add(switches::PERIOD);
        }
        let due_of_cells = next_due();
        if due_of_cells <= now {
            fire();
            continue;
        }
        clock::sleep(due_of_cells.min(looks_at), || next_due() != due_of_cells);
    }
}

pub(crate) fn next_due() -> Micros {
    cell::all().iter().map(cell::WorkerCell::due).min().unwrap_or(Micros::MAX)
}

pub(crate) fn fire() {
    for cell in cell::all().iter().filter(|cell| cell.due() <= clock::monotonic()) {
        guarded("timer", || cell.fire());
    }
}
