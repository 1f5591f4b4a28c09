//! Orders of operators about the callers of a rule.

use crate::rule::CompiledRule;
use diana_policy::key::LoggedKey;
use diana_policy::time::Now;
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

/// An order of an operator.
pub(crate) struct PendingOrder {
    /// The rule's number.
    pub(crate) rule: usize,
    pub(crate) order: Order,
    pub(crate) query: CallerQuery,
    /// The stream of its request, by the host's number.
    pub(crate) stream: u32,
    /// An inquiry for each of its callers.
    pub(crate) callers: Vec<CallerInquiry>,
}

/// An order about one caller.
pub(crate) struct CallerInquiry {
    caller: Named,
    usage: Inquiry,
    ban: Inquiry,
}

impl CallerInquiry {
    /// An order about a caller, under the rule's own quota: the plan of a caller is known only from
    /// its request.
    pub(crate) fn new(rule: &CompiledRule, caller: Named, order: Order) -> CallerInquiry {
        let plan = rule.plans.as_ref().map_or(0, |plans| plans.own());
        let inquiry = Inquiry::new(Account { key: caller.key, plan }, order);
        CallerInquiry { caller, usage: inquiry, ban: inquiry }
    }

    /// Carries out the order, or takes the replies to it. `None` if an authority must reply first.
    pub(crate) fn carry_out(
        &mut self,
        rule: &mut CompiledRule,
        now: Now,
    ) -> Option<Result<Seen, OrderError>> {
        let CallerInquiry { caller, usage, ban } = self;
        let usage = rule.store.inquire(usage, now);
        // Not for an order that the store refuses, unless the bans have asked: their reply is
        // taken.
        let is_carried_out = ban.is_asked || !matches!(usage, Some(Err(_)));
        let bans = rule.bans.as_mut().filter(|_| is_carried_out);
        let ban = bans.map(|bans| bans.inquire(ban, now.mono));
        Some(usage?.and_then(|usage| {
            let ban = ban.flatten().transpose()?;
            Ok(Seen { caller: caller.clone(), usage: Usage { ban, ..usage } })
        }))
    }
}
