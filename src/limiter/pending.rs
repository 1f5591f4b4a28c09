//! Requests that the fleet's store has to be asked about, while they wait.
//!
//! Redis charges all of its rules or none when it answers, before the others are charged: those are
//! judged anew then. Should one refuse by now, Redis gets its permits back with the next trip. So a
//! charge may be visible for a while that lets nobody through, and never the reverse.

use std::cell::Ref;

use crate::check::{Basis, Check, CheckOutcome};
use crate::limiter::Limiter;
use crate::round::Round;
use crate::verdict::Verdict;
use diana_policy::port::{self, Callout, Clock, Request};
use diana_policy::time::{Micros, Now};
use diana_redis::handle::Handle;
use diana_redis::pending::{Pending, Settled};
use diana_redis::protocol::{Question, Reply};
use diana_redis::target::Target;

/// A request that waits for an answer.
pub(crate) struct PendingRequest {
    pub(crate) since: Micros,
    pub(crate) checks: Vec<Check>,
    /// Whether its client left.
    pub(crate) gone: bool,
}

/// A request that was asked about, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    /// Under which it waited.
    pub ticket: u64,
    /// Since when.
    pub since: Micros,
    /// The reply of Redis; none for an operator's question that is answered already.
    pub answer: Option<Pending>,
}

impl Limiter {
    /// When there is something to do between the gateway and Redis the next time.
    #[must_use]
    pub fn next(&self, now: Micros) -> Option<Micros> {
        self.fleet.client.as_ref().and_then(|client| client.next(now, &self.fleet.redis.borrow()))
    }

