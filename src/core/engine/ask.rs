//! Requests that the fleet's store has to be asked about, while they wait.
//!
//! Redis charges all of its rules or none when it answers, before the others are charged: those are
//! judged anew then. Should one refuse by now, Redis gets its permits back with the next trip. So a
//! charge may be visible for a while that lets nobody through, and never the reverse.

use super::opinion::{Basis, Refused, Says};
use super::{Banned, Engine, Judge, Opinion, Patience, Since};
use crate::decision::Retry;
use crate::port::{self, Callout, Clock, Request};
use crate::redis::client::{Answered, Told};
use crate::redis::handle::{BANS, Handle};
use crate::redis::protocol::{Ask, Opinion as Answer, Outcome};
use crate::time::{Micros, Now};
use crate::verdict::Verdict;

/// A request that waits for an answer.
pub(super) struct Asked {
    since: Micros,
    patience: Option<Patience>,
    opinions: Vec<Opinion>,
    /// Whether its client left.
    gone: bool,
}

/// A request that was asked about, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    /// Under which it waited.
    pub ticket: u64,
    /// Since when.
    pub since: Micros,
    /// How long it may wait for permits, if it has waited for some.
    pub patience: Option<Patience>,
    /// What the fleet's store said.
    pub answered: Answered,
}

/// What Redis charged for a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    /// When the request may leave.
    until: Micros,
    /// Under which the charge can be given back, and the term in which it may.
    pub(super) receipt: u64,
    pub(super) term: u64,
    /// Permits left after it.
    pub(super) left: u64,
}

impl Engine {
    /// When there is something to do the next time: between the gateway and Redis, or about requests that
    /// wait for permits.
    #[must_use]
    pub fn next(&self, now: Micros) -> Option<Micros> {
        let desk = self.desk.as_ref().and_then(|desk| desk.next(now, &self.redis));
        [desk, self.lent.next()].into_iter().flatten().min()
    }

    /// How Redis is, and what is to be done there.
    #[must_use]
    pub fn redis(&self) -> &Handle {
        &self.redis
    }

    /// Asks no more whether Redis is back, until it is needed again.
    pub fn need_no_redis(&mut self) {
        self.redis.in_use = false;
    }

    /// Lines for the log about Redis.
    pub fn news(&mut self) -> Vec<String> {
        self.desk.as_mut().map(|desk| std::mem::take(&mut desk.happened.news)).unwrap_or_default()
    }

    /// Asks about the request in hand, which other rules hold for `delay`.
    #[inline(never)]
    pub(super) fn ask(&mut self, delay: Micros) -> Verdict {
        let Some(desk) = &mut self.desk else { return Verdict::PASS };
        let mut ask = Ask { delay, rules: Vec::new() };
        // Rules that are counted elsewhere are judged anew when the answer comes.
        let is_pending = |opinion: &Opinion| matches!(opinion.says, Says::Pending { .. });
        let tentative = !self.scratch.opinions.iter().all(is_pending);
        for opinion in &mut self.scratch.opinions {
            let ban = match &mut opinion.says {
                Says::Pending { ban } => ban,
                // What is admitted is checked anew, and would be kept for nothing.
                Says::Admits { by: Basis::Store(_), .. } => {
                    opinion.says = Says::Nothing;
                    continue;
                }
                Says::Nothing | Says::Admits { .. } | Says::Refuses(_) | Says::Bans(_) => continue,
            };
            let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
            if let Some(store) = judge.store.redis() {
                ask.rules.push(store.question(
                    opinion.key,
                    self.scratch.now,
                    opinion.shadow,
                    tentative,
                ));
            }
            let bans = judge.bans.as_mut().filter(|_| opinion.is_own && !opinion.shadow);
            let look = bans.and_then(Banned::redis).map(|bans| bans.question(opinion.key));
            *ban = look.is_some();
            ask.rules.extend(look);
        }
        let (since, patience) = (self.scratch.since, self.scratch.patience);
        let ticket = desk.ask(ask, since, &mut self.redis);
        let opinions = std::mem::take(&mut self.scratch.opinions);
        self.asked.insert(ticket, Asked { since, patience, opinions, gone: false });
        Verdict::Ask { ticket }
    }

