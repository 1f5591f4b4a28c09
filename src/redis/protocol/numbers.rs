//! The limits of a rule, as sent to the script.

use super::pack::Array;
use diana_algorithm::calendar::Windows;
use diana_algorithm::{Codec, Entry};
use diana_policy::bloom::Shape;
use diana_policy::key::Key;
use diana_policy::time::Micros;
use diana_policy::{Ban, Quota};

/// A rule's algorithm and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    kind: &'static str,
    rpu: u64,
    unit: u64,
    own: [i64; 3],
    /// If the rule has plans: the lowest `rpu` of all plans, the longest lifetime of usage under
    /// any plan in ticks, and the highest `rpu`.
    plans: Option<[u64; 3]>,
    /// For rules with calendar windows: the windows, sent instead of `own[0]`.
    windows: Option<Windows>,
    /// For daily quotas of many accounts: the filter.
    pub(super) daily: Option<Shape>,
}

impl Numbers {
    /// The parameters of a rule. `None` if the script does not support it.
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

    /// The parameters of a daily quota of many accounts.
    #[must_use]
    pub fn of_quota(quota: &Quota, shape: Shape) -> Numbers {
        let own = [0, shape.width().cast_signed(), 0];
        let days = Windows::of(quota);
        let (rpu, unit, windows) = (quota.rpu, days.longest(), Some(days));
        Numbers { kind: "Q", rpu, unit, own, windows, plans: None, daily: Some(shape) }
    }

    /// The parameters of a rule's bans, which are counted as an additional rule: its cost is the
    /// number of refusals, and with a cost of zero it refuses banned callers.
    #[must_use]
    pub fn of_ban(ban: &Ban) -> Numbers {
        let own = [ban.period, ban.max, ban.halve_after].map(Codec::signed);
        let (rpu, unit) = (ban.after, ban.slice());
        Numbers { kind: "B", rpu, unit, own, windows: None, plans: None, daily: None }
    }

    /// The same for in-flight slots of the holder with this number, less than 2⁵³.
    #[must_use]
    pub fn held_by(self, holder: u64) -> Numbers {
        Numbers { own: [Codec::signed(holder), 0, 0], ..self }
    }

    /// Adds the values that all plans share.
    pub(super) fn pack_plans(&self, to: &mut Array) {
        match self.plans {
            Some(plans) => to.list(&plans.map(Codec::signed)),
            None => to.count(0),
        }
    }

    /// Adds the parameters at `wall` on the gateway's wall clock.
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
