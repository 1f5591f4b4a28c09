//! The gateway's share of a limit, which it enforces while Redis is unavailable.
//!
//! Permits granted by Redis are also charged to the share, so that a gateway without Redis admits
//! its share minus the permits granted before. The permits of the share are charged at Redis with
//! the next question about the caller.

use diana_policy::time::Now;
use diana_store::daily::Daily;
use diana_store::shared::Shared;
use diana_store::slots::arrears::Arrears;
use diana_store::stores::Stores;
use diana_store::{Account, CounterSpec, Store};

/// The gateway's share of one rule.
pub(super) struct Share {
    spec: CounterSpec,
    open: Box<dyn Fn(CounterSpec) -> Box<dyn Store>>,
    /// Counts against the whole limit. `None` for in-flight slots, where past grants do not affect
    /// the share.
    whole: Option<Shared>,
    /// Counts against the share, for this number of gateways.
    store: Box<dyn Store>,
    gateways: u64,
    /// For daily quotas of many accounts, replaces both, and enforces the share in each worker.
    daily: Option<Daily>,
}

impl Share {
    pub(super) fn new(spec: CounterSpec, stores: &mut Stores<'_>) -> Share {
        // Queue positions of the share are not charged at Redis: they would be too late.
        let is_share = !spec.capabilities().holds;
        let spec = CounterSpec { is_share, ..spec };
        let whole =
            (!spec.algorithm.properties().is_held).then(|| stores.open_shared(spec.clone()));
        let open = stores.opener(&spec);
        let store = open(spec.clone());
        let daily = stores.open_daily(&spec);
        Share { spec, open: Box::new(open), whole, store, gateways: 1, daily }
    }

    /// The store of one of `gateways` equal shares.
    pub(super) fn store_for(&mut self, gateways: u64, now: Now) -> &mut dyn Store {
        match &mut self.daily {
            Some(daily) => daily.share(gateways),
            None if self.gateways != gateways => {
                self.gateways = gateways;
                self.store.close(now);
                self.store = (self.open)(self.spec.share(gateways));
            }
            None => {}
        }
        self.last()
    }

    /// The store that [`Share::store_for`] returned last.
    pub(super) fn last(&mut self) -> &mut dyn Store {
        match &mut self.daily {
            Some(daily) => daily,
            None => &mut *self.store,
        }
    }

    /// The caller's arrears for a question to Redis: permits that this gateway admitted as its
    /// share.
    pub(super) fn send_arrears(&mut self, account: Account, now: Now) -> Option<Arrears> {
        let has_arrears = self.spec.is_share && self.daily.is_none();
        self.whole.as_mut().filter(|_| has_arrears)?.send_arrears(account, now)
    }

    /// Ends arrears that Redis has charged.
    pub(super) fn confirm_arrears(&mut self, account: Account, charged: Arrears, now: Now) {
        if let Some(whole) = &mut self.whole {
            whole.confirm_arrears(account, charged, now);
        }
    }

    /// Charges permits granted by Redis.
    pub(super) fn record_grant(&mut self, account: Account, permits: u64, now: Now) {
        match (&mut self.daily, &mut self.whole) {
            (Some(daily), _) => daily.record_grant(account.key, permits, now),
            (None, Some(whole)) => whole.record_grant(account, permits, now),
            (None, None) => {}
        }
    }
}
