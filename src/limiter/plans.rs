//! The plans of a rule, and the choice among them.

use std::rc::Rc;
use std::sync::Arc;

use diana_algorithm::Algorithm;
use diana_policy::time::Micros;
use diana_policy::{Plan, PlanKind, Plans, plan};
use diana_request::identity::caller::Callers;
use diana_request::plan::PlanSelectors;
use diana_store::CounterSpec;
use diana_store::plans::ByPlan;

/// The plans of one rule.
pub(crate) struct RulePlans {
    /// The number of the selector that reads the plan of a request.
    pub(crate) selector: usize,
    kind: PlanChoice,
    /// The algorithm of the plan that was used last.
    algorithm: Arc<dyn Algorithm>,
    algorithms: ByPlan<Arc<dyn Algorithm>>,
    /// Whether workers lease permits under any of the plans.
    pub(crate) leases: bool,
}

enum PlanChoice {
    Listed {
        /// Maps the selector's number of a name, less one, to the plan. Zero if the rule has no
        /// plan of that name.
        plans: Vec<u32>,
        listed: Vec<Listed>,
    },
    FromData {
        default: u32,
        most: u32,
    },
}

struct Listed {
    /// The name in reports.
    name: Rc<str>,
    /// The cost of a request and the quota; `None` if the plan has no limit.
    numbers: Option<(u64, u64)>,
}

/// The plan of a request.
pub(crate) struct Chosen {
    pub(crate) plan: u32,
    /// The plan's cost of a request that contains no cost; `None` means the rule's cost.
    pub(crate) cost: Option<u64>,
    /// Whether the plan refuses all requests.
    pub(crate) is_suspended: bool,
}

impl RulePlans {
    /// The plans of a rule with this spec and with the actor of this number; `None` if their source
    /// cannot be built.
    pub(crate) fn new(
        plans: &Plans,
        callers: (&Callers, Option<usize>),
        spec: &CounterSpec,
        selectors: &mut PlanSelectors,
    ) -> Option<RulePlans> {
        let (selector, kind) = match &plans.kind {
            PlanKind::FromData(source) => {
                let (default, most) = (plan(source.default), plan(plans.own.rpu));
                (selectors.of_number(source).ok()?, PlanChoice::FromData { default, most })
            }
            PlanKind::Listed { by, of } => {
                let names = of.iter().map(|plan| plan.name.as_str());
                let (selector, numbers) = selectors.of_names(by.as_deref(), callers, names).ok()?;
                (selector, PlanChoice::listed(&numbers, of, by.is_some()))
            }
        };
        let (algorithm, algorithms) = (spec.algorithm.clone(), ByPlan::new(spec));
        Some(RulePlans { selector, kind, algorithm, algorithms, leases: spec.leases_by_any_plan() })
    }

    /// The plan with the rule's own quota.
    pub(crate) fn own(&self) -> u32 {
        match self.kind {
            PlanChoice::Listed { .. } => 0,
            PlanChoice::FromData { most, .. } => most,
        }
    }

    /// Returns true if requests contain the number of permits, and no name of a plan.
    pub(crate) fn is_from_data(&self) -> bool {
        matches!(self.kind, PlanChoice::FromData { .. })
    }

    /// The plan with the number that was read from a request; `None` if its caller has no limit.
    pub(crate) fn choose(&self, read: Option<u64>) -> Option<Chosen> {
        match &self.kind {
            PlanChoice::FromData { default, most } => {
                let plan = read.map_or(*default, plan).min(*most);
                Some(Chosen { plan, cost: None, is_suspended: plan == 0 })
            }
            PlanChoice::Listed { plans, listed } => {
                let at = read.and_then(|read| usize::try_from(read).ok()?.checked_sub(1));
                let plan = at.and_then(|at| plans.get(at)).copied().unwrap_or(0);
                let Some(at) = (plan as usize).checked_sub(1) else {
                    return Some(Chosen { plan: 0, cost: None, is_suspended: false });
                };
                let (cost, rpu) = listed.get(at)?.numbers?;
                Some(Chosen { plan, cost: Some(cost), is_suspended: rpu == 0 })
            }
        }
    }

    /// The algorithm of a plan.
    pub(crate) fn algorithm(&mut self, plan: u32) -> &Arc<dyn Algorithm> {
        self.algorithms.select(plan, &mut self.algorithm, |spec| Some(spec.algorithm.clone()));
        &self.algorithm
    }

    /// The quota and the window of a plan, for headers.
    pub(crate) fn policy(&mut self, plan: u32) -> (u64, Micros) {
        match (plan, &self.kind) {
            (0, PlanChoice::FromData { .. }) => (0, self.algorithm(1).properties().window),
            _ => self.algorithm(plan).properties().quota(),
        }
    }

    /// The name of a plan.
    pub(crate) fn name(&self, plan: u32) -> Option<Rc<str>> {
        let PlanChoice::Listed { listed, .. } = &self.kind else { return None };
        let at = (plan as usize).checked_sub(1)?;
        listed.get(at).map(|plan| plan.name.clone())
    }
}

impl PlanChoice {
    fn listed(numbers: &[u32], of: &[Plan], is_shown: bool) -> PlanChoice {
        let most = numbers.iter().max().copied().unwrap_or(0);
        let mut plans = vec![0; most as usize];
        for (number, index) in numbers.iter().zip(1..) {
            let at = (*number as usize).checked_sub(1);
            if let Some(plan) = at.and_then(|at| plans.get_mut(at)) {
                *plan = index;
            }
        }
        // A plan of a single caller has the caller's name, which no report contains.
        let own: Rc<str> = "own".into();
        let listed = of.iter().map(|Plan { name, quota }| Listed {
            name: if is_shown { name.as_str().into() } else { own.clone() },
            numbers: quota.map(|quota| (quota.cost, quota.rpu)),
        });
        PlanChoice::Listed { listed: listed.collect(), plans }
    }
}
