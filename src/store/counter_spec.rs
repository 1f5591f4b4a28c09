//! What a store counts, and by what: all that it is told of its rule.

use std::rc::Rc;

use diana_algorithm::{Algorithm, Can, Entry, Leasing};
use diana_policy::bloom::Shape;
use diana_policy::redis::OnFailure;
use diana_policy::{Plans, Quota};

/// What a store counts, and by what.
#[derive(Debug, Clone)]
pub struct CounterSpec {
    /// What its algorithm is known by.
    pub entry: &'static Entry,
    /// How much it allows.
    pub quota: Quota,
    /// By what else it may judge a request, if there is anything.
    pub plans: Option<Rc<Plans>>,
    /// Of how many gateways it counts the part of one.
    pub gateways: u64,
    /// The algorithm, built from both.
    pub algorithm: Rc<dyn Algorithm>,
    /// Permits of which what a request takes is a multiple; where nothing is leased, the most that it takes.
    pub unit_cost: u64,
    /// Tells the rule apart from all others of its namespace; equal across configurations as long
    /// as it is the same rule.
    pub fingerprint: u64,
    /// How many live callers room is made for.
    pub keys: usize,
    /// How many of them a worker remembers at most, if they are counted wider than in it.
    pub lines: usize,
    /// The filter in which accounts are counted by the day, if they are.
    pub daily: Option<Shape>,
    /// Whether requests may be under other rules, too, so that a charge may be taken back.
    pub beside: bool,
    /// Whether what is charged is settled when a request ends.
    pub settles: bool,
    /// Whether requests are only checked when they come, and charged when it is known what they used.
    pub checks: bool,
    /// Whether what was used is kept beside what is reserved.
    pub keeps_used: bool,
    /// Overrides that of `redis`.
    pub on_failure: Option<OnFailure>,
}

impl CounterSpec {
    /// Counts by the part of one of so many gateways.
    #[must_use]
    pub fn part(&self, gateways: u64) -> CounterSpec {
        let part = self.with((self.entry.part)(&self.quota, gateways));
        CounterSpec { gateways, ..part }
    }

    /// Counts by the numbers of a plan.
    #[must_use]
    pub fn under(&self, plan: u32) -> CounterSpec {
        let Some(plans) = &self.plans else { return self.clone() };
        let whole = plans.quota(plan);
        let is_whole = self.gateways == 1 && !plans.is_told();
        let quota = if is_whole { whole } else { (self.entry.part)(&whole, self.gateways) };
        let unit_cost = if whole.cost == plans.own.cost { self.unit_cost } else { whole.cost };
        CounterSpec { unit_cost, ..self.with(quota) }
    }

    fn with(&self, quota: Quota) -> CounterSpec {
        let built = self.entry.algorithm(&quota, self.keeps_used);
        let algorithm = built.unwrap_or_else(|_| Rc::clone(&self.algorithm));
        CounterSpec { algorithm, quota, ..self.clone() }
    }

    /// Whether permits can be kept for later under all plans.
    #[must_use]
    pub fn leasing(&self) -> Leasing {
        match self.is_any_leased(Leasing::Never) {
            true => Leasing::Never,
            false => self.can().leasing,
        }
    }

    /// Whether they are under any plan.
    #[must_use]
    pub fn lends_by_any_plan(&self) -> bool {
        [Leasing::Window, Leasing::Bucket].into_iter().any(|leasing| self.is_any_leased(leasing))
    }

    /// Whether permits are kept for later like this under any plan.
    fn is_any_leased(&self, leasing: Leasing) -> bool {
        let is_it = |quota: &Quota| (self.entry.can)(quota).leasing == leasing;
        let listed = self.plans.as_ref().map_or(&[][..], |plans| plans.listed());
        is_it(&self.quota) || listed.iter().filter_map(|plan| plan.quota.as_ref()).any(is_it)
    }

    /// What the algorithm can do.
    #[must_use]
    pub fn can(&self) -> Can {
        (self.entry.can)(&self.quota)
    }
}
