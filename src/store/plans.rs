//! A store's data for each plan. A store uses one plan at a time, so that a rule without plans has
//! no overhead.

use super::CounterSpec;
use diana_policy::key::Key;

/// Cached plans of a rule whose plans are not listed.
const MOST_CACHED: usize = 256;

/// A caller under a plan of a rule. All plans of a rule share the caller's state, and each compares
/// it with its own quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// The caller.
    pub key: Key,
    /// The number of the plan. Zero if the rule has no plans.
    pub plan: u64,
}

/// A caller of a rule without plans.
impl From<Key> for Account {
    fn from(key: Key) -> Account {
        Account { key, plan: 0 }
    }
}

/// A store's data for the plans that are not current.
pub struct ByPlan<T>(Option<Box<OtherPlans<T>>>);

struct OtherPlans<T> {
    spec: CounterSpec,
    current: u64,
    /// Direct-mapped by plan.
    cached: Vec<Option<(u64, T)>>,
}

impl<T> ByPlan<T> {
    /// Data for a rule, with its first plan as the current one.
    pub fn new(spec: &CounterSpec) -> ByPlan<T> {
        ByPlan(spec.plans.as_ref().map(|plans| {
            let cached = (0..plans.count().unwrap_or(MOST_CACHED)).map(|_| None).collect();
            Box::new(OtherPlans { spec: spec.clone(), current: plans.first(), cached })
        }))
    }

    /// The current plan; zero without plans.
    #[inline]
    pub fn current(&self) -> u64 {
        self.0.as_ref().map_or(0, |others| others.current)
    }

    /// Switches to a plan: exchanges its data with that of the current plan. Returns false if it is
    /// already current, or cannot be built.
    #[inline]
    pub fn select(
        &mut self,
        plan: u64,
        current: &mut T,
        build: impl FnOnce(&CounterSpec) -> Option<T>,
    ) -> bool {
        // Every call of a store asks, and few change the plan.
        self.current() != plan && self.switch(plan, current, build)
    }

    #[inline(never)]
    fn switch(
        &mut self,
        plan: u64,
        current: &mut T,
        build: impl FnOnce(&CounterSpec) -> Option<T>,
    ) -> bool {
        let Some(others) = &mut self.0 else { return false };
        let cached = others.entry(plan).and_then(Option::take).filter(|(known, _)| *known == plan);
        let next = cached.map(|(_, next)| next).or_else(|| build(&others.spec.under(plan)));
        let Some(next) = next else { return false };
        let before = (others.current, std::mem::replace(current, next));
        if let Some(place) = others.entry(before.0) {
            *place = Some(before);
        }
        others.current = plan;
        true
    }
}

impl<T> OtherPlans<T> {
    fn entry(&mut self, plan: u64) -> Option<&mut Option<(u64, T)>> {
        let at = (plan % self.cached.len().max(1) as u64) as usize;
        self.cached.get_mut(at)
    }
}
