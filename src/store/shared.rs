//! Usage counted for the whole gateway: callers in a fixed number of slots of shared data, updated
//! by compare-and-swap, so that the workers together never exceed a limit.
//!
//! A busy caller's permits are leased in blocks and spent without reading shared data. A block is
//! charged when it is leased, so leases can only make the gateway admit less. A request that lacks
//! permits while other workers hold leases is refused at once, with `retry-after: 1`.

pub mod knowledge;
mod returns;

use std::rc::Rc;

use super::gateway_leases::GatewayLeases;
use super::lease::{Block, LeaseDecision, Life, Pace};
use super::leases::{Leases, Returned};
use super::plans::ByPlan;
use super::refusal::{Reason, Refused};
use super::replies::Replies;
use super::reservation::Memo;
use super::slots::caller_slots::CallerSlots;
use super::slots::names::Names;
use super::slots::slot::SlotFormat;
use super::slots::transaction::Transaction;
use super::slots::{Traffic, one_more};
use super::usage::{Maintained, Order, OrderError, Remaining, Usage};
use super::{Account, CheckOutcome, CounterSpec, Reservation, Store};
use crate::permit::OpenCharge;
use diana_algorithm::{Balance, latest_renewal};
use diana_policy::Memory;
use diana_policy::decision::{Decision, Retry};
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND};

/// How long leased permits may be spent.
const LIFE: Micros = SECOND / 20;

/// A block is at most this fraction of the remaining permits, so that blocks shrink to zero near
/// the limit.
const FRACTION: u64 = 8;

/// The memory of a rule: leases in each worker, slots in the host. `is_share` as in
/// [`CounterSpec::is_share`].
pub(super) fn memory(words: usize, callers: Option<usize>, lines: usize, is_share: bool) -> Memory {
    let format = SlotFormat { words, has_arrears: is_share };
    let slots = Names::most(callers).map(|(slots, callers)| slots * format.bytes(callers));
    let leases = if is_share { GatewayLeases::bytes(callers) } else { 0 };
    let shared = slots.iter().sum::<u64>() + leases;
    Memory { worker: Leases::bytes(callers.unwrap_or(1), lines), shared }
}

/// A rule that all workers count together.
pub struct Shared {
    spec: CounterSpec,
    plans: ByPlan<CounterSpec>,
    traffic: Rc<Traffic>,
    leases: Leases,
    slots: CallerSlots,
    /// The latest check by the state in the gateway, and its number.
    draft: Option<Box<Transaction>>,
    number: u64,
}

impl Shared {
    /// The store of a rule in a namespace.
    pub fn new(
        spec: CounterSpec,
        namespace: &str,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
    ) -> Shared {
        Shared {
            leases: Leases::of(&spec),
            slots: CallerSlots::new(&spec, namespace, data, traffic.clone()),
            traffic,
            plans: ByPlan::new(&spec),
            draft: None,
            number: 0,
            spec,
        }
    }

    /// Switches to the quota of this plan.
    #[inline]
    fn use_plan(&mut self, plan: u64) {
        if self.plans.select(plan, &mut self.spec, |spec| Some(spec.clone())) {
            self.slots.use_algorithm(&self.spec.algorithm);
            self.leases.plan = plan;
        }
    }

    /// Returns true if the draft is about this reservation.
    fn is_current(&self, reservation: &Reservation) -> bool {
        reservation.memo == Memo::Draft(self.number) && self.draft.is_some()
    }

    /// Records permits granted by Redis, as far as permits of this store's quota remain.
    pub fn record_grant(&mut self, account: Account, permits: u64, now: Now) {
        self.use_plan(account.plan);
        let mut transaction = self.begin(account.key, now);
        while transaction.may_try() {
            self.read(&mut transaction);
            let fitting = permits.min(self.slots.left(&transaction));
            if fitting == 0
                || !self.step(&mut transaction, fitting).is_admitted()
                || self.slots.write(&mut transaction, 0)
            {
                return;
            }
        }
    }
}

