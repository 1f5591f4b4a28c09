//! Timers. Each root of a VM has one. It expires periodically, a whole number of milliseconds after
//! the previous call has returned.

use std::rc::Rc;

use super::trap::Trap;
use super::vm::Vm;

const MILLISECOND: u64 = 1_000;

/// Maximum delay of Envoy's event loop when it is idle.
pub const LATENESS: u64 = MILLISECOND;

/// One root's timer.
#[derive(Debug, Default)]
pub struct Timer {
    /// Milliseconds. Zero is off.
    period: u32,
    /// When it expires, on the monotonic clock.
    due: u64,
}

impl Timer {
    /// Restarts or stops it.
    pub fn set(&mut self, period: u32, now: u64, late: u64) {
        self.period = period;
        self.due = now + u64::from(period) * MILLISECOND + late;
    }

    pub fn period(&self) -> u32 {
        self.period
    }

    fn due(&self) -> Option<u64> {
        (self.period > 0).then_some(self.due)
    }
}

impl Vm {
    /// Advances the clock for this VM, and fires timers when they expire.
    pub fn run(&mut self, micros: u64) {
        self.try_run(micros).unwrap_or_else(|trap| panic!("{trap}"));
    }

    pub fn try_run(&mut self, micros: u64) -> Result<(), Trap> {
        run_all(&mut [self], micros)
    }

    /// The period of the current root in milliseconds. Zero is no timer.
    pub fn tick_period(&mut self) -> u32 {
        let id = self.root();
        self.guest().roots.get(&id).map_or(0, |root| root.timer.period())
    }

    /// Returns true if any root, including old ones, has a timer.
    pub fn has_timer(&mut self) -> bool {
        self.next_tick().is_some()
    }

    /// The next timer: its expiry on the monotonic clock, and its root.
    pub fn next_tick(&mut self) -> Option<(u64, u32)> {
        let roots = self.guest().roots.iter();
        roots.filter_map(|(id, root)| Some((root.timer.due()?, *id))).min()
    }

    /// Fires the timers of all roots now, including old ones.
    pub fn fire(&mut self) {
        let roots = self.guest().roots.iter().filter(|(_, root)| root.timer.period() > 0);
        let roots: Vec<u32> = roots.map(|(id, _)| *id).collect();
        for root in roots {
            self.tick(root).unwrap_or_else(|trap| panic!("{trap}"));
        }
    }

    /// Fires the timer of one root.
    pub fn tick(&mut self, root: u32) -> Result<(), Trap> {
        self.guest().ticks += 1;
        self.call::<_, ()>("proxy_on_tick", root, root)?;
        let period = self.guest().roots.get(&root).map_or(0, |root| root.timer.period());
        self.guest().set_timer(root, period);
        Ok(())
    }
}

/// Advances the clock for several VMs of one process.
pub fn run_all(vms: &mut [&mut Vm], micros: u64) -> Result<(), Trap> {
    let Some(first) = vms.first_mut() else { return Ok(()) };
    let outside = Rc::clone(&first.guest().outside);
    let end = outside.clock.monotonic() + micros;
    loop {
        let ticks = vms.iter_mut().enumerate();
        let next = ticks.filter_map(|(vm, found)| Some((found.next_tick()?, vm))).min();
        let until = next.map_or(end, |((due, _), _)| due.min(end));
        outside.clock.advance(until.saturating_sub(outside.clock.monotonic()));
        match next {
            Some(((due, root), vm)) if due <= end => vms[vm].tick(root)?,
            _ => return Ok(()),
        }
    }
}
