//! Fixed window: at most `rpu` in each calendar window.
//!
//! A window is identified by its end on the wall clock. If that clock steps back, the current
//! window continues, and ends at the latest when its length has passed on the monotonic clock since
//! its first request.

use std::sync::Arc;

use super::{
    Algorithm, Balance, Built, Capabilities, Codec, Conflict, CountsUsed, Entry, Properties,
    UsageReport, only,
};
use crate::calendar::Windows;
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};
use diana_policy::{MAX_USED, Quota};

/// `W` in the registry.
pub const ENTRY: Entry = Entry {
    short: "W",
    long: "window",
    aliases: &["fixed window"],
    keys: &[],
    build: |quota| Ok(build(quota)?),
    counts_used: Some(|quota| Ok(build(quota)?)),
    capabilities: |_| Capabilities::WINDOW,
    codec: Some(Codec { kind: "W", numbers: |_| [0; 3] }),
    share: Quota::share,
    by_calendar: true,
    // Earlier versions identified a window by its number.
    layout: |_| Entry::PLAIN + 1,
};

/// Words of a state.
const WORDS: usize = 3;

#[derive(Debug)]
struct FixedWindow {
    properties: Properties,
    rpu: u64,
    windows: Windows,
}

/// A window with at least one used permit; `used` is zero in the state of a new caller.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    /// The end on the wall clock.
    ends: Micros,
    used: u64,
    /// The latest end, on the monotonic clock.
    latest: Micros,
}

fn build(quota: &Quota) -> Built<FixedWindow> {
    if quota.cost > quota.rpu && quota.rpu > 0 {
        return Err(vec![Conflict::cost_above_rpu(quota)]);
    }
    let properties = Properties::new(WORDS, quota.rpu, quota.period());
    Ok(Arc::new(FixedWindow { properties, rpu: quota.rpu, windows: Windows::of(quota) }))
}

impl Window {
    fn load(state: &[u64]) -> Window {
        match *state {
            [ends, used, latest] => Window { ends, used, latest },
            _ => Window::default(),
        }
    }

    fn save(self, state: &mut [u64]) {
        if let [ends, used, latest] = state {
            (*ends, *used, *latest) = (self.ends, self.used, self.latest);
        }
    }

    fn plus(self, permits: u64) -> Window {
        Window { used: self.used.saturating_add(permits).min(MAX_USED), ..self }
    }

    /// The usage, or zero if it belongs to another window than `other`, in that window.
    fn within(self, other: Window) -> Window {
        let is_same = (self.ends, self.latest) == (other.ends, other.latest);
        Window { used: if is_same { self.used } else { 0 }, ..other }
    }

    /// Ticks until it ends.
    fn left(self, now: Now) -> Micros {
        self.ends.saturating_sub(now.wall).min(self.latest.saturating_sub(now.mono))
    }
}

impl FixedWindow {
    /// The current window at `now`: that of `state`, or a new one.
    fn current(&self, state: &[u64], now: Now) -> Window {
        let window = Window::load(state);
        if window.used > 0 && window.left(now) > 0 {
            return window;
        }
        let planned = self.windows.at(now.wall);
        Window { ends: planned.ends, used: 0, latest: now.mono.saturating_add(planned.length) }
    }
}

impl Algorithm for FixedWindow {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn step(&self, old: &[u64], now: Now, _delay: Micros, cost: u64, new: &mut [u64]) -> Decision {
        if cost > self.rpu {
            return Decision::NEVER;
        }
        let window = self.current(old, now);
        let used = window.used.saturating_add(cost);
        if used > self.rpu {
            return Decision::retry(window.left(now));
        }
        Window { used, ..window }.save(new);
        Decision::NOW
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        // Windows with another first request end at another instant at the latest.
        Window::load(charged).latest
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        let debt = settlement.debt();
        if debt > 0 {
            return self.current(old, now).plus(debt).save(new);
        }
        let window = Window::load(old);
        let is_same = window.latest == settlement.receipt;
        let back = if is_same { settlement.back() } else { 0 };
        Window { used: window.used.saturating_sub(back), ..window }.save(new);
    }

    fn spend_by(&self, charged: &[u64], now: Now) -> Option<Micros> {
        Some(now.mono.saturating_add(Window::load(charged).left(now)))
    }

    fn learn(&self, _old: &[u64], report: &UsageReport, new: &mut [u64]) {
        let UsageReport { at, charged, ends, more } = *report;
        // The window of the authority: its clock decides which one is current.
        let known = Window {
            ends: at.wall.saturating_add(ends),
            used: if ends > 0 { charged } else { 0 },
            latest: at.mono.saturating_add(ends),
        };
        known.save(new);
        if more > 0 {
            self.current(new, at).plus(more).save(new);
        }
    }

    fn balance(&self, state: &[u64], now: Now) -> Balance {
        let window = self.current(state, now);
        let remaining = self.rpu.saturating_sub(window.used);
        let renewal = (remaining < self.rpu).then(|| window.left(now));
        Balance { remaining, charged: window.used, reserved: 0, renewal }
    }

    fn reset(&self, _old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool {
        // Starts a new window, so that older receipts are not valid in it.
        only(self, now, out, new);
        true
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        let window = Window::load(state);
        if window.used == 0 { 0 } else { now.mono.saturating_add(window.left(now)) }
    }
}

impl CountsUsed for FixedWindow {
    fn add_used(
        &self,
        used: &[u64],
        charged: &[u64],
        now: Now,
        settlement: &Settlement,
        new: &mut [u64],
    ) {
        // Both states are of the same window.
        let known = Window::load(used);
        let old = match Window::load(charged) {
            window if window.latest == settlement.receipt => {
                known.within(window).plus(settlement.used.min(settlement.reserved))
            }
            window => known.within(window),
        };
        old.save(new);
        if settlement.debt() > 0 {
            let window = self.current(charged, now);
            old.within(window).plus(settlement.debt()).save(new);
        }
    }

    fn without_used(&self, charged: &[u64], used: &[u64], new: &mut [u64]) {
        let (window, known) = (Window::load(charged), Window::load(used));
        let used = window.used.saturating_sub(known.within(window).used);
        Window { used, ..window }.save(new);
    }
}
