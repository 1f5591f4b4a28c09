//! In-flight requests of one rule, counted by all workers of the gateway together.

use std::rc::Rc;

use super::in_flight_slots::{HoldingsDraft, InFlightSlots};
use super::refusal::{Reason, Refused};
use super::replies::Replies;
use super::reservation::Memo;
use super::slots::{Traffic, one_more};
use super::usage::{Maintained, Order, OrderError, Remaining, Usage};
use super::{Account, CheckOutcome, Reservation, Store};
use crate::permit::OpenCharge;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};

/// A slot may become free at any time.
const FULL: CheckOutcome =
    CheckOutcome::Refused(Refused { reason: Reason::Used, retry: Retry::Soon, remaining: Some(0) });

/// The store of a rule with `in_flight`.
pub struct InFlightStore {
    slots: InFlightSlots,
    traffic: Rc<Traffic>,
    /// Callers of slots that could not be freed because other workers won the races.
    owed: Vec<Key>,
    /// The value that the latest check has read, and the number of that check.
    draft: Option<HoldingsDraft>,
    number: u64,
}

impl InFlightStore {
    /// A store over these slots.
    pub(super) fn new(slots: InFlightSlots, traffic: Rc<Traffic>) -> InFlightStore {
        InFlightStore { slots, traffic, owed: Vec::new(), draft: None, number: 0 }
    }
}

impl Store for InFlightStore {
    fn check(&mut self, reservation: &mut Reservation, _replies: &Replies) {
        let Reservation { account, now, .. } = *reservation;
        self.slots.use_plan(account.plan);
        let draft = self.slots.read(account.key, now.mono);
        let (left, is_shared) = self.slots.left(account.key, &draft);
        reservation.outcome = if left > 0 { CheckOutcome::NOW } else { FULL };
        reservation.is_overflow = is_shared;
        self.number += 1;
        reservation.memo = Memo::Draft(self.number);
        self.draft = Some(draft);
    }

    fn charge(&mut self, reservation: &mut Reservation, _delay: Micros) {
        let Reservation { account, now, memo, .. } = *reservation;
        if reservation.is_charged() || !reservation.is_admitted() {
            return;
        }
        self.slots.use_plan(account.plan);
        let draft = self.draft.take().filter(|_| memo == Memo::Draft(self.number));
        let draft = draft.unwrap_or_else(|| self.slots.read(account.key, now.mono));
        match self.slots.take(account.key, draft, now.mono) {
            Some(left) => (reservation.receipt, reservation.memo) = (Some(0), Memo::Slots(left)),
            None => reservation.outcome = FULL,
        }
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        if reservation.receipt.take().is_some() {
            let Reservation { account, now, .. } = *reservation;
            if !self.slots.free(account.key, now.mono) {
                one_more(&self.traffic.exhausted);
                self.owed.push(account.key);
            }
        }
    }

    fn settle(&mut self, charge: &OpenCharge, now: Now) -> bool {
        self.slots.free(charge.key, now.mono)
    }

    fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining> {
        let permits = match (reservation.memo, &self.draft) {
            (Memo::Slots(left), _) => left,
            (_, Some(draft)) => self.slots.left(reservation.account.key, draft).0,
            _ => 0,
        };
        // Any request may end in the next tick.
        Some(Remaining { permits, renewal: Some(1) })
    }

    fn inquire(
        &mut self,
        account: Account,
        order: Order,
        _replies: &Replies,
        now: Now,
    ) -> Result<Usage, OrderError> {
        if order == Order::Reset {
            return Err(OrderError::InUse);
        }
        self.slots.use_plan(account.plan);
        let draft = self.slots.read(account.key, now.mono);
        let (remaining, is_shared) = self.slots.left(account.key, &draft);
        let in_flight = Some(self.slots.limit().saturating_sub(remaining));
        Ok(Usage { remaining, in_flight, is_shared, ..Usage::default() })
    }

    fn maintain(&mut self, now: Now) -> Maintained {
        self.owed.retain(|key| !self.slots.free(*key, now.mono));
        Maintained { is_busy: self.slots.heartbeat(now.mono), ..Maintained::default() }
    }

    fn close(&mut self, _now: Now) -> i64 {
        0
    }
}
