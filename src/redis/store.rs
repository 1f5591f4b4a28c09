//! Usage counted for the whole fleet, in Redis, which replies asynchronously.
//!
//! A request that this worker cannot decide waits for the reply of Redis. For a busy caller the
//! gateway leases blocks of permits, and requests the next block before one is spent; the worker
//! spends parts of them. It remembers a refusal briefly. While Redis is unavailable, the gateway
//! enforces its share of the limit.

mod blocks;
mod replies;
mod reports;
mod share;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::outbox::{Operation, Outbox};
use super::protocol::{Charge, Effect, Numbers, Question};
use super::shard::Shards;
use diana_algorithm::{Capabilities, Leasing, Properties, latest_renewal};
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::gateway_leases::GatewayLeases;
use diana_store::lease::{Lessor, Wanted};
use diana_store::leases::Leases;
use diana_store::permit::OpenCharge;
use diana_store::plans::ByPlan;
use diana_store::refusal::{Reason, Refused};
use diana_store::replies::Replies;
use diana_store::reservation::{Decider, Memo};
use diana_store::stores::Stores;
use diana_store::usage::{Maintained, Order, OrderError, Remaining, Usage};
use diana_store::{Account, CheckOutcome, CounterSpec, Reservation, Store};
use reports::{Reports, Unreported};
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
    /// The permits and refusals of this worker.
    leases: Leases,
    /// The blocks of the gateway.
    blocks: GatewayLeases,
    /// The callers of blocks that this worker received, and their ends.
    received: Vec<(Account, Micros)>,
    /// The knowledge of callers and the permits to report, if requests are decided before Redis is asked.
    reports: Option<Reports>,
    share: Share,
    /// The shards over which its callers are spread.
    shards: Shards,
    /// The maximum number of callers with a separate value in one shard.
    keys: u64,
    /// Whether permits are in-flight slots.
    is_in_flight: bool,
}

/// The parameters of a rule, or of one of its plans.
struct Parameters {
    spec: CounterSpec,
    numbers: Numbers,
    /// Whether requests may be held.
    holds: bool,
    /// Whether permits are leased.
    leases: bool,
    /// The maximum cost of an admitted request.
    most: u64,
    /// Permits that can be spent soon: the maximum cost; in a bucket at least those that refill in a sixth
    /// of a second.
    soon: u64,
    /// The longest time in which a permit can be spent.
    window: Micros,
    lessor: Lessor,
}

