//! What a store needs of each plan, of which one is in hand: a store knows one plan at a time, so that a rule without
//! plans has nothing to do with any.

use super::CounterSpec;

/// Those of a rule whose plans nobody has listed that are kept at a time.
const KEPT: usize = 256;

/// What a store needs of the plans that are not in hand.
pub struct ByPlan<T>(Option<Box<Others<T>>>);

struct Others<T> {
    spec: CounterSpec,
    in_hand: u32,
    /// Each plan has one place where it may be.
    kept: Vec<Option<(u32, T)>>,
}

impl<T> ByPlan<T> {
    /// Of a rule of which the numbers that it is built by are in hand.
    pub fn new(spec: &CounterSpec) -> ByPlan<T> {
        ByPlan(spec.plans.as_ref().map(|plans| {
            let kept = (0..plans.count().unwrap_or(KEPT)).map(|_| None).collect();
            Box::new(Others { spec: spec.clone(), in_hand: plans.first(), kept })
        }))
    }

    /// The plan in hand; zero if there are none.
    pub fn in_hand(&self) -> u32 {
        self.0.as_ref().map_or(0, |others| others.in_hand)
    }

    /// Takes a plan in hand, in place of the one before. Whether that was another one.
    pub fn take(
        &mut self,
        plan: u32,
        in_hand: &mut T,
        build: impl FnOnce(&CounterSpec) -> Option<T>,
    ) -> bool {
        let Some(others) = self.0.as_mut().filter(|others| others.in_hand != plan) else {
            return false;
        };
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
