//! What an operator asks about a rule's callers, and has done to them.

use crate::limiter::{CompiledRule, Limiter};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};
use diana_policy::{Absent, Rule};
use diana_redis::pending::{Pending, Settled};
use diana_redis::protocol::{Question, Reply};
use diana_redis::target::Target;
use diana_request::identity::named::Named;
use diana_store::Account;
use diana_store::usage::{Unliftable, Usage};

/// What is to be done about callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Nothing.
    Look,
    /// What they used is lifted.
    Reset,
    /// They are banned for so many ticks.
    Ban(Micros),
    /// Their bans are lifted.
    Unban,
}

impl Order {
    /// The length of the ban that it sets; 0 if it lifts bans.
    fn sets(self) -> Option<Micros> {
        match self {
            Order::Look | Order::Reset => None,
            Order::Ban(length) => Some(length),
            Order::Unban => Some(0),
        }
    }
}

/// What is known of a caller once that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Whom the name stands for.
    pub caller: Named,
    /// What it has used.
    pub usage: Usage,
    /// Ticks for which it is still banned; nothing if the rule bans nobody.
    pub ban: Option<Micros>,
}

/// What became of an order.
#[derive(Debug, PartialEq, Eq)]
pub enum Inquired {
    /// It is done.
    Done(Vec<Seen>),
    /// Redis is asked, and [`Limiter::told`] tells under this ticket.
    Asked(u64),
}

/// Why an order is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cannot {
    /// The rule bans nobody.
    BansNobody,
    /// There is no room for one more ban.
    NoRoom,
    /// Redis is not asked, since it does not answer.
    Away,
    /// Redis was asked, and has not answered in time: whether it is done nobody knows.
    Unheard,
    /// What was used cannot be lifted, or not be known from one worker.
    Lift(Unliftable),
}

/// Orders that wait for Redis.
pub(crate) struct Inquiry {
    rule: usize,
    order: Order,
    /// The callers, and under which ticket each is asked about.
    open: Vec<(u64, Named)>,
    /// Under which it is told.
    ticket: u64,
    told: Result<Vec<Seen>, Cannot>,
}

impl Limiter {
    /// The rules, in document order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|judge| &judge.rule)
    }

    /// The actors whom a rule with this number counts, by their names; none if it counts everybody as one.
    pub fn actors(&self, rule: usize) -> impl Iterator<Item = &str> {
        self.callers.actors(self.rules.get(rule).and_then(|judge| judge.actor))
    }

    /// Whom a rule counts by these values, one for each of its actors. All of them empty stand for those who share.
    #[must_use]
    pub fn named(&self, rule: usize, values: &[Vec<u8>]) -> Vec<Named> {
        let Some(judge) = self.rules.get(rule) else { return Vec::new() };
        let is_nobody = !values.is_empty() && values.iter().all(Vec::is_empty);
        if is_nobody {
            let shares = judge.rule.absent == Absent::Share;
            let shared = shares.then(|| Named { sources: Vec::new(), key: Key::SHARE });
            return shared.into_iter().collect();
        }
        self.callers.named(judge.actor, values)
    }

    /// The caller with this key under a rule. None where the rule counts no such caller: only a rule without actors
    /// has the key of all.
    #[must_use]
    pub fn with_key(&self, rule: usize, key: Key) -> Option<Named> {
        let judge = self.rules.get(rule)?;
        (judge.actor.is_none() == (key == Key::ALL)).then(|| Named { sources: Vec::new(), key })
    }

    /// Carries an order out.
    ///
    /// # Errors
    /// Why that cannot be done. Then nothing has changed.
    pub fn inquire(
        &mut self,
        rule: usize,
        callers: Vec<Named>,
        order: Order,
        now: Now,
    ) -> Result<Inquired, Cannot> {
        let Some(judge) = self.rules.get_mut(rule) else { return Ok(Inquired::Done(Vec::new())) };
        if order.sets().is_some() && judge.bans.is_none() {
            return Err(Cannot::BansNobody);
        }
        if let Some(store) = judge.in_redis(judge.own_plan()) {
            if order == Order::Reset {
                store.can_lift().map_err(Cannot::Lift)?;
            }
            return self.ask_about(rule, callers, order, now).map(Inquired::Asked);
        }
        callers
            .into_iter()
            .map(|it| judge.carry_out(it, order, now))
            .collect::<Result<_, _>>()
            .map(Inquired::Done)
    }

    /// Asks Redis about callers. The ticket under which it is told.
    fn ask_about(
        &mut self,
        rule: usize,
        callers: Vec<Named>,
        order: Order,
        now: Now,
    ) -> Result<u64, Cannot> {
        self.need_redis();
        let (Some(client), Some(judge)) = (&mut self.fleet.client, self.rules.get_mut(rule)) else {
            return Err(Cannot::Away);
        };
        if callers.is_empty()
            || callers.iter().any(|caller| self.fleet.redis.borrow().is_alone(caller.key))
        {
            return Err(Cannot::Away);
        }
        let mut open = Vec::new();
        for caller in callers {
            let questions = judge.questions(rule, caller.key, order);
            open.push((
                client.ask(0, questions, now.mono, &mut self.fleet.redis.borrow_mut()),
                caller,
            ));
        }
        let ticket = open.first().map_or(0, |(ticket, _)| *ticket);
        self.fleet.inquiries.push(Inquiry { rule, order, open, ticket, told: Ok(Vec::new()) });
        Ok(ticket)
    }

    /// Takes what was answered if an operator has asked it; and if that is all, the ticket under which it is told.
    pub(crate) fn hear_inquiry(
        &mut self,
        ticket: u64,
        answer: &Pending,
        now: Now,
    ) -> Option<Option<u64>> {
        let is_it = |inquiry: &&mut Inquiry| inquiry.open.iter().any(|(own, _)| *own == ticket);
        let inquiry = self.fleet.inquiries.iter_mut().find(is_it)?;
        let at = inquiry.open.iter().position(|(own, _)| *own == ticket)?;
        let (_, caller) = inquiry.open.remove(at);
        let judge = self.rules.get_mut(inquiry.rule)?;
        match (judge.heard(inquiry.rule, caller, inquiry.order, answer, now), &mut inquiry.told) {
            (Ok(seen), Ok(told)) => told.push(seen),
            (Err(cannot), told) => *told = Err(cannot),
            (Ok(_), Err(_)) => {}
        }
        Some(inquiry.open.is_empty().then_some(inquiry.ticket))
    }

    /// What became of an order that Redis was asked about, with the rule and the order, once.
    #[allow(clippy::type_complexity, reason = "it is taken apart at once")]
    pub fn told(&mut self, ticket: u64) -> Option<(usize, Order, Result<Vec<Seen>, Cannot>)> {
        let is_it = |inquiry: &Inquiry| inquiry.ticket == ticket && inquiry.open.is_empty();
        let at = self.fleet.inquiries.iter().position(is_it)?;
        let Inquiry { rule, order, told, .. } = self.fleet.inquiries.swap_remove(at);
        Some((rule, order, told))
    }

    /// The callers of a rule who came most lately, with how often they did; nothing if none are looked for, or each worker
    /// looks for its own.
    #[must_use]
    pub fn top(&mut self, rule: usize, now: Micros) -> Option<Vec<(u64, Key)>> {
        self.rules.get_mut(rule)?.hot.as_mut()?.top(now)
    }
}

