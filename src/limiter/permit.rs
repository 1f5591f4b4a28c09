//! The charges of an admitted request, until its stream ends.

use crate::check::{Check, InProgress};
use crate::rules::Rules;
use crate::verdict::QueueLine;
use diana_policy::port::Ending;
use diana_policy::time::Now;
use diana_request::settling::Heard;
use diana_store::Reservation;
use diana_store::permit::{Permit, Unsettled, permits};

impl Rules {
    /// The charges of a request that are settled at its end.
    pub(crate) fn open_charges(&mut self, progress: &mut InProgress) -> Permit {
        if !self.settles {
            return Permit::NONE;
        }
        let now = progress.now;
        let charges = progress.checks.iter_mut().filter_map(|check| self.open_charge(check, now));
        let charges = charges.collect();
        Permit::new(charges, &self.returned)
    }

    fn open_charge(&mut self, check: &mut Check, now: Now) -> Option<Unsettled> {
        let rule = self.list.get_mut(check.rule)?;
        let settler = rule.settler.as_ref()?;
        let (is_checked_only, is_in_flight) = (settler.reserves_nothing(), settler.is_place());
        let mut charge = check.charge(now)?;
        rule.counts.in_flight += i64::from(is_in_flight);
        if self.returned.is_full() && !is_in_flight {
            rule.counts.unsettled += 1;
            return None;
        }
        if is_checked_only {
            check.cancel(rule);
            charge.reserved = 0;
        }
        Some(charge)
    }

    /// The charges of a held request that are returned if its client leaves before its turn. And the line of requests
    /// in which it moves up when one before it leaves.
    pub(crate) fn queued_charges(&self, progress: &InProgress) -> (Permit, Option<QueueLine>) {
        let queues = |check: &&Check| {
            !check.is_shadow() && self.list.get(check.rule).is_some_and(|rule| rule.queues)
        };
        let queued = progress.checks.iter().filter(queues);
        let charges: Vec<_> = queued.filter_map(|check| check.charge(progress.now)).collect();
        // With several charges, moving up in one line would leave the positions in the others too late.
        let line = self.line(progress).filter(|_| charges.len() == 1);
        (Permit::new(charges, &self.returned), line)
    }

    /// The line of a request that a single rule of this worker holds.
    fn line(&self, progress: &InProgress) -> Option<QueueLine> {
        let mut holding = progress.checks.iter().filter(|check| check.wait() > 0);
        let (Some(check), None) = (holding.next(), holding.next()) else { return None };
        let rule = self.list.get(check.rule)?;
        // With different costs, a request that moves up would leave too early for the next one.
        let is_even = rule.config.told.is_none();
        (rule.queues && rule.config.is_local() && is_even).then_some(QueueLine {
            rule: check.rule,
            key: check.key(),
            plan: check.plan(),
        })
    }

    /// Reads the usage of a request from the headers of its response.
    pub(crate) fn on_response(&self, permit: &mut Permit, ending: &dyn Ending) {
        permit.each(|charge| {
            let rule = self.list.get(charge.rule as usize);
            if let Some(settler) = rule.and_then(|rule| rule.settler.as_ref()) {
                let (heard, used) = settler.hear(ending);
                *charge = Unsettled { heard, ..charge.with_used(used) };
            }
        });
    }

    /// Settles the charges of a request at the end of its stream.
    pub(crate) fn finish(&mut self, permit: Permit, ending: &dyn Ending, now: Now) {
        permit.settle(|charge| self.used(charge, ending, now));
        self.return_charges(now);
    }

    /// The usage of a charge. Counts towards a ban if the rule bans by usage.
    fn used(&mut self, charge: &Unsettled, ending: &dyn Ending, now: Now) -> u64 {
        let reserved = charge.reserved.into();
        let Some(rule) = self.list.get_mut(charge.rule as usize) else { return reserved };
        let Some(settler) = &rule.settler else { return reserved };
        if settler.is_place() {
            return 0;
        }
        let (used, untold) = settler.used(reserved, (charge.heard, charge.used.into()), ending);
        let bans_by_usage = settler.bans();
        rule.counts.settle(reserved, used, untold);
        if bans_by_usage && used > 0 && charge.is_own {
            rule.count_towards_ban(charge.account(), now);
        }
        used
    }

    /// Returns charges of requests that did not proceed, and settles those of requests that ended. Done before any other
    /// request is checked, and sooner where other workers or limiters count in the same state.
    #[inline(never)]
    pub(crate) fn return_charges(&mut self, now: Now) {
        let mut charges = self.returned.take();
        charges.retain(|charge| !self.settle(charge, now));
        if !charges.is_empty() {
            self.returned.add(charges);
        }
    }

    /// Settles a charge. Returns false if other workers won every race, so that it is settled later.
    fn settle(&mut self, charge: &Unsettled, now: Now) -> bool {
        let Some(rule) = self.list.get_mut(charge.rule as usize) else { return true };
        let is_done = rule.store.settle(charge, now);
        if is_done && rule.is_in_flight() {
            rule.counts.in_flight -= 1;
        }
        is_done
    }

    /// Returns true if requests are in flight under a rule that other workers count, too.
    pub(crate) fn holds_slots(&self) -> bool {
        self.returned.is_awaited()
            && self.list.iter().any(|rule| !rule.config.is_local() && rule.is_in_flight())
    }
}

impl Check {
    /// The charge for a request, if there was one and a store counts it.
    fn charge(&self, now: Now) -> Option<Unsettled> {
        let Reservation { account, cost, receipt, is_charged, is_alone, .. } = self.reservation;
        (is_charged && self.reservation.is_counted()).then(|| Unsettled {
            key: account.key,
            receipt,
            since: now.mono,
            reserved: permits(cost),
            used: 0,
            rule: self.rule as u32,
            plan: account.plan,
            heard: Heard::Nothing,
            is_own: self.may_be_banned(),
            is_alone,
        })
    }
}
