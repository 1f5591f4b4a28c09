//! The specification of a store: all data about its rule.

use std::sync::Arc;

use diana_algorithm::{Algorithm, Capabilities, Conflict, Entry, Leasing};
use diana_policy::bloom::Shape;
use diana_policy::redis::OnFailure;
use diana_policy::{Plans, Quota};

/// The specification of a store.
#[derive(Debug, Clone)]
pub struct CounterSpec {
    /// The registry's entry of its algorithm.
    pub entry: &'static Entry,
    /// Its quota.
    pub quota: Quota,
    /// Its plans, if it has any.
    pub plans: Option<Arc<Plans>>,
    /// The number of gateways that share the quota; the store counts one equal share.
    pub gateways: u64,
    /// Whether the store counts the share of this gateway of a limit of the fleet, and so keeps
    /// [arrears](crate::slots::arrears).
    pub is_share: bool,
    /// Whether requests are decided by the gateway's knowledge of a caller, and reported to the
    /// authority of the fleet afterwards.
    pub asks_after: bool,
    /// The algorithm, built from both.
    pub algorithm: Arc<dyn Algorithm>,
    /// The cost of a request is a multiple of this. Without leases: the maximum cost.
    pub unit_cost: u64,
    /// Identifies the rule in its namespace, across configurations.
    pub fingerprint: u64,
    /// The number of live callers to make room for.
    pub keys: usize,
    /// Whether a caller has several actors. Callers with the same first actor are in one shard, so
    /// that each shard must have room for all of them.
    pub is_compound: bool,
    /// The maximum number of callers that a worker remembers, if they are not counted locally.
    pub lines: usize,
    /// The filter of a daily quota of many accounts.
    pub daily: Option<Shape>,
    /// Whether requests may also be under other rules, so that a charge may be cancelled.
    pub may_be_cancelled: bool,
    /// Whether charges are settled at the end of the request.
    pub settles: bool,
    /// Whether requests are only checked on arrival, and charged when their usage is known.
    pub checks: bool,
    /// Whether usage is stored separately from reservations.
    pub keeps_used: bool,
    /// Overrides that of `redis`.
    pub on_failure: Option<OnFailure>,
}

/// Identifies the gateway's knowledge of the callers of the rule with this fingerprint.
#[must_use]
pub fn known_fingerprint(rule: u64) -> u64 {
    // One-to-one, and different from that of its bans.
    (rule ^ 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl CounterSpec {
    /// The specification of a rule alone, of usual callers, with room for one. Without leases of
    /// another cost than that of the quota.
    ///
    /// # Errors
    /// The conflicts of the quota.
    pub fn new(
        entry: &'static Entry,
        quota: Quota,
        keeps_used: bool,
    ) -> Result<CounterSpec, Vec<Conflict>> {
        let algorithm = entry.algorithm(&quota, keeps_used)?;
        Ok(CounterSpec {
            entry,
            quota,
            algorithm,
            keeps_used,
            plans: None,
            gateways: 1,
            is_share: false,
            asks_after: false,
            unit_cost: quota.cost,
            fingerprint: 0,
            keys: 1,
            is_compound: false,
            lines: 1,
            daily: None,
            may_be_cancelled: false,
            settles: false,
            checks: false,
            on_failure: None,
        })
    }

    /// The specification of one of `gateways` equal shares.
    #[must_use]
    pub fn share(&self, gateways: u64) -> CounterSpec {
        let part = self.with((self.entry.share)(&self.quota, gateways));
        CounterSpec { gateways, ..part }
    }

    /// The specification of the store with the gateway's knowledge of the callers of a rule. A refusal
    /// there may end with the next reply of the authority.
    #[must_use]
    pub fn known(&self) -> CounterSpec {
        let fingerprint = known_fingerprint(self.fingerprint);
        CounterSpec { fingerprint, asks_after: true, may_be_cancelled: true, ..self.clone() }
    }

    /// The specification under a plan.
    #[must_use]
    pub fn under(&self, plan: u64) -> CounterSpec {
        let Some(plans) = &self.plans else { return self.clone() };
        let whole = plans.quota(plan);
        let is_whole = self.gateways == 1 && !plans.is_from_data();
        let quota = if is_whole { whole } else { (self.entry.share)(&whole, self.gateways) };
        let unit_cost = if whole.cost == plans.own.cost { self.unit_cost } else { whole.cost };
        CounterSpec { unit_cost, ..self.with(quota) }
    }

    fn with(&self, quota: Quota) -> CounterSpec {
        let built = self.entry.algorithm(&quota, self.keeps_used);
        let algorithm = built.unwrap_or_else(|_| Arc::clone(&self.algorithm));
        CounterSpec { algorithm, quota, ..self.clone() }
    }

    /// The kind of leasing, if permits can be leased under all plans.
    #[must_use]
    pub fn leasing(&self) -> Leasing {
        match self.is_any_leased(Leasing::Never) {
            true => Leasing::Never,
            false => self.capabilities().leasing,
        }
    }

    /// Returns true if permits can be leased under any plan.
    #[must_use]
    pub fn leases_by_any_plan(&self) -> bool {
        [Leasing::Window, Leasing::Bucket].into_iter().any(|leasing| self.is_any_leased(leasing))
    }

    /// Returns true if any plan has this kind of leasing.
    fn is_any_leased(&self, leasing: Leasing) -> bool {
        let is_it = |quota: &Quota| (self.entry.capabilities)(quota).leasing == leasing;
        let listed = self.plans.as_ref().map_or(&[][..], |plans| plans.listed());
        is_it(&self.quota) || listed.iter().filter_map(|plan| plan.quota.as_ref()).any(is_it)
    }

    /// The capabilities of the algorithm.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        (self.entry.capabilities)(&self.quota)
    }
}