    /// How Redis is, and what is to be done there.
    #[must_use]
    pub fn redis(&self) -> Ref<'_, Handle> {
        self.fleet.redis.borrow()
    }

    /// Probes Redis from now on. A worker without need for Redis ignores the findings of other workers, so it reads them first.
    #[cold]
    #[inline(never)]
    pub(crate) fn need_redis(&mut self) {
        let mut redis = self.fleet.redis.borrow_mut();
        let was_in_use = std::mem::replace(&mut redis.in_use, true);
        if let Some(client) = self.fleet.client.as_mut().filter(|_| !was_in_use) {
            client.refresh(&mut redis);
        }
    }

    /// Asks no more whether Redis is back, until it is needed again.
    pub fn need_no_redis(&mut self) {
        self.fleet.redis.borrow_mut().in_use = false;
    }

    /// Settles what another limiter has not, which has ended, if it lies where its own does. Whether it does.
    pub fn inherit(&mut self, other: &mut Limiter) -> bool {
        match (&self.fleet.client, &other.fleet.client) {
            (Some(own), Some(client)) => own.inherit(
                &mut self.fleet.redis.borrow_mut(),
                client,
                &mut other.fleet.redis.borrow_mut(),
            ),
            _ => false,
        }
    }

    /// Lines for the log about Redis.
    pub fn news(&mut self) -> Vec<String> {
        self.fleet.client.as_mut().map(|it| std::mem::take(&mut it.stats.news)).unwrap_or_default()
    }

    /// Asks about the request in hand, which other rules hold for `delay`.
    #[inline(never)]
    pub(crate) fn ask(&mut self, delay: Micros) -> Verdict {
        let Some(client) = &mut self.fleet.client else { return Verdict::pass() };
        let mut questions = Vec::new();
        let round = Round::of(&self.scratch.checks, &self.rules, self.fleet.redis.borrow().parts);
        if round.follows {
            // It is asked about once more, and has as long for that.
            self.scratch.since = self.scratch.now.mono;
        }
        for check in &mut self.scratch.checks {
            match &check.says {
                CheckOutcome::Pending if round.waits(check, &self.rules) => continue,
                CheckOutcome::Pending => {}
                // What is admitted is checked anew, and would be kept for nothing.
                CheckOutcome::Admits { by: Basis::Store(_), .. } => {
                    check.says = CheckOutcome::Nothing;
                    continue;
                }
                _ => continue,
            }
            let Some(judge) = self.rules.get_mut(check.rule) else { continue };
            if let Some(store) = judge.in_redis(check.plan) {
                let (now, shadow) = (self.scratch.now, check.shadow);
                let asked = (check.key, check.cost);
                let charge = store.question(asked, now, shadow, round.tentative);
                questions.push((Target::Rule(check.rule), Question::Rule(charge)));
            }
            let bans = judge.bans.as_ref().filter(|_| check.is_own && !check.shadow);
            if let Some(look) = bans.and_then(|bans| bans.question(check.key, None)) {
                questions.push((Target::Ban(check.rule), Question::Ban(look)));
            }
        }
        let since = self.scratch.since;
        let ticket = client.ask(delay, questions, since, &mut self.fleet.redis.borrow_mut());
        let checks = std::mem::take(&mut self.scratch.checks);
        self.fleet.asked.insert(ticket, PendingRequest { since, checks, gone: false });
        Verdict::Ask { ticket }
    }

    /// Goes on with a request whose answer has come. Where it was not asked about, or in vain, there is nothing
    /// to go on with: it has to be decided about anew.
    pub fn resume(&mut self, resumed: &Resumed, now: Now) -> Option<Verdict> {
        let asked = self.fleet.asked.remove(&resumed.ticket)?;
        self.take_back(now);
        let answer = resumed.answer.as_ref()?;
        self.receive(asked, answer, now);
        if answer.is_again() {
            self.give_back();
            return None;
        }
        if self.heed_bans() {
            return Some(self.refuse());
        }
        for check in &mut self.scratch.checks {
            let Some(judge) = self.rules.get_mut(check.rule) else { continue };
            check.catch_up(judge, now);
        }
        Some(self.conclude())
    }

    /// Decides about a request anew whose resumption came to nothing.
    pub fn decide_again(
        &mut self,
        resumed: &Resumed,
        request: &dyn Request,
        clock: &dyn Clock,
    ) -> Verdict {
        self.decide_since(Some(resumed.since), request, clock)
    }

    /// The client of a request left that waits.
    pub fn forget(&mut self, ticket: u64) {
        self.fleet.asked.get_mut(&ticket).into_iter().for_each(|asked| asked.gone = true);
    }

    /// Does what is due between the gateway and Redis. The requests whose answers have come.
    pub fn work(&mut self, now: Now, callout: &dyn Callout) -> Vec<Resumed> {
        let client = self.fleet.client.as_mut();
        let completed =
            client.map(|client| client.work(now, callout, &mut self.fleet.redis.borrow_mut()));
        self.hand_out(completed.unwrap_or_default(), now)
    }

    /// Takes the answer to a call, as [`Limiter::work`]; nothing if it is not one of this limiter's. What follows from
    /// it leaves with the next work.
    pub fn answer(
        &mut self,
        token: u32,
        answer: &port::Answer<'_>,
        now: Now,
    ) -> Option<Vec<Resumed>> {
        let completed = self.fleet.client.as_mut()?.answer(
            token,
            answer,
            now,
            &mut self.fleet.redis.borrow_mut(),
        )?;
        Some(self.hand_out(completed, now))
    }

    /// Forgets the calls that were made by one who has ended, as [`Limiter::work`].
    pub fn lose(&mut self, caller: u32, now: Now) -> Vec<Resumed> {
        let completed = self
            .fleet
            .client
            .as_mut()
            .map(|client| client.lose(caller, &mut self.fleet.redis.borrow_mut()));
        self.hand_out(completed.unwrap_or_default(), now)
    }

    /// Gives back what Redis charged for the request in hand.
    pub(crate) fn give_back(&mut self) {
        for check in &mut self.scratch.checks {
            if let Some(judge) = self.rules.get_mut(check.rule) {
                check.give_back(judge);
            }
        }
    }

    /// Gives back what was charged for a request that does not go on.
    pub fn abandon(&mut self, resumed: &Resumed, now: Now) {
        if let Some(answer) = &resumed.answer {
            self.receive_for_nobody(resumed.ticket, answer, now);
        }
    }

    pub(crate) fn receive_for_nobody(&mut self, ticket: u64, answer: &Pending, now: Now) {
        if let Some(asked) = self.fleet.asked.remove(&ticket) {
            self.receive(asked, answer, now);
            self.give_back();
        }
    }

    /// Takes what was answered about a request, and makes it the one in hand.
    fn receive(&mut self, asked: PendingRequest, answer: &Pending, now: Now) {
        (self.scratch.now, self.scratch.since) = (now, asked.since);
        self.scratch.checks = asked.checks;
        for check in &mut self.scratch.checks {
            if !matches!(check.says, CheckOutcome::Pending) {
                continue;
            }
            let target = Target::Rule(check.rule);
            if !answer.is_about(target) {
                continue;
            }
            check.says = CheckOutcome::Nothing;
            let Some(judge) = self.rules.get_mut(check.rule) else { continue };
            match answer.settled(target) {
                Some(Settled::Decided { reply: Reply::Rule(reply), wait, sent, at }) => {
                    check.hear(judge, &reply, (wait, at), (sent, now));
                }
                _ => check.hear_nothing(judge, now),
            }
            if let Some(Settled::Decided { reply: Reply::Ban(reply), .. }) =
                answer.settled(Target::Ban(check.rule))
                && let Some(bans) = &mut judge.bans
            {
                let left = bans.hear(check.key, &reply, now.mono);
                check.ban(judge, left);
            }
        }
    }
}
