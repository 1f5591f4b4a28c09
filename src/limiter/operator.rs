//! Queries and orders of operators about the callers of a rule.

use crate::limiter::Limiter;
use crate::pending::PendingOrder;
use crate::rules::CompiledRule;
use diana_policy::key::{GatewayId, Key, LoggedKey};
use diana_policy::time::{Micros, Now};
use diana_policy::{Absent, Rule};
use diana_request::identity::named::Named;
use diana_store::Account;
use diana_store::usage::{Inquiry, Order, OrderError, Usage};

/// Selects the callers of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerQuery {
    /// The callers with these values, one for each actor of the rule. If all are empty, the caller
    /// shared by requests without a value.
    Values(Vec<Vec<u8>>),
    /// The caller with this key.
    Key(LoggedKey),
}

/// The state of a caller after an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The caller.
    pub caller: Named,
    /// Its usage.
    pub usage: Usage,
}

/// The state of an order after [`Limiter::inquire`].
#[derive(Debug, PartialEq, Eq)]
pub enum Inquired {
    /// It is done.
    Done(Vec<Seen>),
    /// The authority is asked. The result is ready later, under this number.
    Pending(u64),
}

/// The result of an order that an authority was asked about.
#[derive(Debug, PartialEq, Eq)]
pub struct OrderResult {
    /// The rule's number.
    pub rule: usize,
    /// The order.
    pub order: Order,
    /// Its callers, or why it failed.
    pub seen: Result<Vec<Seen>, OrderError>,
}

