//! Plans: alternative quotas of a rule.

use super::time::Micros;
use super::{IdentitySource, NumberSource, Quota, Starts};

/// The quotas of a rule that depend on the request.
///
/// Each plan has a number. Its meaning is private to this module.
#[derive(Debug, Clone, PartialEq)]
pub struct Plans {
    /// The quota of the rule itself.
    pub own: Quota,
    /// The other plans.
    pub kind: PlanKind,
    /// Trusted data that contains the first day of a caller's months. The number of a plan then
    /// contains it, too.
    pub month_starts: Option<NumberSource>,
}

/// Numbers of plans for each plan, if they contain the first day of a month.
const DAYS: u64 = Starts::LAST as u64 + 1;

/// The selection of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanKind {
    /// By a value that equals the name of a plan.
    Listed {
        /// Sources of the value, in order. `None` uses the value that identifies the caller.
        by: Option<Vec<IdentitySource>>,
        /// The plans, with distinct names.
        of: Vec<Plan>,
        /// Whether the rule applies only under these plans. Otherwise all other values select the
        /// rule's own quota.
        is_other_unlimited: bool,
    },
    /// Trusted data that contains the `rpu`. It is limited to the rule's own.
    FromData(NumberSource),
}

/// A plan in a rule's list.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The value that selects it.
    pub name: String,
    /// Its quota. Without one the rule does not apply.
    pub quota: Option<Quota>,
    /// The instant of the wall clock from which on its callers have the rule's own quota.
    pub until: Option<Micros>,
}

impl Plans {
    /// The plan with the quota that the rule's algorithm is built from.
    #[must_use]
    pub fn first(&self) -> u64 {
        let plan = match self.kind {
            PlanKind::Listed { .. } => 0,
            PlanKind::FromData(_) => self.own.rpu,
        };
        self.starting(plan, self.own.starts.month)
    }

    /// A plan with this first day of a month, if requests contain one.
    #[must_use]
    pub fn starting(&self, plan: u64, day: u8) -> u64 {
        let is_in_data = self.month_starts.is_some();
        if is_in_data { plan.saturating_mul(DAYS).saturating_add(day.into()) } else { plan }
    }

    /// The plan without the first day of a month, and that day.
    fn parts(&self, plan: u64) -> (u64, u8) {
        match self.month_starts {
            Some(_) => (plan / DAYS, (plan % DAYS) as u8),
            None => (plan, self.own.starts.month),
        }
    }

    /// The number of a listed plan less one, or the `rpu` of the caller.
    #[must_use]
    pub fn base(&self, plan: u64) -> u64 {
        self.parts(plan).0
    }

    /// The plans in the rule's list.
    #[must_use]
    pub fn listed(&self) -> &[Plan] {
        match &self.kind {
            PlanKind::Listed { of, .. } => of,
            PlanKind::FromData(_) => &[],
        }
    }

    /// The rule's own quota with the highest `rpu` and `burst` of all plans.
    #[must_use]
    pub fn largest(&self) -> Quota {
        let all = || self.listed().iter().filter_map(|plan| plan.quota.as_ref()).chain([&self.own]);
        let rpu = all().map(|quota| quota.rpu).max().unwrap_or(self.own.rpu);
        Quota { rpu, burst: all().filter_map(|quota| quota.burst).max(), ..self.own }
    }

    /// The number of plans, if requests contain no number of them.
    #[must_use]
    pub fn count(&self) -> Option<usize> {
        match &self.kind {
            PlanKind::Listed { of, .. } if self.month_starts.is_none() => Some(of.len() + 1),
            _ => None,
        }
    }

    /// The quota of a plan.
    #[must_use]
    pub fn quota(&self, plan: u64) -> Quota {
        let (plan, month) = self.parts(plan);
        let quota = self.base_quota(plan);
        Quota { starts: Starts { month, ..quota.starts }, ..quota }
    }

    fn base_quota(&self, plan: u64) -> Quota {
        match &self.kind {
            PlanKind::Listed { of, .. } => {
                let listed = (plan as usize).checked_sub(1).and_then(|at| of.get(at));
                listed.and_then(|plan| plan.quota).unwrap_or(self.own)
            }
            PlanKind::FromData(_) => {
                let rpu = plan;
                // With zero, states would never expire.
                let lasting = |slowest: u64| if rpu > 0 { slowest.min(rpu) } else { slowest };
                Quota { rpu, slowest: self.own.slowest.map(lasting), ..self.own }
            }
        }
    }

    /// Returns true if requests contain the `rpu` of a plan, so that the combination of parameters
    /// was not validated.
    #[must_use]
    pub fn is_from_data(&self) -> bool {
        matches!(self.kind, PlanKind::FromData(_))
    }
}
