//! Queries and orders of operators about the callers of a rule.

use crate::limiter::Limiter;
use crate::pending::{PendingOrder, Replies};
use crate::rules::{CompiledRule, Rules};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};
use diana_policy::{Absent, Rule};
use diana_redis::protocol::{Question, Reply};
use diana_redis::settled::Settled;
use diana_redis::target::Target;
use diana_request::identity::named::Named;
use diana_store::Account;
use diana_store::usage::{Unliftable, Usage};

/// An order about callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Reports their usage.
    Look,
    /// Resets their usage.
    Reset,
    /// Bans them for this many ticks.
    Ban(Micros),
    /// Lifts their bans.
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

/// The state of a caller after an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The caller.
    pub caller: Named,
    /// Its usage.
    pub usage: Usage,
    /// The remaining ticks of its ban; `None` if the rule has no bans.
    pub ban: Option<Micros>,
}

/// What became of an order.
#[derive(Debug, PartialEq, Eq)]
pub enum Inquired {
    /// It is done.
    Done(Vec<Seen>),
    /// Redis is asked. The result is ready later, under this number.
    Pending(u64),
}

/// Why an order is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cannot {
    /// The rule has no bans.
    BansNobody,
    /// There is no room for one more ban.
    NoRoom,
    /// Redis is not asked, since it does not answer.
    Away,
    /// Redis did not reply in time: the order may have been carried out.
    Unheard,
    /// The usage cannot be reset, or is unknown to a single worker.
    Lift(Unliftable),
}

/// The result of an order that Redis was asked about.
#[derive(Debug, PartialEq, Eq)]
pub struct OrderResult {
    /// The rule's number.
    pub rule: usize,
    /// The order.
    pub order: Order,
    /// Its callers, or why it failed.
    pub seen: Result<Vec<Seen>, Cannot>,
}

impl Limiter {
    /// The rules, in document order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.list.iter().map(|rule| &rule.config)
    }

    /// The names of the actors of a rule; none if it has a single counter.
    pub fn actors(&self, rule: usize) -> impl Iterator<Item = &str> {
        self.matcher.callers.actors(self.rules.list.get(rule).and_then(|rule| rule.actor))
    }

    /// The callers of a rule with these values, one value per actor. If all are empty, the caller shared by requests without
    /// a value.
    #[must_use]
    pub fn named(&self, rule: usize, values: &[Vec<u8>]) -> Vec<Named> {
        let Some(rule) = self.rules.list.get(rule) else { return Vec::new() };
        let is_nobody = !values.is_empty() && values.iter().all(Vec::is_empty);
        if is_nobody {
            let shares = rule.config.absent == Absent::Share;
            let shared = shares.then(|| Named { sources: Vec::new(), key: Key::SHARE });
            return shared.into_iter().collect();
        }
        self.matcher.callers.named(rule.actor, values)
    }

    /// The caller with this key under a rule. None where the rule counts no such caller: only a rule without actors
    /// has the key of all.
    #[must_use]
    pub fn with_key(&self, rule: usize, key: Key) -> Option<Named> {
        let rule = self.rules.list.get(rule)?;
        (rule.actor.is_none() == (key == Key::ALL)).then(|| Named { sources: Vec::new(), key })
    }

    /// Carries an order out.
    ///
    /// # Errors
    /// Why the order cannot be carried out. Then no state has changed.
    pub fn inquire(
        &mut self,
        number: usize,
        callers: Vec<Named>,
        order: Order,
        now: Now,
    ) -> Result<Inquired, Cannot> {
        let rule = self.rules.list.get_mut(number);
        let Some(rule) = rule else { return Ok(Inquired::Done(Vec::new())) };
        if order.sets().is_some() && rule.bans.is_none() {
            return Err(Cannot::BansNobody);
        }
        if let Some(store) = rule.redis_store(rule.own_plan()) {
            if order == Order::Reset {
                store.can_lift().map_err(Cannot::Lift)?;
            }
            return self.ask_about(number, callers, order, now).map(Inquired::Pending);
        }
        callers
            .into_iter()
            .map(|it| rule.carry_out(it, order, now))
            .collect::<Result<_, _>>()
            .map(Inquired::Done)
    }

    /// Asks Redis about callers. Returns the number under which the result is ready.
    fn ask_about(
        &mut self,
        number: usize,
        callers: Vec<Named>,
        order: Order,
        now: Now,
    ) -> Result<u64, Cannot> {
        self.fleet.probe();
        let is_alone = |caller: &Named| self.fleet.redis.borrow().is_alone(caller.key);
        if self.fleet.client.is_none() || callers.is_empty() || callers.iter().any(is_alone) {
            return Err(Cannot::Away);
        }
        let Some(rule) = self.rules.list.get_mut(number) else { return Err(Cannot::Away) };
        let mut replies = Replies::default();
        let mut questions = Vec::new();
        for caller in &callers {
            let asked = rule.order_questions(number, caller.key, order).into_iter();
            let asked = asked.map(|(target, it)| (replies.expect(target, caller.key), it));
            questions.push(asked.collect());
        }
        let id = self.fleet.add_order(PendingOrder { rule: number, order, callers }, replies);
        for questions in questions {
            self.fleet.send(id, 0, questions, now.mono);
        }
        Ok(id)
    }

    /// The hot callers of a rule with their numbers of requests; `None` if the rule has no `hot`, or counts per worker.
    #[must_use]
    pub fn top(&mut self, rule: usize, now: Micros) -> Option<Vec<(u64, Key)>> {
        self.rules.list.get_mut(rule)?.hot.as_mut()?.top(now)
    }
}