impl Limiter {
    /// The rules, in document order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.list.iter().map(|rule| &rule.config)
    }

    /// This gateway, if a rule counts in each one.
    #[must_use]
    pub fn gateway(&self, rule: usize) -> Option<GatewayId> {
        self.rules.list.get(rule)?.gateway
    }

    /// The names of the actors of a rule; none if it has a single counter.
    pub fn actors(&self, rule: usize) -> impl Iterator<Item = &str> {
        self.matcher.callers.actors(self.rules.list.get(rule).and_then(|rule| rule.actor))
    }

    /// Carries out an order of the request of a stream. Without an error [`Inquired::Done`] is
    /// empty if the rule has no such caller.
    ///
    /// # Errors
    /// Why the order cannot be carried out.
    pub fn inquire(
        &mut self,
        rule: usize,
        query: CallerQuery,
        order: Order,
        stream: u32,
        now: Now,
    ) -> Result<Inquired, OrderError> {
        if let Some(rule) = self.rules.list.get(rule)
            && order.sets().is_some()
            && rule.bans.is_none()
        {
            return Err(OrderError::NoBans);
        }
        if let Some(rule) = self.rules.list.get(rule)
            && let CallerQuery::Key(LoggedKey { gateway: Some(gateway), .. }) = query
            && rule.gateway != Some(gateway)
        {
            return Err(OrderError::Foreign);
        }
        let pending = PendingOrder { rule, order, query, stream, callers: Vec::new() };
        match self.execute(pending, now) {
            Ok(OrderResult { seen, .. }) => seen.map(Inquired::Done),
            Err(pending) => Ok(Inquired::Pending(self.fleet.send_order(pending, now.mono))),
        }
    }

    /// Carries an order out, or takes the replies to it. If an authority must reply first, returns
    /// the order; its questions are ready to be sent.
    pub(crate) fn execute(
        &mut self,
        mut order: PendingOrder,
        now: Now,
    ) -> Result<OrderResult, PendingOrder> {
        let number = order.rule;
        let mut seen = self.try_order(&mut order, now);
        if seen == Some(Err(OrderError::Lost)) {
            order.callers.clear();
            seen = self.try_order(&mut order, now);
        }
        let Some(seen) = seen else { return Err(order) };
        Ok(OrderResult { rule: number, order: order.order, seen })
    }

    /// Carries an order out for each of its callers. `None` if an authority must reply first.
    fn try_order(
        &mut self,
        order: &mut PendingOrder,
        now: Now,
    ) -> Option<Result<Vec<Seen>, OrderError>> {
        if order.callers.is_empty() {
            if self.rules.list.get(order.rule).is_some_and(|rule| rule.is_in_backend) {
                self.fleet.prepare(&mut self.matcher.callers, true);
            }
            let callers = self.callers(order.rule, &order.query);
            let Some(rule) = self.rules.list.get(order.rule) else { return Some(Ok(Vec::new())) };
            order.callers = callers.into_iter().map(|it| rule.inquiry(it, order.order)).collect();
        }
        let rule = self.rules.list.get_mut(order.rule)?;
        let (mut seen, mut is_pending) = (Ok(Vec::new()), false);
        for caller in &mut order.callers {
            match (rule.inquire(caller, now), &mut seen) {
                (None, _) => is_pending = true,
                (Some(Ok(one)), Ok(all)) => all.push(one),
                (Some(Err(error)), seen) => *seen = Err(error),
                (Some(Ok(_)), Err(_)) => {}
            }
        }
        if is_pending && seen.is_ok() {
            return None;
        }
        if let Some(backend) = &mut self.fleet.backend {
            backend.discard();
        }
        Some(seen)
    }

    /// The callers of a rule that a query names.
    fn callers(&self, rule: usize, query: &CallerQuery) -> Vec<Named> {
        let Some(rule) = self.rules.list.get(rule) else { return Vec::new() };
        let by_key = |key| vec![Named { sources: Vec::new(), key }];
        match query {
            // A rule without actors has only the caller `Key::ALL`, and no other rule has it.
            CallerQuery::Key(LoggedKey { key, .. })
                if rule.actor.is_none() == (*key == Key::ALL) =>
            {
                by_key(*key)
            }
            CallerQuery::Key(_) => Vec::new(),
            CallerQuery::Values(values)
                if !values.is_empty() && values.iter().all(Vec::is_empty) =>
            {
                // The caller without an address, too.
                let mut callers = self.matcher.callers.named(rule.actor, values);
                if rule.config.absent == Absent::Share {
                    callers.extend(by_key(Key::SHARED));
                }
                callers
            }
            CallerQuery::Values(values) => self.matcher.callers.named(rule.actor, values),
        }
    }

    /// The hot callers of a rule with their numbers of requests; `None` if the rule has no `hot`,
    /// or counts per worker.
    #[must_use]
    pub fn top(&mut self, rule: usize, now: Micros) -> Option<Vec<(u64, Key)>> {
        self.rules.list.get_mut(rule)?.hot.as_mut()?.top(now)
    }
}

/// An order about one caller.
pub(crate) struct CallerInquiry {
    caller: Named,
    usage: Inquiry,
    ban: Inquiry,
}

impl CompiledRule {
    /// An order about a caller, under the rule's own quota: the plan of a caller is known only from
    /// its request.
    fn inquiry(&self, caller: Named, order: Order) -> CallerInquiry {
        let plan = self.plans.as_ref().map_or(0, |plans| plans.own());
        let inquiry = Inquiry::new(Account { key: caller.key, plan }, order);
        CallerInquiry { caller, usage: inquiry, ban: inquiry }
    }

    /// Carries out an order about a caller, or takes the replies to it. `None` if an authority must
    /// reply first.
    fn inquire(
        &mut self,
        CallerInquiry { caller, usage, ban }: &mut CallerInquiry,
        now: Now,
    ) -> Option<Result<Seen, OrderError>> {
        let usage = self.store.inquire(usage, now);
        // Not for an order that the store refuses, unless the bans have asked: their reply is
        // taken.
        let is_carried_out = ban.is_asked || !matches!(usage, Some(Err(_)));
        let bans = self.bans.as_mut().filter(|_| is_carried_out);
        let ban = bans.map(|bans| bans.inquire(ban, now.mono));
        Some(usage?.and_then(|usage| {
            let ban = ban.flatten().transpose()?;
            Ok(Seen { caller: caller.clone(), usage: Usage { ban, ..usage } })
        }))
    }
}
