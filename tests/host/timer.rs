//! Timers: each root of a VM has one, which fires again and again, each time a whole number of
//! milliseconds after the call before has returned.

use std::rc::Rc;

use super::trap::Trap;
use super::vm::Vm;

const MILLISECOND: u64 = 1_000;

/// How late Envoy's event loop is at the most when it has nothing else to do.
pub const LATENESS: u64 = MILLISECOND;

/// One root's timer.
#[derive(Debug, Default)]
pub struct Timer {
    /// Milliseconds; zero is off.
    period: u32,
    /// When it fires, by the monotonic clock.
    due: u64,
}

impl Timer {
    /// Starts it anew, or stops it.
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
    /// Lets time pass in this VM, whose timers fire as they come due.
    pub fn run(&mut self, micros: u64) {
        self.try_run(micros).unwrap_or_else(|trap| panic!("{trap}"));
    }

    pub fn try_run(&mut self, micros: u64) -> Result<(), Trap> {
        run_all(&mut [self], micros)
    }

    /// Milliseconds between ticks of the root in force; zero is no timer.
    pub fn tick_period(&mut self) -> u32 {
        let id = self.root();
        self.guest().roots.get(&id).map_or(0, |root| root.timer.period())
    }

    /// Whether any root, old ones included, is going to tick.
    pub fn has_timer(&mut self) -> bool {
        self.next_tick().is_some()
    }

    /// The next timer: when it fires, by the monotonic clock, and its root.
    pub fn next_tick(&mut self) -> Option<(u64, u32)> {
        let roots = self.guest().roots.iter();
        roots.filter_map(|(id, root)| Some((root.timer.due()?, *id))).min()
    }

    /// Lets the timer of every root fire now that has one, old roots included.
    pub fn fire(&mut self) {
        let roots = self.guest().roots.iter().filter(|(_, root)| root.timer.period() > 0);
        let roots: Vec<u32> = roots.map(|(id, _)| *id).collect();
        for root in roots {
            self.tick(root).unwrap_or_else(|trap| panic!("{trap}"));
        }
    }

    /// Lets the timer of one root fire.
    pub fn tick(&mut self, root: u32) -> Result<(), Trap> {
        self.guest().ticks += 1;
        self.call::<_, ()>("proxy_on_tick", root, root)?;
        let period = self.guest().roots.get(&root).map_or(0, |root| root.timer.period());
        self.guest().set_timer(root, period);
        Ok(())
    }
}

/// Lets time pass in several VMs of one process.
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
