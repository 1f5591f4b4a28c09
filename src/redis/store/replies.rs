//! Reads the replies of Redis: about requests, about leases, and to orders of operators.

use super::RedisStore;
use crate::protocol::{Charge, Effect, Question, Reply, RuleReply};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};
use diana_store::lease::Received;
use diana_store::replies::QuestionResult;
use diana_store::reservation::{Decider, Memo};
use diana_store::shared::knowledge::ReportReply;
use diana_store::usage::{Order, OrderError, Usage};
use diana_store::{Account, CheckOutcome, Reservation};

impl RedisStore {
    /// Decides a pending request by the result of its question.
    pub(super) fn on_result(
        &mut self,
        question: &Charge,
        result: QuestionResult,
        reservation: &mut Reservation,
    ) {
        let Reservation { account, cost, now, .. } = *reservation;
        let asked = question.wanted();
        match result {
            QuestionResult::Decided { reply: Reply::Rule(reply), wait, sent, at, .. } => {
                if let Some(arrears) = question.arrears {
                    let gateways = self.gateways();
                    self.share.confirm_arrears(account, arrears, gateways, now);
                }
                let wait = wait.filter(|_| reply.retry.is_none());
                let charged = if wait.is_some() { cost } else { 0 };
                let reply = &reply;
                let received = Received { reply, cost, charged, asked, sent, at, now };
                self.decide(received, wait, reservation);
            }
            result => {
                if asked.permits > 0 {
                    self.clear_pending(account.key, now);
                }
                match result {
                    QuestionResult::Repeat => reservation.outcome = CheckOutcome::Lost,
                    _ => self.check_degraded(reservation),
                }
            }
        }
    }

    /// Decides a request by the reply of Redis: it may leave `wait` ticks after the decision.
    fn decide(
        &mut self,
        received: Received<'_>,
        wait: Option<Micros>,
        reservation: &mut Reservation,
    ) {
        let (account, Received { reply, at, now, .. }) = (reservation.account, received);
        let receipt = self.receive(account.key, received);
        // Leased permits of this gateway are available to the caller, too.
        let left = self.left(account.key).unwrap_or(reply.remaining);
        match reply.retry {
            // Its gateway has got the permits since, for which it is decided again.
            // In shadow it would be charged twice by the other rules, which do not wait for this one.
            Some(_)
                if reply.is_outstanding
                    && !reservation.is_shadow
                    && self.has_permits(account.key, received) =>
            {
                reservation.outcome = CheckOutcome::Lost;
                return;
            }
            Some(retry) => {
                reservation.outcome = CheckOutcome::Refused(reply.refused(retry, reply.remaining));
            }
            None => {
                let holds = self.parameters.holds;
                let wait_here = if holds { wait.unwrap_or(0) } else { 0 };
                let until = at.saturating_add(wait_here);
                let wait_now = until.saturating_sub(now.mono);
                // A queue position does not move.
                let longest_delay = if holds { wait_now } else { Micros::MAX };
                reservation.outcome = CheckOutcome::Admitted { wait: wait_now, longest_delay };
                reservation.receipt = wait.map(|_| receipt);
                reservation.memo = Memo::Granted { until, term: reply.term, left };
            }
        }
        (reservation.by, reservation.is_overflow) = (Decider::Authority, reply.overflow);
    }

    /// Handles the reply to a question about a caller. Returns the receipt for the return of its
    /// cost.
    pub fn receive(&mut self, key: Key, received: Received<'_>) -> u64 {
        let Received { reply, charged: permits, now, .. } = received;
        if self.is_in_flight {
            let mut outbox = self.outbox.borrow_mut();
            let shard = outbox.shards.of(key);
            return match permits {
                0 => 0,
                // The slot counts only briefly until it is confirmed, since the reply may be lost.
                _ => outbox.ledgers.hold(shard, self.empty_charge(key), reply.receipt, now.mono),
            };
        }
        let current = self.plans.current();
        if self.leases.find(key).is_some_and(|lease| lease.plan != current) {
            return self.receive_for_former_plan(key, reply, permits, now);
        }
        // A rule with settlement records its grants when they are settled.
        if permits + reply.block > 0 && !self.parameters.spec.settles {
            self.record_grant(self.account(key), permits + reply.block, now);
        }
        // A worker remembers no admitted account of a daily quota.
        if self.parameters.spec.daily.is_none() || reply.retry.is_some() {
            self.store_reply(key, received);
        }
        reply.receipt
    }

    /// Handles the reply to a request under a previous plan: only its block and its charge are
    /// valid, and the block is returned.
    #[inline(never)]
    fn receive_for_former_plan(
        &mut self,
        key: Key,
        reply: &RuleReply,
        permits: u64,
        now: Now,
    ) -> u64 {
        if permits > 0 && !self.parameters.spec.settles {
            self.record_grant(self.account(key), permits, now);
        }
        self.return_block(key, reply.leased(), reply.block);
        reply.receipt
    }

