//! Orders of operators about the callers of a rule.

use crate::rule::CompiledRule;
use diana_policy::key::LoggedKey;
use diana_policy::time::Now;
use diana_request::identity::named::Named;
use diana_store::Account;
use diana_store::question::Question;
use diana_store::replies::Replies;
use diana_store::usage::{Order, OrderError, Usage};

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

/// The state of an order after [`crate::Limiter::inquire`].
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
    /// Its callers.
    pub(crate) callers: Vec<Named>,
    /// The authority's replies to its questions, once all of them are there.
    pub(crate) replies: Replies,
}

impl PendingOrder {
    /// The question about a caller, and whether it is banned; none if there is no authority. Or why
    /// the order cannot be carried out.
    pub(crate) fn ask(
        &self,
        rule: &mut CompiledRule,
        caller: &Named,
    ) -> Result<impl Iterator<Item = Question> + use<>, OrderError> {
        let account = account(rule, caller);
        let about_usage = rule.store.ask_usage(account, self.order).transpose()?;
        let bans = rule.bans.as_ref();
        let about_ban = bans.and_then(|bans| bans.ask(caller.key, self.order.sets()));
        Ok(about_usage.into_iter().chain(about_ban))
    }

    /// Carries out the order for a caller, or reads the replies to its questions.
    pub(crate) fn carry_out(
        &self,
        rule: &mut CompiledRule,
        caller: &Named,
        now: Now,
    ) -> Result<Seen, OrderError> {
        let usage = rule.store.inquire(account(rule, caller), self.order, &self.replies, now);
        // Not for an order that the store refuses, unless the bans have asked: their reply is
        // taken.
        let bans = rule.bans.as_mut().filter(|_| usage.is_ok() || rule.is_in_backend);
        let ban = bans.map(|bans| bans.inquire(caller.key, self.order, &self.replies, now.mono));
        let (usage, ban) = (usage?, ban.transpose()?);
        Ok(Seen { caller: caller.clone(), usage: Usage { ban, ..usage } })
    }
}

/// A caller under the rule's own quota: its plan is known only from its request.
fn account(rule: &CompiledRule, caller: &Named) -> Account {
    Account { key: caller.key, plan: rule.plans.as_ref().map_or(0, |plans| plans.own()) }
}
