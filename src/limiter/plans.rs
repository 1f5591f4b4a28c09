//! By which of its plans a rule judges a request.

use std::rc::Rc;

use crate::limiter::{CompiledRule, Limiter};
use diana_algorithm::Algorithm;
use diana_policy::port::Request;
use diana_policy::time::Micros;
use diana_policy::{Plan, PlanKind, Plans, plan};
use diana_request::identity::caller::Callers;
use diana_request::plan::Choosers;
use diana_store::CounterSpec;
use diana_store::plans::ByPlan;

/// The plans of one rule.
pub(crate) struct RulePlans {
    /// What chooses among them.
    chooser: usize,
    kind: Kind,
    /// What the plan counts by that was last asked for.
    algorithm: Rc<dyn Algorithm>,
    algorithms: ByPlan<Rc<dyn Algorithm>>,
    /// Whether permits are kept by workers under any of them.
    pub(crate) lends: bool,
}

enum Kind {
    Listed {
        /// The plan of each name that the chooser knows, less one; zero if the rule knows no such.
        plans: Vec<u32>,
        listed: Vec<Listed>,
    },
    Told {
        default: u32,
        most: u32,
    },
}

struct Listed {
    /// What is told of it.
    name: Rc<str>,
    /// What a request takes, and how much it allows; nothing if the rule does not judge it.
    numbers: Option<(u64, u64)>,
}

/// By what a request is judged.
pub(crate) struct Chosen {
    pub(crate) plan: u32,
    /// What it takes, unless it says so itself; nothing if it is what most do.
    pub(crate) cost: Option<u64>,
    /// Whether the plan refuses everything.
    pub(crate) is_suspended: bool,
}

impl RulePlans {
    /// The plans of a rule with this spec and with the actor of this number; `None` if their source cannot be built.
    pub(crate) fn new(
        plans: &Plans,
        callers: (&Callers, Option<usize>),
        spec: &CounterSpec,
        choosers: &mut Choosers,
    ) -> Option<RulePlans> {
        let (chooser, kind) = match &plans.kind {
            PlanKind::Told(told) => {
                let (default, most) = (plan(told.default), plan(plans.own.rpu));
                (choosers.of_number(told).ok()?, Kind::Told { default, most })
            }
            PlanKind::Listed { by, of } => {
                let names = of.iter().map(|plan| plan.name.as_str());
                let (chooser, numbers) = choosers.of_names(by.as_deref(), callers, names).ok()?;
                (chooser, Kind::listed(&numbers, of, by.is_some()))
            }
        };
        let (algorithm, algorithms) = (spec.algorithm.clone(), ByPlan::new(spec));
        Some(RulePlans { chooser, kind, algorithm, algorithms, lends: spec.lends_by_any_plan() })
    }

    /// The plan that has the rule's own numbers.
    pub(crate) fn own(&self) -> u32 {
        match self.kind {
            Kind::Listed { .. } => 0,
            Kind::Told { most, .. } => most,
        }
    }

    /// What a plan counts by.
    pub(crate) fn algorithm(&mut self, plan: u32) -> &Rc<dyn Algorithm> {
        self.algorithms.take(plan, &mut self.algorithm, |spec| Some(spec.algorithm.clone()));
        &self.algorithm
    }

    /// What clients are told of a plan.
    pub(crate) fn policy(&mut self, plan: u32) -> (u64, Micros) {
        match (plan, &self.kind) {
            (0, Kind::Told { .. }) => (0, self.algorithm(1).properties().window),
            _ => self.algorithm(plan).properties().quota(),
        }
    }

    /// What a plan is called.
    pub(crate) fn name(&self, plan: u32) -> Option<Rc<str>> {
        let Kind::Listed { listed, .. } = &self.kind else { return None };
        let at = (plan as usize).checked_sub(1)?;
        listed.get(at).map(|plan| plan.name.clone())
    }
}

impl Kind {
    fn listed(numbers: &[u32], of: &[Plan], is_shown: bool) -> Kind {
        let most = numbers.iter().max().copied().unwrap_or(0);
        let mut plans = vec![0; most as usize];
        for (number, place) in numbers.iter().zip(1..) {
            let at = (*number as usize).checked_sub(1);
            at.and_then(|at| plans.get_mut(at)).into_iter().for_each(|plan| *plan = place);
        }
        // How a caller is called stands nowhere else, either.
        let own: Rc<str> = "own".into();
        let listed = of.iter().map(|Plan { name, quota }| Listed {
            name: if is_shown { name.as_str().into() } else { own.clone() },
            numbers: quota.map(|quota| (quota.cost, quota.rpu)),
        });
        Kind::Listed { listed: listed.collect(), plans }
    }
}

impl Limiter {
    /// Whether a rule does not judge a request since its plan is unlimited.
    pub(crate) fn has_no_limit(&mut self, number: usize, request: &dyn Request) -> bool {
        let has_plans = self.rules.get(number).is_some_and(|judge| judge.plans.is_some());
        has_plans && self.choose(number, request).is_none()
    }

    /// By what a rule with plans judges a request; nothing if it does not.
    #[inline(never)]
    pub(crate) fn choose(&mut self, number: usize, request: &dyn Request) -> Option<Chosen> {
        let CompiledRule { plans, counts, .. } = self.rules.get_mut(number)?;
        let RulePlans { chooser, kind, .. } = plans.as_deref()?;
        let said = self.choosers.look(*chooser, &self.callers, request);
        match kind {
            Kind::Told { default, most } => {
                counts.limit_missing += u64::from(said.is_none() && !self.scratch.is_counted);
                let plan = said.map_or(*default, plan).min(*most);
                Some(Chosen { plan, cost: None, is_suspended: plan == 0 })
            }
            Kind::Listed { plans, listed } => {
                let at = said.and_then(|said| usize::try_from(said).ok()?.checked_sub(1));
                let plan = at.and_then(|at| plans.get(at)).copied().unwrap_or(0);
                let Some(at) = (plan as usize).checked_sub(1) else {
                    return Some(Chosen { plan: 0, cost: None, is_suspended: false });
                };
                let (cost, rpu) = listed.get(at)?.numbers?;
                Some(Chosen { plan, cost: Some(cost), is_suspended: rpu == 0 })
            }
        }
    }
}
