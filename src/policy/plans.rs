//! By which of several numbers a rule judges a request.

use super::{IdentitySource, Quota, Told};

/// How a rule comes to the numbers that it judges a request by, where they are not the same for all.
///
/// Each of them has a number of its own, a plan; what that means is known here only.
#[derive(Debug, Clone, PartialEq)]
pub struct Plans {
    /// The rule's own numbers.
    pub own: Quota,
    /// What else there is.
    pub kind: PlanKind,
}

/// What chooses a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanKind {
    /// A value that is one of their names. Any other has the rule's own numbers.
    Listed {
        /// Where the value is looked for, in order; without it, it is the one by which the caller is recognised.
        by: Option<Vec<IdentitySource>>,
        /// The plans, each under another name.
        of: Vec<Plan>,
    },
    /// Trusted data, which says the `rpu` itself; at most the rule's own.
    Told(Told),
}

/// A plan that a rule lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The value that chooses it.
    pub name: String,
    /// Its numbers; without any the rule does not judge the request.
    pub quota: Option<Quota>,
}

impl Plans {
    /// The plan by whose numbers the rule itself is built.
    #[must_use]
    pub fn first(&self) -> u32 {
        match self.kind {
            PlanKind::Listed { .. } => 0,
            PlanKind::Told(_) => plan(self.own.rpu),
        }
    }

    /// Those that the rule lists.
    #[must_use]
    pub fn listed(&self) -> &[Plan] {
        match &self.kind {
            PlanKind::Listed { of, .. } => of,
            PlanKind::Told(_) => &[],
        }
    }

    /// The rule's own numbers, but for as many permits as any plan has.
    #[must_use]
    pub fn largest(&self) -> Quota {
        let all = || self.listed().iter().filter_map(|plan| plan.quota.as_ref()).chain([&self.own]);
        let rpu = all().map(|quota| quota.rpu).max().unwrap_or(self.own.rpu);
        Quota { rpu, burst: all().filter_map(|quota| quota.burst).max(), ..self.own }
    }

    /// How many plans there are, if somebody has listed them.
    #[must_use]
    pub fn count(&self) -> Option<usize> {
        match &self.kind {
            PlanKind::Listed { of, .. } => Some(of.len() + 1),
            PlanKind::Told(_) => None,
        }
    }

    /// The numbers of a plan.
    #[must_use]
    pub fn quota(&self, plan: u32) -> Quota {
        match &self.kind {
            PlanKind::Listed { of, .. } => {
                let listed = (plan as usize).checked_sub(1).and_then(|at| of.get(at));
                listed.and_then(|plan| plan.quota).unwrap_or(self.own)
            }
            PlanKind::Told(_) => {
                let rpu = u64::from(plan);
                // By zero nothing would ever be forgotten.
                let lasting = |slowest: u64| if rpu > 0 { slowest.min(rpu) } else { slowest };
                Quota { rpu, slowest: self.own.slowest.map(lasting), ..self.own }
            }
        }
    }

    /// Whether the numbers of a plan come from a request, so that nobody has seen to it that they fit together.
    #[must_use]
    pub fn is_told(&self) -> bool {
        matches!(self.kind, PlanKind::Told(_))
    }
}

/// The plan of so many permits a unit, of which there are never more than fit.
#[must_use]
pub fn plan(rpu: u64) -> u32 {
    u32::try_from(rpu).unwrap_or(u32::MAX)
}
