//! How much a rule allows, in the words of the script.

use super::pack::Array;
use diana_algorithm::calendar::Windows;
use diana_algorithm::{Codec, Entry};
use diana_policy::bloom::Shape;
use diana_policy::key::Key;
use diana_policy::time::Micros;
use diana_policy::{Ban, Quota};

/// A rule's algorithm and its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    kind: &'static str,
    rpu: u64,
    unit: u64,
    own: [i64; 3],
    /// The lowest `rpu` of all plans of the rule, for how many ticks what is used by any of them may count, and the highest
    /// `rpu`, if it has plans.
    plans: Option<[u64; 3]>,
    /// Where it counts by windows of the calendar: those. They stand in place of the first number of its own.
    windows: Option<Windows>,
    /// The filter of a rule that counts many accounts by the day.
    pub(super) daily: Option<Shape>,
}

impl Numbers {
    /// The numbers of a rule; nothing if the script cannot count it.
    #[must_use]
    pub fn of_rule(entry: &Entry, quota: &Quota) -> Option<Numbers> {
        let codec = entry.codec(quota)?;
        let windows = entry.by_calendar.then(|| Windows::of(quota));
        let unit = windows.map_or(quota.period(), |windows| windows.longest());
        let (rpu, own) = (quota.rpu, (codec.numbers)(quota));
        let plans = [quota.lasting(), quota.longest, quota.fastest()];
        let plans = Some(plans).filter(|plans| *plans != [rpu, 0, rpu]);
        Some(Numbers { kind: codec.kind, rpu, unit, own, windows, plans, daily: None })
    }

    /// The numbers of a rule that counts many accounts by the day.
    #[must_use]
    pub fn of_quota(quota: &Quota, shape: Shape) -> Numbers {
        let own = [0, shape.width().cast_signed(), 0];
        let days = Windows::of(quota);
        let (rpu, unit, windows) = (quota.rpu, days.longest(), Some(days));
        Numbers { kind: "Q", rpu, unit, own, windows, plans: None, daily: Some(shape) }
    }

    /// The numbers of a rule's bans, which are counted as if they were a rule of their own: what
    /// costs something counts so many refusals, what costs nothing is refused while it is banned.
    #[must_use]
    pub fn of_ban(ban: &Ban) -> Numbers {
        let own = [ban.period, ban.max, ban.halve_after].map(Codec::signed);
        let (rpu, unit) = (ban.after, ban.slice());
        Numbers { kind: "B", rpu, unit, own, windows: None, plans: None, daily: None }
    }

    /// The same for places in flight, which are held by somebody with this number, less than 2⁵³.
    #[must_use]
    pub fn held_by(self, holder: u64) -> Numbers {
        Numbers { own: [Codec::signed(holder), 0, 0], ..self }
    }

    /// What all plans have in common.
    pub(super) fn pack_plans(&self, to: &mut Array) {
        match self.plans {
            Some(plans) => to.list(&plans.map(Codec::signed)),
            None => to.count(0),
        }
    }

    /// Adds what is asked at `wall` on the gateway's wall clock.
    pub(super) fn pack(&self, caller: Key, wall: Micros, to: &mut Array) {
        to.word(self.kind.as_bytes());
        to.count(self.rpu);
        to.count(self.unit);
        let [first, second, third] = self.own;
        match self.windows {
            Some(windows) => to.list(&windows.edges(wall)),
            None => to.number(first),
        }
        to.number(second);
        match self.daily {
            Some(shape) => to.word(&shape.piece(caller).1),
            None => to.number(third),
        }
    }
}