impl Store for Shared {
    fn check(&mut self, reservation: &mut Reservation, _replies: &Replies) {
        self.use_plan(reservation.account.plan);
        if !self.recall(reservation) {
            self.read_and_check(reservation);
        }
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) {
        let Reservation { account, cost, now, memo, .. } = *reservation;
        if reservation.is_charged() || !reservation.is_admitted() {
            return;
        }
        if memo == Memo::Lease {
            reservation.receipt = self.leases.spend(account.key, cost, now);
            if reservation.is_charged() {
                return;
            }
        }
        self.use_plan(account.plan);
        if !self.is_current(reservation) {
            // Another request has spent the lease since the check, or was checked.
            self.read_and_check(reservation);
        }
        self.charge_gateway(reservation, delay);
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        let Some(receipt) = reservation.receipt.take() else { return };
        let Reservation { account, cost, now, memo, .. } = *reservation;
        if memo == Memo::Lease {
            return self.leases.unspend(account.key, cost);
        }
        self.use_plan(account.plan);
        if self.is_current(reservation)
            && let Some(mut draft) = self.draft.take()
        {
            self.undo_charge(cost, &mut draft);
            // Its copy of the slot is old.
            self.number += 1;
            self.draft = Some(draft);
        } else {
            let charge = Settlement { receipt, since: now.mono, reserved: cost, used: 0 };
            _ = self.settle_at(&charge, &mut self.begin(account.key, now));
        }
    }

    fn settle(&mut self, charge: &OpenCharge, now: Now) -> bool {
        let settlement = charge.settlement();
        if settlement.is_even() && !self.spec.keeps_used && !self.spec.is_share {
            return true;
        }
        self.use_plan(charge.plan);
        let mut transaction = self.begin(charge.key, now);
        self.settle_at(&settlement, &mut transaction)
    }

    fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining> {
        let Reservation { account, cost, now, .. } = *reservation;
        self.use_plan(account.plan);
        let algorithm = &self.spec.algorithm;
        let is_current = self.is_current(reservation);
        Some(match self.draft.as_deref().filter(|_| is_current) {
            Some(draft) if reservation.is_charged() => {
                let renewal = algorithm.balance(&draft.after, draft.now).renewal;
                let lease = self.leases.find(account.key);
                Remaining { permits: self.slots.remaining_after(draft, lease), renewal }
            }
            Some(draft) => algorithm.balance(&draft.state, draft.now).into(),
            None => {
                let renewal = latest_renewal(&**algorithm, cost, now);
                let mut transaction = self.begin(account.key, now);
                self.read(&mut transaction);
                Remaining { permits: self.slots.left(&transaction), renewal }
            }
        })
    }

    fn inquire(
        &mut self,
        account: Account,
        order: Order,
        _replies: &Replies,
        now: Now,
    ) -> Result<Usage, OrderError> {
        self.use_plan(account.plan);
        if order == Order::Reset {
            self.reset(account.key, now)?;
        }
        Ok(self.usage_of(account.key, now))
    }

    fn maintain(&mut self, now: Now) -> Maintained {
        self.return_blocks(now, false);
        Maintained { is_busy: self.leases.has_blocks(), ..Maintained::default() }
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.leases.has_blocks() {
            self.return_blocks(now, true);
        }
        self.leases.clear();
        0
    }
}

/// Checks.
impl Shared {
    /// A transaction before its first read.
    fn begin(&self, key: Key, now: Now) -> Transaction {
        Transaction::new(key, now, self.spec.algorithm.properties().words)
    }

    /// Reads the caller from the gateway, as if this worker had returned its lease.
    fn read(&mut self, transaction: &mut Transaction) {
        self.slots.read(transaction);
        if let Some(lease) = self.leases.find(transaction.key) {
            self.slots.return_lease(transaction, lease.block());
        }
    }

    /// The maximum cost of an admitted request.
    pub fn most(&self) -> u64 {
        self.spec.algorithm.properties().most_at_once
    }

