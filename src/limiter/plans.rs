//! The plans of a rule, and the choice among them.

use std::rc::Rc;
use std::sync::Arc;

use diana_algorithm::Algorithm;
use diana_policy::time::{Micros, Now};
use diana_policy::{Plan, PlanKind, Plans, Starts};
use diana_request::identity::caller::Callers;
use diana_request::plan::PlanSelectors;
use diana_store::CounterSpec;
use diana_store::plans::ByPlan;

/// The plans of one rule.
pub(crate) struct RulePlans {
    plans: Arc<Plans>,
    /// The number of the selector that reads the plan of a request.
    pub(crate) selector: usize,
    /// That of the selector that reads the first day of a month, if requests contain it.
    pub(crate) month_selector: Option<usize>,
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
        plans: Vec<u64>,
        listed: Vec<Listed>,
        is_other_unlimited: bool,
    },
    FromData {
        default: u64,
        most: u64,
    },
}

struct Listed {
    /// The name in reports.
    name: Rc<str>,
    /// The cost of a request and the quota; `None` if the plan has no limit.
    numbers: Option<(u64, u64)>,
    /// When the plan ends, on the wall clock.
    until: Option<Micros>,
}

/// The plan of a request.
pub(crate) struct Chosen {
    pub(crate) plan: u64,
    /// The plan's cost of a request that contains no cost; `None` means the rule's cost.
    pub(crate) cost: Option<u64>,
    /// Whether the plan refuses all requests.
    pub(crate) is_suspended: bool,
}

impl RulePlans {
    /// The plans of a rule with this spec and with the actor of this number; `None` if their source
    /// cannot be built.
    pub(crate) fn new(
        plans: &Arc<Plans>,
        callers: (&Callers, Option<usize>),
        spec: &CounterSpec,
        selectors: &mut PlanSelectors,
    ) -> Option<RulePlans> {
        let (selector, kind) = match &plans.kind {
            PlanKind::FromData(source) => {
                let (default, most) = (source.default, plans.own.rpu);
                (selectors.of_number(source).ok()?, PlanChoice::FromData { default, most })
            }
            PlanKind::Listed { by, of, is_other_unlimited } => {
                let names = of.iter().map(|plan| plan.name.as_str());
                // Without plans, no value selects one.
                let callers = if of.is_empty() { (callers.0, None) } else { callers };
                let (selector, numbers) = selectors.of_names(by.as_deref(), callers, names).ok()?;
                (selector, PlanChoice::listed(&numbers, of, by.is_some(), *is_other_unlimited))
            }
        };
        let month = plans.month_starts.as_ref();
        let month_selector = month.map(|source| selectors.of_number(source)).transpose().ok()?;
        let (algorithm, algorithms) = (spec.algorithm.clone(), ByPlan::new(spec));
        let (leases, plans) = (spec.leases_by_any_plan(), plans.clone());
        Some(RulePlans { plans, selector, month_selector, kind, algorithm, algorithms, leases })
    }

    /// The plan with the rule's own quota.
    pub(crate) fn own(&self) -> u64 {
        self.plans.first()
    }

    /// The plan with the first day of a month that was read from a request. Other numbers than days
    /// select the default.
    pub(crate) fn starting(&self, chosen: Chosen, read: Option<u64>) -> Chosen {
        let day = read.and_then(|day| u8::try_from(day).ok());
        let day = day.filter(|day| (1..=Starts::LAST).contains(day));
        let plan = self.plans.starting(chosen.plan, day.unwrap_or(self.plans.own.starts.month));
        Chosen { plan, ..chosen }
    }

    /// Returns true if requests contain the number of permits, and no name of a plan.
    pub(crate) fn is_from_data(&self) -> bool {
        matches!(self.kind, PlanChoice::FromData { .. })
    }

    /// The plan with the number that was read from a request at `now`; `None` if its caller has no
    /// limit.
    pub(crate) fn choose(&self, read: Option<u64>, now: impl FnOnce() -> Now) -> Option<Chosen> {
        match &self.kind {
            PlanChoice::FromData { default, most } => {
                let plan = read.unwrap_or(*default).min(*most);
                Some(Chosen { plan, cost: None, is_suspended: plan == 0 })
            }
            PlanChoice::Listed { plans, listed, is_other_unlimited } => {
                let at = read.and_then(|read| usize::try_from(read).ok()?.checked_sub(1));
                let plan = at.and_then(|at| plans.get(at)).copied().unwrap_or(0);
                let own = Chosen { plan: 0, cost: None, is_suspended: false };
                let Some(at) = (plan as usize).checked_sub(1) else {
                    return (!is_other_unlimited).then_some(own);
                };
                let Listed { numbers, until, .. } = listed.get(at)?;
                if until.is_some_and(|until| now().wall >= until) {
                    return Some(own);
                }
                let (cost, rpu) = (*numbers)?;
                Some(Chosen { plan, cost: Some(cost), is_suspended: rpu == 0 })
            }
        }
    }

    /// The algorithm of a plan.
    pub(crate) fn algorithm(&mut self, plan: u64) -> &Arc<dyn Algorithm> {
        self.algorithms.select(plan, &mut self.algorithm, |spec| Some(spec.algorithm.clone()));
        &self.algorithm
    }

    /// The quota and the window of a plan, for headers.
    pub(crate) fn policy(&mut self, plan: u64) -> (u64, Micros) {
        // A quota of 0 has no window.
        let slowest = self.plans.starting(1, self.plans.own.starts.month);
        match (self.plans.base(plan), &self.kind) {
            (0, PlanChoice::FromData { .. }) => (0, self.algorithm(slowest).properties().window),
            _ => self.algorithm(plan).properties().quota(),
        }
    }

    /// The name of a plan.
    pub(crate) fn name(&self, plan: u64) -> Option<Rc<str>> {
        let PlanChoice::Listed { listed, .. } = &self.kind else { return None };
        let at = (self.plans.base(plan) as usize).checked_sub(1)?;
        listed.get(at).map(|plan| plan.name.clone())
    }
}

impl PlanChoice {
    fn listed(
        numbers: &[u32],
        of: &[Plan],
        is_shown: bool,
        is_other_unlimited: bool,
    ) -> PlanChoice {
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
        let listed = of.iter().map(|Plan { name, quota, until }| Listed {
            name: if is_shown { name.as_str().into() } else { own.clone() },
            numbers: quota.map(|quota| (quota.cost, quota.rpu)),
            until: *until,
        });
        PlanChoice::Listed { listed: listed.collect(), plans, is_other_unlimited }
    }
}
