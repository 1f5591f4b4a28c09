//! In-flight requests of one rule, counted by all workers of the gateway together.

use std::rc::Rc;

use super::in_flight_slots::InFlightSlots;
use super::reservation::By;
use super::slots::traffic::{Traffic, one_more};
use super::usage::{Cannot, Inquiry, Maintained, Order, Remaining, Usage};
use super::{Reservation, Store};
use crate::permit::OpenCharge;
use diana_policy::decision::{Decision, Retry};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};

/// A slot may become free at any time.
const FULL: Decision = Decision::Refuse { retry: Retry::Soon };

/// The store of a rule with `in_flight`.
pub struct InFlightStore {
    slots: InFlightSlots,
    traffic: Rc<Traffic>,
    /// Callers of slots that could not be freed because other workers won the races.
    owed: Vec<Key>,
}

impl InFlightStore {
    /// A store over these slots.
    pub(super) fn new(slots: InFlightSlots, traffic: Rc<Traffic>) -> InFlightStore {
        InFlightStore { slots, traffic, owed: Vec::new() }
    }
}

impl Store for InFlightStore {
    fn check(&mut self, reservation: &mut Reservation) {
        let Reservation { account, now, .. } = *reservation;
        self.slots.use_plan(account.plan);
        let draft = self.slots.read(account.key, now.mono);
        let (left, is_shared) = self.slots.left(account.key, &draft);
        let decision = if left > 0 { Decision::NOW } else { FULL };
        reservation.decide(decision, By::InFlightSlots(draft));
        (reservation.left, reservation.is_overflow) = (Some(left), is_shared);
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        let Reservation { account, now, is_charged: false, .. } = *reservation else {
            return reservation.decision;
        };
        self.slots.use_plan(account.plan);
        let draft = match std::mem::replace(&mut reservation.by, By::Known) {
            By::InFlightSlots(draft) => draft,
            _ => self.slots.read(account.key, now.mono),
        };
        let taken = self.slots.take(account.key, draft, now.mono);
        (reservation.is_charged, reservation.left) = (taken.is_some(), Some(taken.unwrap_or(0)));
        if taken.is_some() { Decision::Admit { wait: delay } } else { FULL }
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        if std::mem::take(&mut reservation.is_charged) {
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
        // Any request may end in the next tick.
        Some(Remaining { permits: reservation.left.unwrap_or(0), renewal: Some(1) })
    }

    fn inquire(&mut self, inquiry: &mut Inquiry, now: Now) -> Option<Result<Usage, Cannot>> {
        let Inquiry { account, order, .. } = *inquiry;
        if order == Order::Reset {
            return Some(Err(Cannot::InUse));
        }
        self.slots.use_plan(account.plan);
        let draft = self.slots.read(account.key, now.mono);
        let (remaining, is_shared) = self.slots.left(account.key, &draft);
        let in_flight = Some(self.slots.limit().saturating_sub(remaining));
        Some(Ok(Usage { remaining, in_flight, is_shared, ..Usage::default() }))
    }

    fn maintain(&mut self, now: Now) -> Maintained {
        self.owed.retain(|key| !self.slots.free(*key, now.mono));
        Maintained { is_busy: self.slots.heartbeat(now.mono), ..Maintained::default() }
    }

    fn close(&mut self, _now: Now) -> i64 {
        0
    }
}