impl Rules {
    /// The result of an order that Redis has replied to.
    pub(crate) fn order_result(
        &mut self,
        pending: PendingOrder,
        replies: &Replies,
        now: Now,
    ) -> OrderResult {
        let PendingOrder { rule: number, order, callers } = pending;
        let mut seen = Ok(Vec::new());
        for caller in callers {
            let Some(rule) = self.list.get_mut(number) else { continue };
            match (rule.seen(number, caller, order, replies, now), &mut seen) {
                (Ok(one), Ok(all)) => all.push(one),
                (Err(cannot), seen) => *seen = Err(cannot),
                (Ok(_), Err(_)) => {}
            }
        }
        OrderResult { rule: number, order, seen }
    }
}

impl CompiledRule {
    /// The plan for the rule's own numbers: the plan of a caller is known only from its request.
    fn own_plan(&self) -> u32 {
        self.plans.as_ref().map_or(0, |plans| plans.own())
    }

    /// Carries out an order about a caller without Redis.
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
    fn order_questions(&mut self, rule: usize, key: Key, order: Order) -> Vec<(Target, Question)> {
        let mut questions = Vec::new();
        if let Some(store) = self.redis_store(self.own_plan()) {
            let charge = if order == Order::Reset { store.lifts(key) } else { store.looks_at(key) };
            questions.push((Target::Rule(rule), Question::Rule(charge)));
        }
        let bans = self.bans.as_ref();
        if let Some(refusals) = bans.and_then(|bans| bans.question(key, order.sets())) {
            questions.push((Target::Ban(rule), Question::Ban(refusals)));
        }
        questions
    }

    /// Takes the replies of Redis about a caller.
    fn seen(
        &mut self,
        rule: usize,
        caller: Named,
        order: Order,
        replies: &Replies,
        now: Now,
    ) -> Result<Seen, Cannot> {
        let reply = |target| match replies.settled(target, caller.key) {
            Some(Settled::Decided { reply, .. }) => Some(reply),
            _ => None,
        };
        let (Some(Reply::Rule(found)), Some(store)) =
            (reply(Target::Rule(rule)), self.redis_store(self.own_plan()))
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
