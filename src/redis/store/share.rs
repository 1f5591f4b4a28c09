//! The gateway's share of a limit, which it enforces while Redis is unavailable.
//!
//! Permits granted by Redis are also charged to the share, so that a gateway without Redis admits
//! its share minus the permits granted before. In a bucket they drain at the rate of the share: at
//! the rate of the limit, the share would be full again at each short outage. The permits of the
//! share are charged at Redis with the next question about the caller.

use diana_algorithm::Leasing;
use diana_policy::time::Now;
use diana_store::share::GatewayShare;
use diana_store::shared::Shared;
use diana_store::slots::arrears::Arrears;
use diana_store::stores::Stores;
use diana_store::{Account, CounterSpec, Store};

/// The gateway's share of one rule.
pub(super) struct Share {
    spec: CounterSpec,
    open_grants: Box<dyn Fn(CounterSpec) -> Shared>,
    /// Counts permits granted by Redis, and arrears: of a bucket against the share of one of
    /// `grants_of` gateways, otherwise against the whole limit. `None` for in-flight slots, where
    /// past grants do not affect the share.
    grants: Option<Shared>,
    grants_of: u64,
    /// Whether usage drains.
    drains: bool,
    /// Counts against the share.
    part: GatewayShare,
}

impl Share {
    pub(super) fn new(spec: CounterSpec, stores: &mut Stores<'_>) -> Share {
        // Queue positions of the share are not charged at Redis: they would be too late.
        let is_share = !spec.capabilities().holds;
        let spec = CounterSpec { is_share, ..spec };
        let open_grants = stores.shared_opener();
        let grants = (!spec.algorithm.properties().is_held).then(|| open_grants(spec.clone()));
        let drains = spec.capabilities().leasing == Leasing::Bucket;
        let part = GatewayShare::new(spec.clone(), stores);
        Share { spec, open_grants: Box::new(open_grants), grants, grants_of: 1, drains, part }
    }

    /// The store of one of `gateways` equal shares.
    pub(super) fn of(&mut self, gateways: u64, now: Now) -> &mut dyn Store {
        self.part.of(gateways, now)
    }

    /// The store of grants and arrears, for this number of gateways.
    fn grants_for(&mut self, gateways: u64) -> Option<&mut Shared> {
        if self.drains && self.grants_of != gateways {
            self.grants_of = gateways;
            self.grants = Some((self.open_grants)(self.spec.share(gateways)));
        }
        self.grants.as_mut()
    }

    /// The caller's arrears for a question to Redis: permits that this gateway admitted as its
    /// share.
    pub(super) fn send_arrears(
        &mut self,
        account: Account,
        gateways: u64,
        now: Now,
    ) -> Option<Arrears> {
        let has_arrears = self.spec.is_share && self.part.daily().is_none();
        if has_arrears { self.grants_for(gateways)?.send_arrears(account, now) } else { None }
    }

    /// The most permits by which arrears may exceed the limit in Redis: one share of a bucket.
    pub(super) fn overdraft(&mut self, gateways: u64) -> u64 {
        let drains = self.drains;
        self.grants_for(gateways).filter(|_| drains).map_or(0, |grants| grants.most())
    }

    /// Ends arrears that Redis has charged.
    pub(super) fn confirm_arrears(
        &mut self,
        account: Account,
        charged: Arrears,
        gateways: u64,
        now: Now,
    ) {
        if let Some(grants) = self.grants_for(gateways) {
            grants.confirm_arrears(account, charged, now);
        }
    }

    /// Charges permits granted by Redis.
    pub(super) fn record_grant(&mut self, account: Account, permits: u64, gateways: u64, now: Now) {
        if let Some(daily) = self.part.daily() {
            return daily.record_grant(account.key, permits, now);
        }
        if let Some(grants) = self.grants_for(gateways) {
            grants.record_grant(account, permits, now);
        }
    }
}
