//! Fixed window: at most `rpu` in each window; windows are aligned to the unit in local time.
//!
//! A window is known by its number on the wall clock. That clock may step back: then the window in
//! force stays in force, and ends at the latest one unit of monotonic time after its first request.

use std::rc::Rc;

use super::{Algorithm, BuiltAlgorithm, Can, Codec, Conflict, Entry};
use crate::decision::Decision;
use crate::policy::Quota;
use crate::time::{Micros, Now};

/// `W` in the registry.
pub const ENTRY: Entry = Entry {
    short: "W",
    long: "window",
    keys: &[],
    build,
    can: |_| Can::WINDOW,
    codec: Some(Codec { kind: "W", numbers: |quota| [quota.ahead(), 0, 0], ahead: |_| 0 }),
    part: Quota::part,
    by_day: true,
    layout: |_| Entry::PLAIN,
};

#[derive(Debug)]
struct FixedWindow {
    rpu: u64,
    unit: Micros,
    /// Ticks that local time is ahead of UTC.
    zone: i64,
}

/// A window with at least one permit used; `used` is zero in the state of nobody.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    number: u64,
    used: u64,
    /// Monotonic instant of its first request.
    first: Micros,
}

fn build(quota: &Quota) -> BuiltAlgorithm {
    if quota.cost > quota.rpu && quota.rpu > 0 {
        return Err(vec![Conflict::cost_above_rpu(quota)]);
    }
    Ok(Rc::new(FixedWindow { rpu: quota.rpu, unit: quota.period(), zone: quota.ahead() }))
}

impl Window {
    fn load(state: &[u64]) -> Window {
        match *state {
            [number, used, first] => Window { number, used, first },
            _ => Window::default(),
        }
    }

    fn save(self, state: &mut [u64]) {
        if let [number, used, first] = state {
            (*number, *used, *first) = (self.number, self.used, self.first);
        }
    }
}

impl FixedWindow {
    fn local(&self, now: Now) -> Micros {
        now.wall.saturating_add_signed(self.zone)
    }

    /// The window in force at `now`: the one in `state`, or a new one.
    fn current(&self, state: &[u64], now: Now) -> Window {
        let window = Window::load(state);
        if window.used > 0 && self.left(window, now) > 0 {
            return window;
        }
        Window { number: self.local(now) / self.unit, used: 0, first: now.mono }
    }

    /// Ticks until `window` ends.
    fn left(&self, window: Window, now: Now) -> Micros {
        let aligned = window.number.saturating_add(1).saturating_mul(self.unit);
        let by_wall = aligned.saturating_sub(self.local(now));
        let by_mono = window.first.saturating_add(self.unit).saturating_sub(now.mono);
        by_wall.min(by_mono)
    }
}

impl Algorithm for FixedWindow {
    fn words(&self) -> usize {
        3
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
        if cost > self.rpu {
            return Decision::NEVER;
        }
        let window = self.current(old, now);
        let used = window.used.saturating_add(cost);
        if used > self.rpu {
            return Decision::retry(self.left(window, now));
        }
        Window { used, ..window }.save(new);
        Decision::NOW
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        Window::load(charged).first
    }

    fn refund(&self, old: &[u64], receipt: u64, permits: u64, new: &mut [u64]) {
        let window = Window::load(old);
        let back = if window.first == receipt { permits } else { 0 };
        Window { used: window.used.saturating_sub(back), ..window }.save(new);
    }

    fn debit(&self, old: &[u64], now: Now, permits: u64, new: &mut [u64]) {
        let window = self.current(old, now);
        Window { used: window.used.saturating_add(permits), ..window }.save(new);
    }

    fn spend_by(&self, charged: &[u64], now: Now) -> Option<Micros> {
        Some(now.mono.saturating_add(self.left(Window::load(charged), now)))
    }

    fn most_at_once(&self) -> u64 {
        self.rpu
    }

    fn remaining(&self, state: &[u64], now: Now) -> u64 {
        self.rpu.saturating_sub(self.current(state, now).used)
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        let window = Window::load(state);
        if window.used == 0 { 0 } else { now.mono.saturating_add(self.left(window, now)) }
    }

    fn policy(&self) -> (u64, Micros) {
        (self.rpu, self.unit)
    }
}
