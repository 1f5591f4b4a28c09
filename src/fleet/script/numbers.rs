//! How much a rule allows, in the words of the script.

use super::pack::Array;
use crate::ban::Ban;
use crate::bloom::Shape;
use crate::key::Key;
use crate::quota::Quota;
use crate::time::{Micros, SECOND};

/// A rule's algorithm and its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    kind: &'static str,
    rpu: u64,
    unit: u64,
    own: [i64; 3],
    /// The filter of a rule that counts many accounts by the day.
    pub(super) daily: Option<Shape>,
}

/// What nothing stands for.
const NONE: i64 = -1;

/// The numbers of one algorithm besides `rpu` and `unit`.
type Own = fn(&Quota) -> [i64; 3];

/// Short names of the algorithms that the script knows, and the numbers of each.
const KINDS: &[(&str, Own)] = &[
    ("W", |quota| [quota.zone.saturating_mul(SECOND.cast_signed()), 0, 0]),
    ("SW", |quota| [signed(quota.slices.unwrap_or(10)), 0, 0]),
    ("TB", |quota| {
        let burst = if quota.rpu == 0 { 0 } else { quota.burst.unwrap_or(quota.rpu) };
        let max_delay = quota.max_delay.filter(|delay| *delay > 0);
        [signed(burst), max_delay.map_or(NONE, signed), queue(quota)]
    }),
    // It is a token bucket as large as what it is asked for.
    ("LB", |quota| [NONE, signed(quota.max_delay.unwrap_or(SECOND)), queue(quota)]),
];

fn queue(quota: &Quota) -> i64 {
    signed(quota.max_queue.unwrap_or(quota.rpu))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Numbers {
    /// The numbers of a rule, whose algorithm is known by its short name; nothing if the script
    /// cannot count it.
    #[must_use]
    pub fn new(short: &str, quota: &Quota) -> Option<Numbers> {
        let (kind, own) = KINDS.iter().find(|(kind, _)| *kind == short)?;
        let (rpu, unit, own) = (quota.rpu, quota.period(), own(quota));
        quota.warm_up.is_none().then_some(Numbers { kind, rpu, unit, own, daily: None })
    }

    /// The numbers of a rule that counts many accounts by the day.
    #[must_use]
    pub fn of_quota(quota: &Quota, shape: Shape) -> Numbers {
        let zone = quota.zone.saturating_mul(SECOND.cast_signed());
        let (rpu, unit, own) = (quota.rpu, quota.period(), [zone, signed(shape.width()), 0]);
        Numbers { kind: "Q", rpu, unit, own, daily: Some(shape) }
    }

    /// The numbers of a rule's bans, which are counted as if they were a rule of their own: what
    /// costs something counts so many refusals, what costs nothing is refused while he is banned.
    /// The answer tells what is left of the ban as what remains, whether it begins as the receipt,
    /// and recent refusals as the lease.
    #[must_use]
    pub fn of_ban(ban: &Ban) -> Numbers {
        let own = [ban.period, ban.max, ban.halve_after].map(signed);
        Numbers { kind: "B", rpu: ban.after, unit: ban.slice(), own, daily: None }
    }

    /// Whether a request may have to wait for its turn.
    #[must_use]
    pub fn holds(&self) -> bool {
        let [_, longest, _] = self.own;
        longest > 0 && self.daily.is_none()
    }

    /// How long before a block is over the next one can be had, in ticks; zero if only afterwards.
    #[must_use]
    pub fn ahead(&self) -> Micros {
        let [own, ..] = self.own;
        match self.kind {
            // Most of the time in which the script lends for the next slice.
            "SW" => (self.unit / own.unsigned_abs().max(1) / 16 * 3).min(15 * SECOND / 1000),
            "TB" => SECOND / 100,
            _ => 0,
        }
    }

    /// How long it takes at most until `cost` permits are free of which none is now, in ticks.
    #[must_use]
    pub fn patience(&self, cost: u64) -> Micros {
        let [own, ..] = self.own;
        match self.kind {
            // What is lent of the next slice is free again two slices after a unit.
            "SW" => self.unit.saturating_add(2 * (self.unit / own.unsigned_abs().max(1) + 1)),
            _ => self.unit.saturating_mul(cost).div_ceil(self.rpu.max(1)),
        }
    }

    pub(super) fn pack(&self, caller: Key, to: &mut Array) {
        to.word(self.kind.as_bytes());
        to.count(self.rpu);
        to.count(self.unit);
        let [first, second, third] = self.own;
        to.number(first);
        to.number(second);
        match self.daily {
            Some(shape) => to.word(&shape.piece(caller).1),
            None => to.number(third),
        }
    }
}