    /// Decides without a read from the gateway. Returns false if that is impossible.
    fn recall(&mut self, reservation: &mut Reservation) -> bool {
        let Reservation { cost, now, .. } = *reservation;
        if cost > self.most() {
            // The gateway is read only for the remaining permits, which the response reports. A
            // limit of zero has none.
            let is_nothing = self.most() == 0;
            if is_nothing {
                let (reason, retry) = (Reason::Used, Retry::Never);
                let refused = Refused { reason, retry, remaining: Some(0) };
                reservation.outcome = CheckOutcome::Refused(refused);
            }
            return is_nothing;
        }
        let (decision, former) = self.leases.recall(reservation, Pace::GATEWAY);
        if let Some(Returned { key, block, left, .. }) = former {
            // Under the new plan, its state has drained since its latest charge.
            self.return_block(key, (block, left), now);
        }
        let is_decided = decision != LeaseDecision::Undecided;
        if is_decided {
            reservation.is_overflow = false;
        }
        is_decided
    }

    /// Decides by the state in the gateway.
    fn read_and_check(&mut self, reservation: &mut Reservation) {
        let Reservation { account, cost, now, .. } = *reservation;
        let key = account.key;
        // Its memory is used again: an allocation for each request would cost more than the check.
        let draft = self.draft.take().map(|draft| draft.again(key, now));
        let mut draft = draft.unwrap_or_else(|| Box::new(self.begin(key, now)));
        self.read(&mut draft);
        let decision = self.step(&mut draft, cost);
        draft.decided = Some(decision);
        let longest_delay = self.spec.algorithm.properties().longest_delay;
        reservation.outcome = self.outcome(&draft, decision, longest_delay);
        if let CheckOutcome::Refused(refused) = reservation.outcome
            && matches!(refused.retry, Retry::After(_))
            && let Some(lease) = self.leases.claim(key)
        {
            lease.refuse(cost, refused, !self.spec.may_be_cancelled, (now, now));
        }
        self.number += 1;
        reservation.memo = Memo::Draft(self.number);
        reservation.is_overflow = draft.is_overflow();
        if reservation.refused().is_some() {
            draft.release();
        }
        self.draft = Some(draft);
    }

    /// The outcome of a decision by the state in the gateway.
    fn outcome(
        &self,
        draft: &Transaction,
        decision: Decision,
        longest_delay: Micros,
    ) -> CheckOutcome {
        let mut outcome = CheckOutcome::of(decision, longest_delay);
        if let CheckOutcome::Refused(refused) = &mut outcome
            && matches!(refused.retry, Retry::After(_))
        {
            refused.remaining = Some(self.slots.left(draft));
            if draft.outstanding.out() > 0 {
                refused.reason = Reason::Outstanding;
            }
        }
        outcome
    }
}

/// Charges.
impl Shared {
    /// Charges the gateway, with retries if other workers charge at the same time.
    fn charge_gateway(&mut self, reservation: &mut Reservation, delay: Micros) {
        let CheckOutcome::Admitted { longest_delay, .. } = reservation.outcome else { return };
        let Some(mut draft) = self.draft.take() else { return };
        match self.charge_draft(&mut draft, reservation.cost, delay) {
            Ok(receipt) => {
                reservation.receipt = Some(receipt);
                draft.release();
            }
            Err(decision) => {
                reservation.outcome = self.outcome(&draft, decision, longest_delay);
            }
        }
        self.draft = Some(draft);
    }

    /// Returns the receipt, or the decision that there is no charge for.
    fn charge_draft(
        &mut self,
        draft: &mut Transaction,
        cost: u64,
        delay: Micros,
    ) -> Result<u64, Decision> {
        while draft.may_try() {
            let block = self.prepare(draft, cost, delay)?;
            self.add_arrears(draft, cost + block);
            let out = if self.spec.asks_after { self.unreported(draft, cost) } else { block };
            if self.slots.write(draft, out) {
                self.store_block(draft, block);
                return Ok(self.spec.algorithm.receipt(&draft.after));
            }
            self.read(draft);
        }
        one_more(&self.traffic.exhausted);
        Err(Decision::retry(1))
    }

    fn step(&self, transaction: &mut Transaction, permits: u64) -> Decision {
        self.spec.algorithm.step(
            &transaction.state,
            transaction.now,
            0,
            permits,
            &mut transaction.after,
        )
    }