    /// Goes on with a request whose answer has come. Where that was [`Answered::Again`] there is nothing to
    /// go on with: it has to be decided about anew.
    pub fn resume(&mut self, resumed: &Resumed, now: Now) -> Option<Verdict> {
        let asked = self.asked.remove(resumed.ticket)?;
        self.take_back(now);
        self.receive(asked, &resumed.answered, now);
        if resumed.answered == Answered::Again {
            self.give_back();
            return None;
        }
        if self.heed_bans() {
            return Some(self.refuse());
        }
        for opinion in &mut self.scratch.opinions {
            let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
            opinion.catch_up(judge, now, &mut self.redis);
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
        self.scratch.patience = resumed.patience;
        let since = match resumed.answered {
            // What it has waited for has nothing to do with how long an answer takes.
            Answered::Anew => Since::Now,
            _ => Since::Then(resumed.since),
        };
        self.decide_since(since, request, clock)
    }

    /// The client of a request left that waits.
    pub fn forget(&mut self, ticket: u64) {
        self.lent.leave(ticket);
        self.asked.get_mut(ticket).into_iter().for_each(|asked| asked.gone = true);
    }

    /// Does what is due between the gateway and Redis. The requests whose answers have come.
    pub fn work(&mut self, now: Now, callout: &dyn Callout) -> Vec<Resumed> {
        let told = self.desk.as_mut().map(|desk| desk.work(now, callout, &mut self.redis));
        let mut requests = self.hand_out(told.unwrap_or_default(), now);
        self.take_waiting(now, &mut requests);
        requests
    }

    /// Takes the answer to a call, as [`Engine::work`]; nothing if it is not one of this engine's.
    pub fn answer(
        &mut self,
        token: u32,
        answer: &port::Answer<'_>,
        now: Now,
        callout: &dyn Callout,
    ) -> Option<Vec<Resumed>> {
        let told = self.desk.as_mut()?.answer(token, answer, now, callout, &mut self.redis)?;
        Some(self.hand_out(told, now))
    }

    /// Forgets the calls that were made by one who has ended, as [`Engine::work`].
    pub fn lose(&mut self, caller: u32, now: Now) -> Vec<Resumed> {
        let told = self.desk.as_mut().map(|desk| desk.lose(caller));
        self.hand_out(told.unwrap_or_default(), now)
    }

    /// Gives back what Redis charged for the request in hand.
    pub(super) fn give_back(&mut self) {
        for opinion in &mut self.scratch.opinions {
            let judge = self.rules.get_mut(opinion.rule);
            if let Some(judge) = judge {
                opinion.give_back(judge, &mut self.redis);
            }
        }
    }

    fn hand_out(&mut self, told: Vec<Told>, now: Now) -> Vec<Resumed> {
        if let Some(desk) = &self.desk {
            self.callers.reseed(desk.seed());
        }
        let mut requests = Vec::new();
        for told in told {
            match told {
                Told::Request(ticket, answered) => match self.asked.get(ticket) {
                    Some(Asked { gone: false, since, patience, .. }) => {
                        let patience = *patience;
                        let since = patience.map_or(*since, |patience| patience.since);
                        requests.push(Resumed { ticket, since, patience, answered });
                    }
                    _ => self.abandon(ticket, &answered, now),
                },
                Told::Store(number, key, answer) if number >= BANS => {
                    let judge = self.rules.get_mut(number - BANS);
                    let bans = judge.and_then(|judge| judge.bans.as_mut()?.redis());
                    if let (Some(bans), Some((opinion, _))) = (bans, answer) {
                        bans.told(key, &opinion, now.mono, &mut self.redis);
                    }
                }
                Told::Store(number, key, answer) => {
                    let store = self.rules.get_mut(number).and_then(|judge| judge.store.redis());
                    if let Some(store) = store {
                        store.brought(key, answer, now, &mut self.redis);
                    }
                    self.lent.wake(number, key);
                }
            }
        }
        requests
    }

    /// Gives back what was charged for a request that does not go on.
    pub fn abandon(&mut self, ticket: u64, answered: &Answered, now: Now) {
        if let Some(asked) = self.asked.remove(ticket) {
            self.receive(asked, answered, now);
            self.give_back();
        }
    }

    /// Takes what was answered about a request, and makes it the one in hand.
    fn receive(&mut self, asked: Asked, answered: &Answered, now: Now) {
        (self.scratch.now, self.scratch.since) = (now, asked.since);
        (self.scratch.opinions, self.scratch.patience) = (asked.opinions, asked.patience);
        let mut number = 0;
        for opinion in &mut self.scratch.opinions {
            let Says::Pending { ban } = opinion.says else { continue };
            opinion.says = Says::Nothing;
            let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
            match answered {
                Answered::Decided { outcome, sent, at } => {
                    let answer = outcome.rules.get(number);
                    let answer = answer.map(|answer| (answer, outcome, *sent, *at));
                    if let Some(answer) = answer {
                        opinion.hear(judge, answer, now, &mut self.redis);
                    }
                    if ban
                        && let Some(answer) = outcome.rules.get(number + 1)
                        && let Some(bans) = judge.bans.as_mut().and_then(Banned::redis)
                    {
                        let left = bans.told(opinion.key, answer, now.mono, &mut self.redis);
                        opinion.ban(judge, left, &mut self.redis);
                    }
                }
                Answered::Alone | Answered::Again | Answered::Anew => {
                    opinion.alone = true;
                    let store = judge.store.redis();
                    if let Some(store) = store {
                        store.brought(opinion.key, None, now, &mut self.redis);
                    }
                }
            }
            number += 1 + usize::from(ban);
            if opinion.loan() == 0 {
                self.lent.wake(opinion.rule, opinion.key);
            }
        }
    }
}

impl Opinion {
    /// Takes what Redis says: asked at an instant, decided at another, and answered by now.
    fn hear(
        &mut self,
        judge: &mut Judge,
        answer: (&Answer, &Outcome, Now, Micros),
        now: Now,
        redis: &mut Handle,
    ) {
        let (answer, outcome, sent, at) = answer;
        let Some(store) = judge.store.redis() else { return };
        let wait = outcome.wait.filter(|_| answer.retry.is_none());
        let charged = if wait.is_some() { judge.rule.quota.cost } else { 0 };
        store.told(self.key, answer, charged, (sent, now), redis);
        // What this worker has on lease is still the caller's.
        let left = store.left(self.key).unwrap_or(answer.remaining);
        self.is_own &= !answer.overflow;
        judge.counts.overflow += u64::from(answer.overflow);
        self.says = match (answer.retry, wait) {
            (Some(retry), _) => {
                let left = if retry == Retry::Never { 0 } else { left };
                Says::Refuses(Refused { retry, loan: answer.loan, counts: self.is_own, left })
            }
            (None, Some(wait)) => {
                let wait = if store.holds() { wait } else { 0 };
                let Answer { receipt, term, .. } = *answer;
                let until = at.saturating_add(wait);
                let by = Basis::Redis(Grant { until, receipt, term, left });
                Says::Admits { wait: until.saturating_sub(now.mono), by }
            }
            (None, None) => Says::Admits { wait: 0, by: Basis::Agreed(left) },
        };
    }

    /// Says what it says as of `now`.
    fn catch_up(&mut self, judge: &mut Judge, now: Now, redis: &mut Handle) {
        match &mut self.says {
            Says::Nothing => self.check(judge, now, redis),
            Says::Admits { wait, by: Basis::Redis(grant) } => {
                *wait = grant.until.saturating_sub(now.mono);
            }
            Says::Admits { .. } | Says::Pending { .. } | Says::Refuses(_) | Says::Bans(_) => {}
        }
    }
}
