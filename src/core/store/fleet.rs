//! Usage counted for the whole fleet, in Redis, which answers later.
//!
//! What is not known here is asked: the request waits for the answer, which the engine hands in. A hot
//! caller's permits are leased in blocks and spent at once, and more are asked for before they are
//! used up; what Redis refused is remembered. A refusal is final only for permits that were used: where
//! others hold them, or more are on their way to this worker, the request waits. While Redis cannot be
//! relied upon the gateway goes by its part of the limit.

mod answer;
mod errand;
mod recall;
mod share;

use std::rc::Rc;

use super::lease::Lease;
use super::leases::Leases;
use super::reservation::By;
use super::shared::gather;
use super::{Meter, Reservation, Store, Stores};
use crate::algorithm::{Can, Codec, Leasing};
use crate::decision::Decision;
use crate::key::Key;
use crate::policy::Quota;
use crate::policy::redis::OnFailure;
use crate::redis::link::Link;
use crate::redis::protocol::Numbers;
use crate::time::{Micros, Now, SECOND};
use share::Share;

/// How long a caller is told to wait where requests are refused because Redis is away.
const AWAY: Micros = SECOND;

/// A rule that all gateways count together.
pub struct Fleet {
    link: Rc<Link>,
    /// This store's number among those of the configuration.
    number: usize,
    meter: Meter,
    numbers: Numbers,
    leases: Leases,
    share: Share,
    /// Ticks for which permits gather for a caller that comes often and was refused.
    gather: Micros,
    /// How long before the end of a block, or of a refusal, the next block is asked for.
    ahead: Micros,
    /// How long a caller is told to wait that is refused while more is asked for.
    patience: Micros,
    /// Whether the rule can hold requests.
    holds: bool,
    /// Whether permits are leased.
    lends: bool,
    /// Whether the rule never admits anybody.
    never: bool,
}

impl Fleet {
    /// A rule with this number, which the script in Redis counts by `numbers`.
    pub fn new(
        meter: Meter,
        numbers: Numbers,
        number: usize,
        link: Rc<Link>,
        stores: &mut Stores<'_>,
    ) -> Fleet {
        let Can { holds, leasing, .. } = meter.can();
        let codec = meter.entry.codec(&meter.quota);
        let ticks = |of: fn(&Codec) -> fn(&Quota) -> Micros| {
            codec.map_or(0, |codec| of(codec)(&meter.quota))
        };
        Fleet {
            link,
            number,
            numbers,
            leases: Leases::new(meter.keys),
            share: Share::new(meter.clone(), stores),
            gather: gather(&meter),
            ahead: ticks(|codec| codec.ahead),
            patience: ticks(|codec| codec.patience).max(gather(&meter)),
            holds,
            lends: leasing != Leasing::Never && meter.daily.is_none(),
            never: meter.cost > meter.algorithm.most_at_once(),
            meter,
        }
    }

    /// Whether a request may have to wait for its turn.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Decides without Redis.
    fn check_alone(&mut self, key: Key, now: Now) -> Reservation {
        self.link.in_use.set(true);
        match self.link.on_failure {
            OnFailure::Gateway => {
                let gateways = self.link.gateways.get();
                let reservation = self.share.part(gateways, now).check(key, now);
                Reservation { is_alone: true, ..reservation }
            }
            OnFailure::Allow => Reservation::new(key, now, Decision::NOW, By::Nobody),
            OnFailure::Deny => Reservation::new(key, now, Decision::retry(AWAY), By::Known),
        }
    }
}

impl Store for Fleet {
    fn check(&mut self, key: Key, now: Now) -> Reservation {
        if self.never {
            return Reservation::new(key, now, Decision::NEVER, By::Known);
        }
        let is_alone = self.link.alone.get();
        if let Some(known) = self.recall(key, now, is_alone) {
            return known;
        }
        if is_alone {
            return self.check_alone(key, now);
        }
        Reservation::new(key, now, Decision::NOW, By::Redis)
    }

    fn look_again(&mut self, key: Key) {
        self.leases.find(key).into_iter().for_each(Lease::look_again);
    }

    fn wait(&mut self, key: Key, requests: usize) {
        let lease = self.leases.find(key);
        lease.into_iter().for_each(|lease| lease.waiting = requests as u64);
    }

    fn crowd(&mut self, key: Key, now: Now) {
        self.leases.find(key).into_iter().for_each(|lease| lease.crowd(now));
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        if reservation.is_alone {
            let decision = self.share.last().charge(reservation, delay);
            reservation.is_alone = true;
            return decision;
        }
        let Reservation { key, now, decision, .. } = *reservation;
        match reservation.by {
            By::Lease => {
                let cost = self.meter.cost;
                let lease = self.leases.find(key).filter(|lease| lease.has(cost, now));
                // Somebody else has spent it meanwhile.
                let Some(lease) = lease else { return Decision::retry(1) };
                lease.spend(cost, now);
                reservation.is_charged = true;
                if lease.runs_low() || lease.ends_soon(self.ahead, now) {
                    self.ask_for_more(key, now);
                }
                Decision::Admit { wait: delay }
            }
            By::Nobody => {
                reservation.is_charged = true;
                Decision::Admit { wait: delay }
            }
            // It is charged by its answer.
            By::Redis => Decision::retry(1),
            _ => decision,
        }
    }

    fn can_hold(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        match reservation.is_alone {
            true => self.share.last().can_hold(reservation, delay),
            false => Decision::NOW,
        }
    }

    fn undo(&mut self, reservation: &mut Reservation) {
        if reservation.is_alone {
            return self.share.last().undo(reservation);
        }
        if std::mem::take(&mut reservation.is_charged) && matches!(reservation.by, By::Lease) {
            let cost = self.meter.cost;
            let lease = self.leases.find(reservation.key);
            lease.into_iter().for_each(|lease| lease.unspend(cost));
        }
    }

    fn remaining(&mut self, reservation: &Reservation) -> u64 {
        match reservation.by {
            _ if reservation.is_alone => self.share.last().remaining(reservation),
            By::Lease => self.left(reservation.key).unwrap_or(0),
            _ => reservation.refusal.left,
        }
    }

    fn receipt(&self, reservation: &Reservation) -> u64 {
        self.share.receipt(reservation)
    }

    fn leave(&mut self, key: Key, receipt: u64, now: Now) {
        if self.link.alone.get() {
            self.share.last().leave(key, receipt, now);
        } else {
            self.give_back(key, receipt, 0);
        }
    }

    fn foresee(&mut self, key: Key, permits: u64) {
        self.leases.claim(key).into_iter().for_each(|lease| lease.demand.foresee(permits));
    }

    fn tidy(&mut self, now: Now) -> bool {
        self.hand_in_blocks(now, false) | self.share.last().tidy(now)
    }

    fn change_in_keys(&mut self) -> i64 {
        self.share.last().change_in_keys()
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.hand_in_blocks(now, true) {}
        self.leases.clear();
        self.share.last().close(now)
    }

    fn fleet(&mut self) -> Option<&mut Fleet> {
        Some(self)
    }
}