    /// Remaining permits of a caller, as far as this worker knows: at Redis by its latest reply,
    /// and in this worker's lease.
    pub fn left(&mut self, key: Key) -> Option<u64> {
        self.leases.find(key).map(|lease| lease.remaining().min(self.parameters.most))
    }

    /// Handles the result of a renewal.
    pub(super) fn complete(&mut self, question: &Charge, result: QuestionResult, now: Now) {
        if let Effect::Report { plan, term, permits, .. } = question.effect {
            let reply = (Account { key: question.caller, plan }, term, permits);
            return self.on_report_reply(question, reply, result, now);
        }
        let (key, asked) = (question.caller, question.wanted());
        match result {
            QuestionResult::Decided { reply: Reply::Rule(reply), sent, at, .. } => {
                let (reply, cost, charged) = (&reply, question.unit_cost, 0);
                self.receive(key, Received { reply, cost, charged, asked, sent, at, now });
            }
            _ if asked.permits > 0 => self.clear_pending(key, now),
            _ => {}
        }
    }

    /// Handles the reply to a report. One without a reply is sent again.
    fn on_report_reply(
        &mut self,
        question: &Charge,
        (account, term, permits): (Account, u64, u64),
        result: QuestionResult,
        now: Now,
    ) {
        let QuestionResult::Decided { reply: Reply::Rule(reply), at, there, .. } = result else {
            return;
        };
        if let Some(arrears) = question.arrears {
            let gateways = self.gateways();
            self.share.confirm_arrears(account, arrears, gateways, now);
        } else if self.with_arrears(account.key, now).arrears.is_some() {
            // Redis does not know all requests that this gateway has admitted.
            return self.reports.iter_mut().for_each(|reports| reports.ask(account));
        }
        let RuleReply { charged, lease: ends, .. } = reply;
        let reply = ReportReply { permits, term, charged, ends, at, there };
        self.reports.iter_mut().for_each(|reports| reports.learn(account, reply, now));
    }
}

/// Orders of operators.
impl RedisStore {
    /// The question of an order.
    pub(super) fn query_usage(&self, key: Key, order: Order) -> Result<Question, OrderError> {
        let effect = match order {
            Order::Reset => Effect::Reset,
            Order::Look | Order::Ban(_) | Order::Unban => Effect::ReadUsage,
        };
        if order == Order::Reset {
            self.can_reset()?;
        }
        if self.outbox.borrow().is_degraded(key) {
            return Err(OrderError::Unavailable);
        }
        Ok(Question::Rule(Charge { effect, ..self.empty_charge(key) }))
    }

    /// The usage after an order, by the result of its question.
    pub(super) fn usage(
        &mut self,
        key: Key,
        order: Order,
        result: Option<QuestionResult>,
        now: Now,
    ) -> Result<Usage, OrderError> {
        let reply = match result {
            Some(QuestionResult::Decided { reply: Reply::Rule(reply), .. }) => reply,
            Some(QuestionResult::Repeat) => return Err(OrderError::Lost),
            _ => return Err(OrderError::Unanswered),
        };
        if order == Order::Reset {
            if reply.overflow {
                return Err(OrderError::Shared);
            }
            self.forget_refusal(key, now);
            let account = self.account(key);
            self.reports.iter_mut().for_each(|reports| reports.forget(account, now));
        }
        Ok(self.read_usage(&reply))
    }

    /// Returns an error if the usage of this rule cannot be reset.
    fn can_reset(&self) -> Result<(), OrderError> {
        let unused = vec![0; self.parameters.spec.algorithm.properties().words];
        let mut new = unused.clone();
        match self.parameters.spec.daily {
            Some(_) => Err(OrderError::Quota),
            None if self.parameters.spec.algorithm.reset(&unused, Now::default(), 0, &mut new) => {
                Ok(())
            }
            None => Err(OrderError::InUse),
        }
    }

    /// A caller's usage, by the reply of Redis.
    fn read_usage(&self, reply: &RuleReply) -> Usage {
        // A reply to `ReadUsage` or `Reset` contains these values in the fields of the receipts.
        let RuleReply { remaining, receipt: leased, block: reserved, lease: ends, .. } = *reply;
        let charged = reply.charged;
        Usage {
            used: charged.saturating_sub(leased).saturating_sub(reserved),
            reserved,
            leased,
            remaining,
            ends,
            in_flight: self.is_in_flight.then_some(charged),
            is_shared: reply.overflow,
            ban: None,
        }
    }
}
