//! A gateway's share of a limit: one of as many equal parts as there are gateways.

use std::cell::Cell;
use std::rc::Rc;

use super::daily::Daily;
use super::permit::OpenCharge;
use super::replies::Replies;
use super::stores::Stores;
use super::usage::{Maintained, Order, OrderError, Remaining, Usage};
use super::{Account, CounterSpec, Reservation, Store};
use diana_policy::time::{Micros, Now};

/// The share of one rule. Usage continues when the number of gateways changes.
pub struct GatewayShare {
    spec: CounterSpec,
    open: Box<dyn Fn(CounterSpec) -> Box<dyn Store>>,
    /// Counts against the share, for this number of gateways.
    store: Box<dyn Store>,
    gateways: u64,
    /// For daily quotas of many accounts, replaces both, and enforces the share in each worker.
    daily: Option<Daily>,
}

impl GatewayShare {
    /// The share of a rule, which is the whole limit at first.
    pub fn new(spec: CounterSpec, stores: &mut Stores<'_>) -> GatewayShare {
        let open = stores.opener(&spec);
        let store = open(spec.clone());
        let daily = stores.open_daily(&spec);
        GatewayShare { spec, open: Box::new(open), store, gateways: 1, daily }
    }

    /// The store of one of `gateways` equal shares.
    pub fn of(&mut self, gateways: u64, now: Now) -> &mut dyn Store {
        match &mut self.daily {
            Some(daily) => daily.share(gateways),
            None if self.gateways != gateways => {
                self.gateways = gateways;
                self.store.close(now);
                self.store = (self.open)(self.spec.share(gateways));
            }
            None => {}
        }
        match &mut self.daily {
            Some(daily) => daily,
            None => &mut *self.store,
        }
    }

    /// The store of a daily quota of many accounts.
    pub fn daily(&mut self) -> Option<&mut Daily> {
        self.daily.as_mut()
    }
}

/// The store of a rule of which each gateway always enforces its share.
pub(super) struct ShareStore {
    share: GatewayShare,
    /// The known number of gateways.
    known: Rc<Cell<u64>>,
    /// How many there are at least.
    least: u64,
}

impl ShareStore {
    pub(super) fn new(spec: CounterSpec, least: u64, stores: &mut Stores<'_>) -> ShareStore {
        let known = stores.gateways.clone();
        ShareStore { share: GatewayShare::new(spec, stores), known, least }
    }

    fn at(&mut self, now: Now) -> &mut dyn Store {
        self.share.of(self.known.get().max(self.least), now)
    }
}

impl Store for ShareStore {
    fn check(&mut self, reservation: &mut Reservation, replies: &Replies) {
        self.at(reservation.now).check(reservation, replies);
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) {
        self.at(reservation.now).charge(reservation, delay);
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        self.at(reservation.now).cancel(reservation);
    }

    fn settle(&mut self, charge: &OpenCharge, now: Now) -> bool {
        self.at(now).settle(charge, now)
    }

    fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining> {
        self.at(reservation.now).remaining(reservation)
    }

    fn inquire(
        &mut self,
        account: Account,
        order: Order,
        replies: &Replies,
        now: Now,
    ) -> Result<Usage, OrderError> {
        self.at(now).inquire(account, order, replies, now)
    }

    fn maintain(&mut self, now: Now) -> Maintained {
        self.at(now).maintain(now)
    }

    fn close(&mut self, now: Now) -> i64 {
        self.at(now).close(now)
    }
}
