//! Sliding window: at most `rpu` in every interval of one unit.
//!
//! The unit is divided into `slices`. An interval overlaps at most `slices + 1` slices, so the sum
//! over these bounds every interval. Under saturation that admits on average
//! `rpu · slices / (slices + 1)` per unit.

use std::sync::Arc;

use super::{
    Algorithm, Balance, Built, Capabilities, Codec, Conflict, CountsUsed, Entry, Form, Properties,
    Setting, UsageReport, copy, only,
};
use diana_policy::decision::Decision;
use diana_policy::ring::Ring;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};
use diana_policy::{MAX_USED, Quota};

/// `SW` in the registry.
pub const ENTRY: Entry = Entry {
    short: "SW",
    long: "sliding window",
    aliases: &[],
    keys: &[Setting {
        name: "slices",
        field: |quota| &mut quota.slices,
        form: Form::Number,
        min: 1,
        max: 60,
        global: true,
        by_plan: false,
    }],
    build: |quota| Ok(build(quota)?),
    counts_used: Some(|quota| Ok(build(quota)?)),
    capabilities: |_| Capabilities::WINDOW,
    codec: Some(Codec { kind: "SW", numbers: |quota| [Codec::signed(slices(quota)), 0, 0] }),
    share: Quota::share,
    by_calendar: false,
    layout: |quota| Entry::PLAIN + if quota.is_wide { 200 } else { 100 } + slices(quota),
};

/// Slices of a unit, 1 ..= 60.
fn slices(quota: &Quota) -> u64 {
    quota.slices.unwrap_or(10).clamp(1, 60)
}

#[derive(Debug)]
struct SlidingWindow {
    properties: Properties,
    rpu: u64,
    unit: Micros,
    slices: u64,
    /// Ticks of a slice, if the unit is a multiple of it: one division instead of three.
    even: Option<Micros>,
    ring: Ring,
}

fn build(quota: &Quota) -> Built<SlidingWindow> {
    if quota.cost > quota.rpu && quota.rpu > 0 {
        return Err(vec![Conflict::cost_above_rpu(quota)]);
    }
    let slices = slices(quota);
    let counters = slices as usize + 1;
    let ring = if quota.is_wide { Ring::wide(counters) } else { Ring::new(counters) };
    let (rpu, unit) = (quota.rpu, quota.period());
    let even = unit.is_multiple_of(slices).then_some(unit / slices);
    // The time that a sum covers. It is reported as the window, since a client that spreads `rpu`
    // permits over one unit only is refused.
    let window = unit.saturating_add(unit.div_ceil(slices));
    let properties = Properties::new(ring.words(), rpu, window);
    Ok(Arc::new(SlidingWindow { properties, rpu, unit, slices, even, ring }))
}

impl SlidingWindow {
    /// The slice of `time`. A unit need not be a multiple of `slices` ticks, so whole units and the
    /// rest are counted separately, without drift or overflow.
    fn slice(&self, time: Micros) -> u64 {
        if let Some(length) = self.even {
            return time / length;
        }
        time / self.unit * self.slices + time % self.unit * self.slices / self.unit
    }

    /// The first tick of `slice`.
    fn start(&self, slice: u64) -> Micros {
        let units = (slice / self.slices).saturating_mul(self.unit);
        units.saturating_add((slice % self.slices * self.unit).div_ceil(self.slices))
    }

    /// Ticks until `permits` that were charged before `slice` ended no longer count.
    fn time_until_free(&self, state: &[u64], slice: u64, mut permits: u64, now: Now) -> Micros {
        let last = self.ring.slices(slice).find(|&old| {
            permits = permits.saturating_sub(self.ring.count(state, old));
            permits == 0
        });
        // A slice expires when the slice `slices + 1` later begins.
        let free = last.unwrap_or(slice).saturating_add(self.slices + 1);
        self.start(free).saturating_sub(now.mono)
    }

    /// The current slice; a clock that stepped back stays in the newest slice.
    fn current(&self, state: &[u64], now: Now) -> u64 {
        self.slice(now.mono).max(self.ring.newest(state))
    }
}

impl Algorithm for SlidingWindow {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn step(&self, old: &[u64], now: Now, _delay: Micros, cost: u64, new: &mut [u64]) -> Decision {
        if cost > self.rpu {
            return Decision::NEVER;
        }
        let slice = self.current(old, now);
        let over = self.ring.sum(old, slice).saturating_add(cost).saturating_sub(self.rpu);
        if over == 0 {
            copy(old, new);
            self.ring.add(new, slice, cost);
            return Decision::NOW;
        }
        Decision::retry(self.time_until_free(old, slice, over, now))
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        self.ring.newest(charged)
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        copy(old, new);
        match settlement.debt() {
            0 => self.ring.take(new, settlement.receipt, settlement.back()),
            debt => self.ring.add(new, self.current(old, now), debt),
        }
    }

    fn spend_by(&self, charged: &[u64], _now: Now) -> Option<Micros> {
        // They expire with the slice of their charge: spent in a later one, too early.
        Some(self.start(self.ring.newest(charged).saturating_add(1)))
    }

    fn learn(&self, old: &[u64], report: &UsageReport, new: &mut [u64]) {
        let UsageReport { at, charged, more, .. } = *report;
        copy(old, new);
        let slice = self.current(old, at);
        let (known, all) = (self.ring.sum(old, slice), charged.saturating_add(more));
        // Unknown permits have come since the report before. Those that count no more were the oldest.
        self.ring.add(new, slice, all.saturating_sub(known));
        let mut gone = known.saturating_sub(all);
        for old in self.ring.slices(slice) {
            let count = self.ring.count(new, old);
            self.ring.take(new, old, gone);
            gone = gone.saturating_sub(count);
        }
    }

    fn balance(&self, state: &[u64], now: Now) -> Balance {
        let slice = self.current(state, now);
        let charged = self.ring.sum(state, slice);
        let remaining = self.rpu.saturating_sub(charged);
        let renewal = (remaining < self.rpu).then(|| {
            let over = charged.saturating_add(remaining + 1).saturating_sub(self.rpu);
            self.time_until_free(state, slice, over, now)
        });
        Balance { remaining, charged: charged.min(MAX_USED), reserved: 0, renewal }
    }

    fn reset(&self, _old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool {
        only(self, now, out, new);
        true
    }

    fn expires(&self, state: &[u64], _now: Now) -> Micros {
        // All slices have expired by then; after a refund, possibly earlier.
        match self.ring.newest(state) {
            0 if self.ring.count(state, 0) == 0 => 0,
            newest => self.start(newest.saturating_add(self.slices + 1)),
        }
    }
}

impl CountsUsed for SlidingWindow {
    fn add_used(
        &self,
        used: &[u64],
        charged: &[u64],
        now: Now,
        settlement: &Settlement,
        new: &mut [u64],
    ) {
        copy(used, new);
        let permits = settlement.used.min(settlement.reserved);
        self.ring.add_late(new, settlement.receipt, permits);
        self.ring.add(new, self.current(charged, now), settlement.debt());
    }

    fn without_used(&self, charged: &[u64], used: &[u64], new: &mut [u64]) {
        copy(charged, new);
        for slice in self.ring.slices(self.ring.newest(charged)) {
            self.ring.take(new, slice, self.ring.count(used, slice));
        }
    }
}