    /// Prepares the state after a charge of one request that leaves `delay` later, and of a new
    /// block if the caller is busy. Returns the permits of the block.
    fn prepare(
        &mut self,
        transaction: &mut Transaction,
        cost: u64,
        delay: Micros,
    ) -> Result<u64, Decision> {
        let decision = match transaction.decided.take() {
            Some(decision) => decision,
            None => self.step(transaction, cost),
        };
        match decision {
            Decision::Admit { wait } if wait > delay => Err(Decision::Admit { wait }),
            // Its own turn is not rounded to a tick, so that errors do not accumulate.
            Decision::Admit { wait } if wait < delay => {
                let Transaction { state, now, after, .. } = transaction;
                match self.spec.algorithm.step(state, *now, delay, cost, after) {
                    Decision::Admit { .. } => Ok(0),
                    refusal @ Decision::Refuse { .. } => Err(refusal),
                }
            }
            Decision::Admit { .. } => Ok(self.prepare_block(transaction, cost)),
            refusal @ Decision::Refuse { .. } => Err(refusal),
        }
    }

    /// Adds a block to the charge, if possible. Returns its permits.
    fn prepare_block(&mut self, transaction: &mut Transaction, cost: u64) -> u64 {
        let (CounterSpec { algorithm, unit_cost, .. }, at) = (&self.spec, transaction.at);
        if self.spec.asks_after
            || transaction.is_overflow()
            || algorithm.spend_by(&transaction.after, transaction.now).is_none()
        {
            return 0;
        }
        let Some(lease) = self.leases.claim(transaction.key) else { return 0 };
        let want = lease.wanted(cost, at, Pace::GATEWAY).permits;
        let left = algorithm.balance(&transaction.after, transaction.now).remaining;
        let room = algorithm
            .properties()
            .most_out
            .saturating_sub(transaction.outstanding.out())
            .min(transaction.outstanding.room());
        let block = want.min(left / FRACTION).min(room) / unit_cost * unit_cost;
        if block > 0 && self.step(transaction, cost + block) == Decision::NOW { block } else { 0 }
    }

    /// Stores the block that the charge leased.
    fn store_block(&mut self, transaction: &Transaction, permits: u64) {
        let (algorithm, Transaction { key, at, now, after, outstanding, .. }) =
            (&self.spec.algorithm, transaction);
        let block = Block { permits, term: outstanding.term(), receipt: algorithm.receipt(after) };
        let window = algorithm.spend_by(after, *now).unwrap_or(0).saturating_sub(now.mono);
        let life = Life { ticks: window.min(LIFE), ends_with_window: window < LIFE };
        self.leases.renew(*key, block, life, *at);
    }
}

/// Orders of operators.
impl Shared {
    fn usage_of(&mut self, key: Key, now: Now) -> Usage {
        let mut transaction = self.begin(key, now);
        self.slots.read(&mut transaction);
        let (algorithm, now) = (&self.spec.algorithm, transaction.now);
        let Balance { remaining, charged, reserved, .. } =
            algorithm.balance(&transaction.state, now);
        let leased = transaction.outstanding.out();
        Usage {
            used: charged.saturating_sub(leased).saturating_sub(reserved),
            reserved,
            leased,
            remaining,
            ends: algorithm.expires(&transaction.state, now).saturating_sub(now.mono),
            in_flight: None,
            is_shared: transaction.is_overflow(),
            ban: None,
        }
    }

    /// Leases stay charged, so that they may still be spent. Their workers return them, and forget
    /// refusals of the caller, within a second.
    fn reset(&mut self, key: Key, now: Now) -> Result<(), OrderError> {
        let mut transaction = self.begin(key, now);
        while transaction.may_try() {
            self.slots.read(&mut transaction);
            if transaction.is_overflow() {
                return Err(OrderError::Shared);
            }
            let (algorithm, kept) = (&self.spec.algorithm, transaction.outstanding.out());
            if !algorithm.reset(&transaction.state, transaction.now, kept, &mut transaction.after) {
                return Err(OrderError::InUse);
            }
            if self.slots.is_unknown(&transaction) {
                break;
            }
            if self.slots.write(&mut transaction, 0) {
                break;
            }
        }
        if let Some(lease) = self.leases.find(key) {
            lease.forget_refusal();
        }
        if transaction.may_try() { Ok(()) } else { Err(OrderError::Busy) }
    }
}
