//! The thread `diana`, which runs the timers of all workers.

use diana_policy::time::Micros;

use crate::abi::has_runtime;
use crate::cell::WorkerCell;
use crate::module::Module;
use crate::switches;

/// Starts the thread, unless it runs.
pub(crate) fn start(module: &'static Module) {
    module.clock.start(|| run(module));
}

fn run(module: &Module) {
    let Module { clock, configurations, .. } = module;
    let mut looks_at = if has_runtime() { clock.monotonic() } else { Micros::MAX };
    loop {
        let now = clock.monotonic();
        if looks_at <= now {
            configurations.schedule_look();
            looks_at = now.saturating_add(switches::PERIOD);
        }
        let due_of_cells = next_due(module);
        if due_of_cells <= now {
            fire(module);
            continue;
        }
        clock.sleep(due_of_cells.min(looks_at), || next_due(module) != due_of_cells);
    }
}

pub(crate) fn next_due(module: &Module) -> Micros {
    module.cells().iter().map(WorkerCell::due).min().unwrap_or(Micros::MAX)
}

pub(crate) fn fire(module: &Module) {
    for cell in module.cells().iter().filter(|cell| cell.due() <= module.clock.monotonic()) {
        module.guarded("timer", || cell.fire());
    }
}
