//! Usage counted for the whole fleet, in Redis, which replies asynchronously.
//!
//! A request that this worker cannot decide waits for the reply of Redis. For a busy caller the
//! worker leases blocks of permits, and requests the next block before one is spent. It remembers a
//! refusal briefly. While Redis is unavailable, the gateway enforces its share of the limit.

mod operations;
mod parameters;
mod recall;
mod replies;
mod reset;
mod share;

use std::cell::RefCell;
use std::rc::Rc;

use super::outbox::Outbox;
use super::protocol::{Charge, Effect, Question};
use super::results::QuestionResult;
use super::shard::Shards;
use diana_algorithm::latest_renewal;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::leases::Leases;
use diana_store::permit::OpenCharge;
use diana_store::plans::ByPlan;
use diana_store::refusal::{Reason, Refused};
use diana_store::reservation::{Decider, Memo};
use diana_store::stores::Stores;
use diana_store::usage::{Inquiry, Maintained, OrderError, Remaining, Usage};
use diana_store::{Account, CheckOutcome, CounterSpec, Reservation, Store};
use parameters::Parameters;
use share::Share;

/// The refusal of all requests because Redis is unavailable.
const UNAVAILABLE: Refused =
    Refused { reason: Reason::Unavailable, retry: Retry::After(SECOND), remaining: None };

/// The store of a rule that all gateways count together.
pub struct RedisStore {
    /// The state of Redis, and the operations for it.
    outbox: Rc<RefCell<Outbox>>,
    /// The number of the rule in its limiter.
    number: usize,
    parameters: Parameters,
    plans: ByPlan<Parameters>,
    leases: Leases,
    share: Share,
    /// The shards over which its callers are spread.
    shards: Shards,
    /// The maximum number of callers with a separate value in one shard.
    keys: u64,
    /// Whether permits are in-flight slots.
    is_in_flight: bool,
}

/// The error if the Redis script does not support a rule's algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCodec;

impl RedisStore {
    /// The store of the rule with this number. Its callers are distributed over the shards.
    ///
    /// # Errors
    /// If the Redis script does not support its algorithm.
    pub fn new(
        spec: CounterSpec,
        number: usize,
        outbox: Rc<RefCell<Outbox>>,
        stores: &mut Stores<'_>,
    ) -> Result<RedisStore, NoCodec> {
        let shards = spread(&spec, &outbox.borrow());
        let store = RedisStore {
            outbox,
            number,
            parameters: Parameters::of(&spec, shards).ok_or(NoCodec)?,
            plans: ByPlan::new(&spec),
            leases: Leases::of(&spec),
            shards,
            keys: shards.share(spec.keys as u64),
            is_in_flight: spec.algorithm.properties().is_held,
            share: Share::new(spec, stores),
        };
        store.outbox.borrow_mut().add_rule(store.empty_charge(Key::ALL));
        Ok(store)
    }

    /// Switches to the quota of this plan.
    #[inline]
    pub fn use_plan(&mut self, plan: u32) {
        let shards = self.shards;
        if self.plans.select(plan, &mut self.parameters, |spec| Parameters::of(spec, shards)) {
            self.leases.plan = plan;
        }
    }

    /// The result of the question about a caller.
    fn result(&self, key: Key) -> Option<QuestionResult> {
        self.outbox.borrow().results.of(self.parameters.spec.fingerprint, key)
    }

    /// A caller under the current plan.
    fn account(&self, key: Key) -> Account {
        Account { key, plan: self.plans.current() }
    }

    /// Returns true if this worker first reports slots that Redis may have forgotten.
    fn is_reporting(&self, key: Key, now: Micros) -> bool {
        let mut outbox = self.outbox.borrow_mut();
        let shard = outbox.shards.of(key);
        outbox.ledgers.is_reporting(shard, now)
    }

    /// Decides without Redis, now and when the reservation is checked again.
    fn check_degraded(&mut self, reservation: &mut Reservation) {
        let now = reservation.now;
        let (on_failure, gateways) = {
            let mut outbox = self.outbox.borrow_mut();
            outbox.in_use = true;
            (self.parameters.spec.on_failure.unwrap_or(outbox.on_failure), outbox.gateways)
        };
        (reservation.by, reservation.memo) = (Decider::Unavailable, Memo::Empty);
        reservation.outcome = match on_failure {
            OnFailure::Gateway => {
                reservation.by = Decider::Share;
                return self.share.store_for(gateways, now).check(reservation);
            }
            OnFailure::Allow => CheckOutcome::NOW,
            OnFailure::Deny => CheckOutcome::Refused(UNAVAILABLE),
        };
    }
}

/// The number of shards over which the callers of a rule are spread.
pub(crate) fn spread(spec: &CounterSpec, outbox: &Outbox) -> Shards {
    if spec.is_compound { Shards::ONE } else { outbox.shards }
}

