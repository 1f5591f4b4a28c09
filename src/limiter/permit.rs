//! The charges of an admitted request, until its stream ends.

use std::rc::Rc;

use crate::check::{Check, InProgress};
use crate::rules::{CompiledRule, Rules};
use crate::verdict::QueueLine;
use diana_policy::port::Ending;
use diana_policy::time::Now;
use diana_request::settling::{GrpcOutcome, HeaderUsage, UnknownUsage, UsageReader};
use diana_store::Reservation;
use diana_store::permit::{OpenCharge, Permit};
use diana_store::reservation::Decider;

impl Rules {
    /// The charges of a request that are settled at its end.
    pub(crate) fn open_charges(&mut self, progress: &mut InProgress) -> Permit {
        if !self.settles {
            return Permit::NONE;
        }
        let now = progress.now;
        let freed = Rc::clone(&self.returned);
        let charges = progress.checks.iter_mut().filter_map(|check| self.open_charge(check, now));
        Permit::new(charges, &freed)
    }

    fn open_charge(&mut self, check: &mut Check, now: Now) -> Option<OpenCharge> {
        let rule = self.list.get_mut(check.rule)?;
        let usage_reader = rule.usage_reader.as_ref()?;
        let (is_checked_only, is_in_flight) =
            (usage_reader.reserves_nothing(), usage_reader.is_slot());
        let mut charge = check.charge(rule, now)?;
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

    /// The charges of a held request that are returned if its client leaves before its turn, and
    /// the line in which the request moves up when an earlier request leaves.
    pub(crate) fn queued_charges(&self, progress: &InProgress) -> (Permit, Option<QueueLine>) {
        let queued =
            progress.checks.iter().filter(|check| !check.is_shadow()).filter_map(|check| {
                let rule = self.list.get(check.rule).filter(|rule| rule.queues)?;
                check.charge(rule, progress.now)
            });
        let charges: Vec<_> = queued.collect();
        // With several charges, moving up in one line would leave the positions in the others too
        // late.
        let line = self.line(progress).filter(|_| charges.len() == 1);
        (Permit::new(charges.into_iter(), &self.returned), line)
    }

    /// The line of a request that a single rule of this worker holds.
    fn line(&self, progress: &InProgress) -> Option<QueueLine> {
        let mut holding = progress.checks.iter().filter(|check| check.wait() > 0);
        let (Some(check), None) = (holding.next(), holding.next()) else { return None };
        let rule = self.list.get(check.rule)?;
        // With different costs, the freed position may be shorter than the next request needs.
        let is_even = rule.config.cost_source.is_none();
        (rule.queues && rule.config.is_local() && is_even).then_some(QueueLine {
            rule: check.rule,
            key: check.key(),
            plan: check.plan(),
        })
    }

    /// Reads the usage of a request from the headers of its response.
    pub(crate) fn on_response(&self, permit: &mut Permit, ending: &dyn Ending) {
        permit.each(|charge| {
            if let Some(usage_reader) = self.usage_reader(charge) {
                *charge = charge.with_response(usage_reader.read_headers(ending));
            }
        });
    }

    /// Returns true if the bytes of the request's body are needed for one of its charges.
    pub(crate) fn reads_request_bytes(&self, permit: &mut Permit) -> bool {
        let mut reads = false;
        permit.each(|charge| {
            let rule = self.list.get(charge.rule as usize);
            reads |= rule.is_some_and(CompiledRule::reads_request_bytes);
        });
        reads
    }

    /// Reads the usage of a request from the trailers of its response.
    pub(crate) fn on_trailers(&self, permit: &mut Permit, ending: &dyn Ending) {
        permit.each(|charge| {
            if let Some(usage_reader) = self.usage_reader(charge) {
                let response = usage_reader.read_trailers(charge.response(), ending);
                *charge = charge.with_response(response);
            }
        });
    }

    fn usage_reader(&self, charge: &OpenCharge) -> Option<&UsageReader> {
        self.list.get(charge.rule as usize)?.usage_reader.as_deref()
    }

    /// Settles the charges of a request at the end of its stream.
    pub(crate) fn finish(&mut self, permit: Permit, ending: &dyn Ending, now: Now) {
        permit.settle(|charge| self.used(charge, ending, now));
        self.return_charges(now);
    }

    /// The usage of a charge. Counts towards a ban if the rule bans by usage.
    fn used(&mut self, charge: &OpenCharge, ending: &dyn Ending, now: Now) -> u64 {
        let reserved = charge.reserved;
        let Some(rule) = self.list.get_mut(charge.rule as usize) else { return reserved };
        let Some(usage_reader) = &rule.usage_reader else { return reserved };
        if usage_reader.is_slot() {
            return 0;
        }
        let elapsed = now.mono.saturating_sub(charge.since);
        let (used, unknown) = usage_reader.used(reserved, charge.response(), ending, elapsed);
        let bans_by_usage = usage_reader.bans();
        rule.counts.settle(reserved, used, unknown);
        // No usage at all is that of a request without a response, too.
        let is_whole = unknown.is_none() && used > 0;
        let is_partial = unknown == Some(UnknownUsage::Partial);
        if let Some(usage) = &mut rule.usage {
            usage.is_found |= is_whole || is_partial;
            usage.miss(matches!(unknown, Some(UnknownUsage::Absent | UnknownUsage::Unusable)));
        }
        if let Some(whole) = &mut rule.whole_usage {
            whole.is_found |= is_whole;
            whole.miss(is_partial);
        }
        if bans_by_usage && used > 0 && charge.is_identified {
            rule.count_towards_ban(charge.account(), now);
        }
        used
    }

    /// Cancels charges of requests that did not proceed, and settles those of requests that ended.
    /// Due before the next check, and sooner if other workers or limiters count in the same state.
    #[inline(never)]
    pub(crate) fn return_charges(&mut self, now: Now) {
        let mut charges = self.returned.take();
        charges.retain(|charge| !self.settle(charge, now));
        charges.into_iter().for_each(|charge| self.returned.add(charge));
    }

    /// Settles a charge. Returns false if other workers won every race, so that it is settled
    /// later.
    fn settle(&mut self, charge: &OpenCharge, now: Now) -> bool {
        let Some(rule) = self.list.get_mut(charge.rule as usize) else { return true };
        let turn = self.process.and_then(|process| Some(process.turn(rule.turn(charge.key)?)));
        let is_done = rule.store.settle(charge, now);
        drop(turn);
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
    fn charge(&self, rule: &CompiledRule, now: Now) -> Option<OpenCharge> {
        let Reservation { account, cost, receipt, by, .. } = self.reservation;
        receipt.filter(|_| by != Decider::Unavailable).map(|receipt| OpenCharge {
            key: account.key,
            receipt,
            since: now.mono,
            reserved: cost,
            used: 0,
            rule: self.rule as u32,
            plan: account.plan,
            header_usage: HeaderUsage::Nothing,
            grpc: GrpcOutcome::Other,
            is_identified: self.may_be_banned(rule),
            is_degraded: by == Decider::Share,
        })
    }
}
