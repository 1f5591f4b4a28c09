//! A store's data for each plan. A store uses one plan at a time, so that a rule without plans has
//! no overhead.

use super::CounterSpec;

/// Cached plans of a rule whose plans are not listed.
const KEPT: usize = 256;

/// A store's data for the plans that are not current.
pub struct ByPlan<T>(Option<Box<Others<T>>>);

struct Others<T> {
    spec: CounterSpec,
    in_hand: u32,
    /// Direct-mapped by plan.
    kept: Vec<Option<(u32, T)>>,
}

impl<T> ByPlan<T> {
    /// Data for a rule, with its first plan as the current one.
    pub fn new(spec: &CounterSpec) -> ByPlan<T> {
        ByPlan(spec.plans.as_ref().map(|plans| {
            let kept = (0..plans.count().unwrap_or(KEPT)).map(|_| None).collect();
            Box::new(Others { spec: spec.clone(), in_hand: plans.first(), kept })
        }))
    }

    /// The current plan; zero without plans.
    #[inline]
    pub fn in_hand(&self) -> u32 {
        self.0.as_ref().map_or(0, |others| others.in_hand)
    }

    /// Switches to a plan: exchanges its data with that of the current plan. Returns false if it is
    /// already current, or cannot be built.
    #[inline]
    pub fn take(
        &mut self,
        plan: u32,
        in_hand: &mut T,
        build: impl FnOnce(&CounterSpec) -> Option<T>,
    ) -> bool {
        // Every call of a store asks, and few change the plan.
        self.in_hand() != plan && self.switch(plan, in_hand, build)
    }

    #[inline(never)]
    fn switch(
        &mut self,
        plan: u32,
        in_hand: &mut T,
        build: impl FnOnce(&CounterSpec) -> Option<T>,
    ) -> bool {
        let Some(others) = &mut self.0 else { return false };
        let kept = others.place(plan).and_then(Option::take).filter(|(known, _)| *known == plan);
        let next = kept.map(|(_, next)| next).or_else(|| build(&others.spec.under(plan)));
        let Some(next) = next else { return false };
        let before = (others.in_hand, std::mem::replace(in_hand, next));
        if let Some(place) = others.place(before.0) {
            *place = Some(before);
        }
        others.in_hand = plan;
        true
    }
}

impl<T> Others<T> {
    fn place(&mut self, plan: u32) -> Option<&mut Option<(u32, T)>> {
        let at = plan as usize % self.kept.len().max(1);
        self.kept.get_mut(at)
    }
}