impl CompiledRule {
    /// The plan for the rule's own numbers: the plan of a caller is known only from its request.
    fn own_plan(&self) -> u32 {
        self.plans.as_ref().map_or(0, |plans| plans.own())
    }

    /// Carries out an order about a caller who is counted here.
    fn carry_out(&mut self, caller: Named, order: Order, now: Now) -> Result<Seen, Cannot> {
        let key = caller.key;
        let account = Account { key, plan: self.own_plan() };
        let usage = self.store.usage(account, order == Order::Reset, now).map_err(Cannot::Lift)?;
        let Some(bans) = &mut self.bans else {
            return Ok(Seen { caller, usage, ban: None });
        };
        let is_set = order.sets().is_none_or(|length| bans.set(key, length, now.mono));
        let ban = Some(bans.left(key, now.mono));
        if is_set { Ok(Seen { caller, usage, ban }) } else { Err(Cannot::NoRoom) }
    }

    /// What Redis is asked about a caller.
    fn questions(&mut self, rule: usize, key: Key, order: Order) -> Vec<(Target, Question)> {
        let mut questions = Vec::new();
        if let Some(store) = self.in_redis(self.own_plan()) {
            let charge = if order == Order::Reset { store.lifts(key) } else { store.looks_at(key) };
            questions.push((Target::Rule(rule), Question::Rule(charge)));
        }
        let bans = self.bans.as_ref();
        if let Some(refusals) = bans.and_then(|bans| bans.question(key, order.sets())) {
            questions.push((Target::Ban(rule), Question::Ban(refusals)));
        }
        questions
    }

    /// Takes what Redis answered about a caller.
    fn heard(
        &mut self,
        rule: usize,
        caller: Named,
        order: Order,
        answer: &Pending,
        now: Now,
    ) -> Result<Seen, Cannot> {
        let reply = |target| match answer.settled(target) {
            Some(Settled::Decided { reply, .. }) => Some(reply),
            _ => None,
        };
        let (Some(Reply::Rule(found)), Some(store)) =
            (reply(Target::Rule(rule)), self.in_redis(self.own_plan()))
        else {
            return Err(Cannot::Unheard);
        };
        let usage = store.usage(&found);
        if order == Order::Reset {
            if found.overflow {
                return Err(Cannot::Lift(Unliftable::Shared));
            }
            store.forget_refusal(caller.key);
        }
        let ban = match (reply(Target::Ban(rule)), &mut self.bans) {
            (Some(Reply::Ban(found)), Some(bans)) => {
                if found.overflow && matches!(order, Order::Ban(_)) {
                    return Err(Cannot::NoRoom);
                }
                if order.sets().is_some() {
                    bans.set(caller.key, found.left, now.mono);
                }
                Some(found.left)
            }
            _ => None,
        };
        Ok(Seen { caller, usage, ban })
    }
}