impl Store for RedisStore {
    fn check(&mut self, reservation: &mut Reservation) {
        let Reservation { account, cost, now, .. } = *reservation;
        self.use_plan(account.plan);
        if reservation.is_degraded() {
            return self.check_degraded(reservation);
        }
        match (reservation.memo, &mut reservation.outcome) {
            (Memo::Asked(arrears), _) => return self.on_result(arrears, reservation),
            (Memo::Granted { until, .. }, CheckOutcome::Admitted { wait, .. }) => {
                *wait = until.saturating_sub(now.mono);
                return;
            }
            _ => (reservation.memo, reservation.is_overflow) = (Memo::Empty, false),
        }
        if cost > self.parameters.most {
            let remaining = (self.parameters.most == 0).then_some(0);
            let refused = Refused { remaining, ..Refused::used(Retry::Never) };
            reservation.outcome = CheckOutcome::Refused(refused);
            return;
        }
        let is_degraded = self.outbox.borrow().is_degraded(account.key);
        if self.recall(reservation, is_degraded) {
            return;
        }
        if is_degraded {
            return self.check_degraded(reservation);
        }
        reservation.outcome = match self.is_in_flight && self.is_reporting(account.key, now.mono) {
            true => CheckOutcome::Refused(Refused::used(Retry::Soon)),
            false => CheckOutcome::Pending,
        };
    }

    fn on_reply(&mut self, account: Account, now: Now) {
        self.use_plan(account.plan);
        self.complete(account.key, now);
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) {
        let Reservation { account, cost, now, memo, .. } = *reservation;
        match (reservation.by, reservation.outcome) {
            (Decider::Share, _) => self.share.last().charge(reservation, delay),
            (Decider::Unavailable, CheckOutcome::Admitted { .. }) => reservation.receipt = Some(0),
            (Decider::Gateway, CheckOutcome::Pending) if memo == Memo::Empty => {
                self.use_plan(account.plan);
                let Reservation { is_shadow, is_tentative, .. } = *reservation;
                let charge = self.question((account.key, cost), now, is_shadow, is_tentative);
                let arrears = charge.arrears;
                self.outbox.borrow_mut().ask(Question::Rule(charge));
                reservation.memo = Memo::Asked(arrears);
            }
            (Decider::Gateway, CheckOutcome::Admitted { .. }) if !reservation.is_charged() => {
                self.use_plan(account.plan);
                reservation.receipt = self.leases.spend(account.key, cost, now).map(|_| 0);
                if reservation.is_charged() {
                    self.renew_early(account.key, now);
                } else {
                    // Another request has spent the lease since the check.
                    let refused = Refused::used(Retry::After(1));
                    reservation.outcome = CheckOutcome::Refused(refused);
                }
            }
            _ => {}
        }
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        if reservation.by == Decider::Share {
            return self.share.last().cancel(reservation);
        }
        let Some(receipt) = reservation.receipt.take() else { return };
        let Reservation { account, cost, .. } = *reservation;
        match reservation.memo {
            Memo::Lease => self.leases.unspend(account.key, cost),
            Memo::Granted { term, .. } => {
                self.use_plan(account.plan);
                self.return_cost(account.key, (receipt, term), cost);
            }
            _ => {}
        }
    }

    fn settle(&mut self, charge: &OpenCharge, now: Now) -> bool {
        if charge.is_degraded {
            return self.share.last().settle(charge, now);
        }
        self.use_plan(charge.plan);
        let (key, settlement) = (charge.key, charge.settlement());
        let Settlement { receipt, used, .. } = settlement;
        if self.is_in_flight {
            self.free(key, receipt);
            return true;
        }
        self.share.record_grant(charge.account(), used, now);
        let counted = self.parameters.spec.keeps_used.then_some(used);
        if settlement.is_even() && counted.unwrap_or(0) == 0 {
            return true;
        }
        let effect = match settlement.debt() {
            0 => Effect::ReturnCost { receipt, term: 0, permits: settlement.back() },
            permits => Effect::ChargeDebt { receipt, permits },
        };
        let charge = Charge { effect, counted, ..self.empty_charge(key) };
        let mut outbox = self.outbox.borrow_mut();
        let shard = outbox.shards.of(key);
        outbox.ledgers.add(shard, charge);
        true
    }

    fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining> {
        if reservation.by == Decider::Share {
            return self.share.last().remaining(reservation);
        }
        let Reservation { account, cost, now, .. } = *reservation;
        self.use_plan(account.plan);
        let permits = match reservation.memo {
            Memo::Lease => self.left(account.key)?,
            Memo::Granted { left, .. } => left,
            _ => return None,
        };
        let renewal = latest_renewal(&*self.parameters.spec.algorithm, cost, now);
        let renewal = renewal.map(|renewal| renewal.saturating_add(reservation.wait()));
        Some(Remaining { permits, renewal })
    }

    fn inquire(&mut self, inquiry: &mut Inquiry, _now: Now) -> Option<Result<Usage, OrderError>> {
        let Inquiry { account, order, is_asked } = *inquiry;
        self.use_plan(account.plan);
        if is_asked {
            return Some(self.usage(account.key, order));
        }
        let asked = self.query_usage(account.key, order);
        inquiry.is_asked = asked.is_ok();
        asked.err().map(Err)
    }

    fn maintain(&mut self, now: Now) -> Maintained {
        self.return_blocks(now, false);
        let mut done = self.share.last().maintain(now);
        done.is_busy |= self.leases.has_blocks();
        if self.is_in_flight {
            let mut outbox = self.outbox.borrow_mut();
            done.is_busy |= outbox.ledgers.heartbeat(&self.empty_charge(Key::ALL), now.mono);
        }
        done
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.leases.has_blocks() {
            self.return_blocks(now, true);
        }
        self.leases.clear();
        self.share.last().close(now)
    }
}