impl Parameters {
    /// The parameters of a rule, or of one of its plans. `None` if the Redis script does not
    /// support its algorithm.
    fn of(spec: &CounterSpec, shards: Shards) -> Option<Parameters> {
        let numbers = match spec.daily {
            Some(shape) => Numbers::of_quota(&spec.quota, shape.of_part(shards.number().into())),
            None => Numbers::of_rule(spec.entry, &spec.quota)?,
        };
        let unused = vec![0; spec.algorithm.properties().words];
        let mut charged = unused.clone();
        spec.algorithm.step(&unused, Now::default(), 0, spec.unit_cost, &mut charged);
        let Capabilities { holds, leasing, .. } = spec.capabilities();
        let &Properties { most_at_once: most, most_out, .. } = spec.algorithm.properties();
        let (rpu, period) = (spec.quota.rpu, spec.quota.period());
        let refilled = rpu.saturating_mul(SECOND / 6) / period.max(1);
        Some(Parameters {
            numbers,
            holds,
            // A settlement returns permits under the receipt of its charge, but a block would still
            // count as outstanding.
            leases: leasing != Leasing::Never
                && spec.daily.is_none()
                && !spec.settles
                && !spec.asks_after,
            most,
            soon: if leasing == Leasing::Bucket { most.max(refilled) } else { most },
            window: spec.algorithm.spend_by(&charged, Now::default()).unwrap_or(0),
            lessor: Lessor {
                unit_cost: spec.unit_cost,
                longest_pause: (leasing == Leasing::Bucket)
                    .then(|| most_out.saturating_mul(period) / rpu.max(1)),
                is_final: !spec.settles,
            },
            spec: spec.clone(),
        })
    }
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
        let reports = spec.asks_after.then(|| Reports::new(stores.shared_opener()(spec.known())));
        let store = RedisStore {
            outbox,
            number,
            parameters: Parameters::of(&spec, shards).ok_or(NoCodec)?,
            plans: ByPlan::new(&spec),
            leases: Leases::of(&spec),
            blocks: GatewayLeases::new(&stores.namespace, spec.fingerprint, stores.data.clone()),
            received: Vec::new(),
            reports,
            shards,
            keys: shards.share(spec.keys as u64),
            is_in_flight: spec.algorithm.properties().is_held,
            share: Share::new(CounterSpec { asks_after: false, ..spec }, stores),
        };
        store.outbox.borrow_mut().add_rule(store.empty_charge(Key::ALL));
        Ok(store)
    }

    /// Switches to the quota of this plan.
    #[inline]
    pub fn use_plan(&mut self, plan: u64) {
        let shards = self.shards;
        if self.plans.select(plan, &mut self.parameters, |spec| Parameters::of(spec, shards)) {
            self.leases.plan = plan;
        }
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

    /// Decides without Redis if possible; otherwise the request is pending.
    fn check_here(&mut self, reservation: &mut Reservation) {
        let Reservation { account, cost, now, .. } = *reservation;
        (reservation.memo, reservation.is_overflow) = (Memo::Empty, false);
        if cost > self.parameters.most {
            let remaining = (self.parameters.most == 0).then_some(0);
            let refused = Refused { remaining, ..Refused::used(Retry::Never) };
            reservation.outcome = CheckOutcome::Refused(refused);
            return;
        }
        let is_degraded = self.outbox.borrow().is_degraded(account.key);
        let may_know = !is_degraded && self.outbox.borrow().has_replied;
        if let Some(reports) = self.reports.as_mut().filter(|_| may_know) {
            reports.check(reservation);
            if !reservation.is_overflow {
                return;
            }
            // A caller that shares a bucket cannot be known: Redis decides about its requests.
            (reservation.memo, reservation.is_overflow) = (Memo::Empty, false);
        }
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

    /// The store of this gateway's share.
    fn share(&mut self, now: Now) -> &mut dyn Store {
        let gateways = self.gateways();
        self.share.of(gateways, now)
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
                return self.share.of(gateways, now).check(reservation, Replies::none());
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
    fn check(&mut self, reservation: &mut Reservation, replies: &Replies) {
        let Reservation { account, by, .. } = *reservation;
        self.use_plan(account.plan);
        match (by, reservation.memo) {
            (Decider::Share | Decider::Unavailable, _) => self.check_degraded(reservation),
            (_, Memo::Granted { until, .. }) => reservation.wait_until(until),
            _ => match replies.of_rule(self.parameters.spec.fingerprint, account.key) {
                Some((asked, result)) if reservation.is_pending() => {
                    self.on_result(asked, result, reservation);
                }
                _ => self.check_here(reservation),
            },
        }
    }

    fn ask(&mut self, reservation: &Reservation) -> Option<Question> {
        let Reservation { account, cost, now, is_shadow, is_tentative, .. } = *reservation;
        self.use_plan(account.plan);
        let has_replied = self.outbox.borrow().has_replied;
        if let Some(reports) = self.reports.as_mut().filter(|_| !has_replied) {
            reports.record_question(account, cost, now);
        }
        let charge = self.question((account.key, cost), now, is_shadow, is_tentative);
        Some(Question::Rule(charge))
    }

    fn on_reply(&mut self, account: Account, replies: &Replies, now: Now) {
        self.use_plan(account.plan);
        if let Some((asked, result)) =
            replies.of_rule(self.parameters.spec.fingerprint, account.key)
        {
            self.complete(asked, result, now);
        }
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) {
        let Reservation { account, cost, now, .. } = *reservation;
        match (reservation.by, reservation.outcome) {
            (Decider::Share, _) => {
                self.share(now).charge(reservation, delay);
                if let (Some(reports), true) = (&mut self.reports, reservation.is_charged()) {
                    reports.add(account, cost, now);
                }
            }
            (Decider::Unavailable, CheckOutcome::Admitted { .. }) => reservation.receipt = Some(0),
            (Decider::Gateway, CheckOutcome::Admitted { .. }) if !reservation.is_charged() => {
                if let (Some(reports), Memo::Draft(_)) = (&mut self.reports, reservation.memo) {
                    self.outbox.borrow_mut().in_use = true;
                    return reports.charge(reservation);
                }
                self.use_plan(account.plan);
                reservation.receipt = self.leases.spend(account.key, cost, now).map(|_| 0);
                if reservation.is_charged() {
                    self.look_ahead(account.key, now);
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
            return self.share(reservation.now).cancel(reservation);
        }
        if let (Some(reports), Memo::Draft(_)) = (&mut self.reports, reservation.memo) {
            return reports.cancel(reservation);
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
            return self.share(now).settle(charge, now);
        }
        self.use_plan(charge.plan);
        let (key, settlement) = (charge.key, charge.settlement());
        let Settlement { receipt, used, .. } = settlement;
        if self.is_in_flight {
            self.free(key, receipt);
            return true;
        }
        self.record_grant(charge.account(), used, now);
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
            return self.share(reservation.now).remaining(reservation);
        }
        let Reservation { account, cost, now, .. } = *reservation;
        self.use_plan(account.plan);
        let permits = match reservation.memo {
            Memo::Draft(_) => return self.reports.as_mut()?.remaining(reservation),
            Memo::Lease => self.left(account.key)?,
            Memo::Granted { left, .. } => left,
            _ => return None,
        };
        let renewal = latest_renewal(&*self.parameters.spec.algorithm, cost, now);
        let renewal = renewal.map(|renewal| renewal.saturating_add(reservation.wait()));
        Some(Remaining { permits, renewal })
    }

    fn ask_usage(
        &mut self,
        account: Account,
        order: Order,
    ) -> Option<Result<Question, OrderError>> {
        self.use_plan(account.plan);
        Some(self.query_usage(account.key, order))
    }

    fn inquire(
        &mut self,
        account: Account,
        order: Order,
        replies: &Replies,
        now: Now,
    ) -> Result<Usage, OrderError> {
        self.use_plan(account.plan);
        let reply = replies.of_rule(self.parameters.spec.fingerprint, account.key);
        self.usage(account.key, order, reply.map(|(_, result)| result), now)
    }

    fn maintain(&mut self, now: Now) -> Maintained {
        self.return_blocks(now, false);
        self.report(now);
        let mut done = self.share(now).maintain(now);
        done.is_busy |= self.has_blocks();
        done.is_busy |= self.reports.as_ref().is_some_and(Reports::has_reports);
        if self.is_in_flight {
            let mut outbox = self.outbox.borrow_mut();
            done.is_busy |= outbox.ledgers.heartbeat(&self.empty_charge(Key::ALL), now.mono);
        }
        done
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.has_blocks() {
            self.return_blocks(now, true);
        }
        self.leases.clear();
        self.report(now);
        self.reports.iter_mut().for_each(|reports| reports.close(now));
        self.share(now).close(now)
    }
}

/// Questions and operations.
impl RedisStore {
    /// The charge for a request, with a lease for the next ones if the caller is busy. `tentative`
    /// if it may be refused elsewhere.
    pub fn question(
        &mut self,
        (key, cost): (Key, u64),
        now: Now,
        shadow: bool,
        tentative: bool,
    ) -> Charge {
        let checks = self.parameters.spec.checks;
        let in_arrears = self.with_arrears(key, now);
        let Wanted { permits: want, ahead } = self.wanted(key, cost, now);
        Charge { cost, shadow, tentative, checks, want, ahead, ..in_arrears }
    }

    /// An empty charge with the caller's arrears.
    pub(super) fn with_arrears(&mut self, key: Key, now: Now) -> Charge {
        let (account, gateways) = (self.account(key), self.gateways());
        let may_have = self.outbox.borrow().had_outage;
        let arrears = may_have.then(|| self.share.send_arrears(account, gateways, now)).flatten();
        let overdraft = if arrears.is_some() { self.share.overdraft(gateways) } else { 0 };
        Charge { arrears, overdraft, ..self.empty_charge(key) }
    }

    /// Adds the admitted requests to the settlements, as far as these have room. They wait while
    /// Redis is unavailable.
    fn report(&mut self, now: Now) {
        let Some(reports) = self.reports.as_mut().filter(|reports| reports.has_reports()) else {
            return;
        };
        let may_go = {
            let outbox = self.outbox.borrow();
            let room = Cell::new(outbox.ledgers.room());
            reports.take(|key| {
                let goes = room.get() > 0 && !outbox.is_degraded(key);
                room.set(room.get() - usize::from(goes));
                goes
            })
        };
        for Unreported { account, term, permits } in may_go {
            self.use_plan(account.plan);
            self.record_grant(account, permits, now);
            let Account { key, plan } = account;
            let effect = Effect::Report { rule: self.number, plan, term, permits };
            let charge = Charge { effect, ..self.with_arrears(key, now) };
            let mut outbox = self.outbox.borrow_mut();
            let shard = outbox.shards.of(key);
            outbox.ledgers.add(shard, charge);
        }
    }

    /// Charges permits granted by Redis to the share.
    fn record_grant(&mut self, account: Account, permits: u64, now: Now) {
        let gateways = self.gateways();
        self.share.record_grant(account, permits, gateways, now);
    }

    /// The number of active gateways.
    fn gateways(&self) -> u64 {
        self.outbox.borrow().gateways
    }

    /// Returns the permits of a request that were charged under `receipt`, in `term` if tentative.
    pub fn return_cost(&mut self, key: Key, (receipt, term): (u64, u64), permits: u64) {
        if self.is_in_flight {
            self.free(key, receipt);
            return;
        }
        // Daily quotas cannot undo a charge, and a check made none.
        if self.parameters.spec.daily.is_none() && !self.parameters.spec.checks {
            let effect = Effect::ReturnCost { receipt, term, permits };
            self.send_return(key, effect);
        }
    }

    /// Frees an in-flight slot.
    fn free(&self, key: Key, receipt: u64) {
        let mut outbox = self.outbox.borrow_mut();
        let shard = outbox.shards.of(key);
        outbox.ledgers.free(shard, self.empty_charge(key), receipt);
    }

    fn send_return(&self, key: Key, effect: Effect) {
        self.outbox
            .borrow_mut()
            .add(Operation::Return(Charge { effect, ..self.empty_charge(key) }));
    }

    fn empty_charge(&self, caller: Key) -> Charge {
        Charge {
            fingerprint: self.parameters.spec.fingerprint,
            caller,
            numbers: self.parameters.numbers,
            cost: 0,
            unit_cost: self.parameters.spec.unit_cost,
            want: 0,
            ahead: 0,
            shadow: false,
            tentative: false,
            checks: false,
            keys: self.keys,
            effect: Effect::default(),
            counted: self.parameters.spec.keeps_used.then_some(0),
            arrears: None,
            overdraft: 0,
        }
    }
}
