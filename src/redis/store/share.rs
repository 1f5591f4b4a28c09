//! The gateway's part of a limit, by which it goes while Redis cannot be relied upon.
//!
//! What the fleet's limit let through here is noted where the part is counted, so that a gateway that
//! is cut off admits its part less what it admitted before.

use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_store::daily::Daily;
use diana_store::shared::Shared;
use diana_store::stores::Stores;
use diana_store::{CounterSpec, Store};

/// The gateway's part of one rule.
pub(super) struct Share {
    spec: CounterSpec,
    plan: u32,
    open: Box<dyn Fn(CounterSpec) -> Box<dyn Store>>,
    /// Counts by the whole limit, unless what Redis let through says nothing about the part.
    whole: Option<Shared>,
    /// Counts by the part, and for how many gateways that was worked out.
    part: Box<dyn Store>,
    gateways: u64,
    /// Counts in place of both, by the part of each worker, where there are many accounts by the day.
    daily: Option<Daily>,
}

impl Share {
    pub(super) fn new(spec: CounterSpec, stores: &mut Stores<'_>) -> Share {
        let whole =
            (!spec.algorithm.properties().is_held).then(|| stores.open_shared(spec.clone()));
        let open = stores.opener(&spec);
        let part = open(spec.clone());
        let daily = stores.open_daily(&spec);
        let plan = spec.plans.as_ref().map_or(0, |plans| plans.first());
        Share { spec, plan, open: Box::new(open), whole, part, gateways: 1, daily }
    }

    /// As [`Store::judge_by`].
    pub(super) fn judge_by(&mut self, plan: u32) {
        self.plan = plan;
        self.part.judge_by(plan);
        self.whole.iter_mut().for_each(|whole| whole.judge_by(plan));
        self.daily.iter_mut().for_each(|daily| daily.judge_by(plan));
    }

    /// The part of one of so many gateways.
    pub(super) fn part(&mut self, gateways: u64, now: Now) -> &mut dyn Store {
        match &mut self.daily {
            Some(daily) => daily.share(gateways),
            None if self.gateways != gateways => {
                self.gateways = gateways;
                self.part.close(now);
                self.part = (self.open)(self.spec.part(gateways));
                self.part.judge_by(self.plan);
            }
            None => {}
        }
        self.last()
    }

    /// The part that was asked for last.
    pub(super) fn last(&mut self) -> &mut dyn Store {
        match &mut self.daily {
            Some(daily) => daily,
            None => &mut *self.part,
        }
    }

    /// Notes what the fleet's limit let through.
    pub(super) fn note(&mut self, key: Key, permits: u64, now: Now) {
        match &mut self.daily {
            Some(daily) => daily.note(key, permits, now),
            None => self.whole.iter_mut().for_each(|whole| whole.note(key, permits, now)),
        }
    }
}
