//! The other gateways, reached through Redis, and the requests that wait for it.
//!
//! Redis charges all of its rules or none when it replies, before the other rules are charged: those are checked again
//! then. If one of them refuses by now, Redis gets its permits back with the next batch. So a charge may be visible for
//! a while without a request, and never the reverse.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::mem::take;
use std::rc::Rc;

use crate::check::{Basis, Check, CheckOutcome, InProgress};
use crate::commit::Turn;
use crate::limiter::Limiter;
use crate::pending::{Pending, PendingOrder, Ready, ReadyRequest, Replies, Resumed, Waiting};
use crate::rules::{CompiledRule, Rules};
use crate::verdict::Verdict;
use diana_policy::port::{Answer, Callout};
use diana_policy::time::{Micros, Now};
use diana_redis::client::{Client, Completion};
use diana_redis::handle::Handle;
use diana_redis::protocol::Question;
use diana_redis::settled::Settled;
use diana_redis::shard::Shards;
use diana_redis::target::Target;

/// The client of Redis, and what waits for its replies.
pub(crate) struct Fleet {
    pub(crate) client: Option<Client>,
    /// The state of Redis, and the operations for it.
    pub(crate) redis: Rc<RefCell<Handle>>,
    /// What waits for replies, or has its replies and was not resumed yet.
    pending: BTreeMap<u64, Pending>,
    /// The numbers of those that have their replies, in order.
    ready: VecDeque<u64>,
    /// The last number.
    last: u64,
    /// Whether there are rules of scope `global`.
    pub(crate) is_global: bool,
}

impl Fleet {
    pub(crate) fn new(
        client: Option<Client>,
        redis: Rc<RefCell<Handle>>,
        is_global: bool,
    ) -> Fleet {
        let (pending, ready) = (BTreeMap::new(), VecDeque::new());
        Fleet { client, redis, pending, ready, last: 0, is_global }
    }

    /// Returns true if a part of Redis is unavailable, and a rule needs it.
    #[inline]
    pub(crate) fn is_degraded(&self) -> bool {
        self.is_global && self.redis.borrow().away() > 0
    }

    /// Probes Redis from now on. A worker without need for Redis ignores the findings of other workers, so it reads them first.
    #[cold]
    #[inline(never)]
    pub(crate) fn probe(&mut self) {
        let mut redis = self.redis.borrow_mut();
        let was_in_use = std::mem::replace(&mut redis.in_use, true);
        if let Some(client) = self.client.as_mut().filter(|_| !was_in_use) {
            client.refresh(&mut redis);
        }
    }

    /// Asks Redis about a request, which other rules hold for `delay`.
    #[inline(never)]
    pub(crate) fn ask(
        &mut self,
        progress: &mut InProgress,
        delay: Micros,
        rules: &mut Rules,
    ) -> Verdict {
        let parts = self.redis.borrow().parts;
        let round = Round::of(&progress.checks, &rules.list, parts);
        if round.follows {
            // The second round may take as long as the first.
            progress.since = Some(progress.now.mono);
        }
        let since = *progress.since.get_or_insert(progress.now.mono);
        let (mut questions, mut replies) = (Vec::new(), Replies::default());
        for check in &mut progress.checks {
            match &check.outcome {
                CheckOutcome::Pending if round.waits(check, &rules.list) => continue,
                CheckOutcome::Pending => {}
                // It is checked again when the replies come.
                CheckOutcome::Admits { by: Basis::Store(_), .. } => {
                    check.outcome = CheckOutcome::Unchecked;
                    continue;
                }
                _ => continue,
            }
            let Some(rule) = rules.list.get_mut(check.rule) else { continue };
            for (target, question) in rule.questions(check, progress.now, round.tentative) {
                questions.push((replies.expect(target, check.key), question));
            }
        }
        let (id, stream) = progress.waits.unwrap_or_else(|| (self.number(), 0));
        let waiting = Waiting::Request(take(progress));
        self.pending.insert(id, Pending { stream, is_cancelled: false, replies, waiting });
        self.send(id, delay, questions, since);
        Verdict::Pending { id }
    }

    /// Remembers an order that waits. Returns its number.
    pub(crate) fn add_order(&mut self, order: PendingOrder, replies: Replies) -> u64 {
        let (id, waiting) = (self.number(), Waiting::Order(order));
        self.pending.insert(id, Pending { stream: 0, is_cancelled: false, replies, waiting });
        id
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Has questions of a request sent with the next batch: those about one part of Redis are answered together.
    pub(crate) fn send(
        &mut self,
        id: u64,
        delay: Micros,
        questions: Vec<(usize, Question)>,
        since: Micros,
    ) {
        if let Some(client) = &mut self.client {
            client.ask(id, delay, questions, since, &mut self.redis.borrow_mut());
        }
    }

    pub(crate) fn cancel(&mut self, id: u64) -> bool {
        let Some(pending) = self.pending.get_mut(&id) else { return false };
        !std::mem::replace(&mut pending.is_cancelled, true)
    }

    /// Stores the result of a question. Once all of them are known the request is ready, unless its client is gone:
    /// then returns it.
    fn settle(&mut self, id: u64, question: usize, settled: Settled) -> Option<Pending> {
        let pending = self.pending.get_mut(&id)?;
        pending.replies.settle(question, settled);
        if !pending.replies.is_complete() {
            return None;
        }
        if pending.is_cancelled && matches!(pending.waiting, Waiting::Request(_)) {
            return self.pending.remove(&id);
        }
        self.ready.push_back(id);
        None
    }
}

/// The queries and the calls of a worker, for the limiter's requests to Redis.
impl Limiter {
    /// The stream of a pending request, by the host's number.
    pub fn set_stream(&mut self, id: u64, stream: u32) {
        if let Some(pending) = self.fleet.pending.get_mut(&id) {
            pending.stream = stream;
        }
    }

    /// How many requests have their replies and were not resumed yet.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.fleet.ready.len()
    }

    /// The next request to be resumed, or order to be answered. What Redis charged for cancelled requests is returned.
    pub fn next_ready(&mut self, now: Now) -> Option<Ready> {
        while let Some(id) = self.fleet.ready.pop_front() {
            let Some(pending) = self.fleet.pending.remove(&id) else { continue };
            let Pending { stream, is_cancelled, replies, waiting } = pending;
            match waiting {
                Waiting::Request(progress) if is_cancelled => {
                    self.rules.cancel(progress, &replies, now);
                }
                Waiting::Request(mut progress) => {
                    progress.waits = Some((id, stream));
                    let since = progress.since.unwrap_or(now.mono);
                    let resumed = Resumed { id, stream, since, replies };
                    return Some(Ready::Request(ReadyRequest { resumed, progress }));
                }
                Waiting::Order(order) => {
                    let stream = (!is_cancelled).then_some(stream);
                    let result = self.rules.order_result(order, &replies, now);
                    return Some(Ready::Order { stream, result });
                }
            }
        }
        None
    }

    /// The time of the next work for Redis.
    #[must_use]
    pub fn next(&self, now: Micros) -> Option<Micros> {
        self.fleet.client.as_ref().and_then(|client| client.next(now, &self.fleet.redis.borrow()))
    }

    /// The state of Redis.
    #[must_use]
    pub fn redis(&self) -> Ref<'_, Handle> {
        self.fleet.redis.borrow()
    }

    /// Returns true if all callers of rules of scope `global` are counted together with the other gateways.
    #[must_use]
    pub fn is_together(&self) -> bool {
        self.fleet.client.is_some() && self.fleet.redis.borrow().away() == 0
    }

    /// Stops probing Redis until a request needs it again.
    pub fn stop_probing(&mut self) {
        self.fleet.redis.borrow_mut().in_use = false;
    }

    /// Takes over the unsettled charges of a retired limiter, if both use the same Redis. Returns true if they do.
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
    pub fn log_lines(&mut self) -> Vec<String> {
        let client = self.fleet.client.as_mut();
        client.map(|client| take(&mut client.stats.news)).unwrap_or_default()
    }

    /// Sends due commands to Redis. Requests without a reply in time become ready.
    pub fn work(&mut self, now: Now, callout: &dyn Callout) {
        let Some(client) = &mut self.fleet.client else { return };
        let completed = client.work(now, callout, &mut self.fleet.redis.borrow_mut());
        self.complete(completed, now);
    }

    /// Takes the answer to a call; returns false if another limiter made it. What follows from it is sent with the next
    /// [`Limiter::work`].
    pub fn on_reply(&mut self, token: u32, answer: &Answer<'_>, now: Now) -> bool {
        let Some(client) = &mut self.fleet.client else { return false };
        let completed = client.answer(token, answer, now, &mut self.fleet.redis.borrow_mut());
        let is_own = completed.is_some();
        self.complete(completed.unwrap_or_default(), now);
        is_own
    }

    /// Forgets the calls that a root made which has ended: their answers will not come.
    pub fn on_root_ended(&mut self, root: u32, now: Now) {
        let Some(client) = &mut self.fleet.client else { return };
        let completed = client.lose(root, &mut self.fleet.redis.borrow_mut());
        self.complete(completed, now);
    }

    fn complete(&mut self, completed: Vec<Completion>, now: Now) {
        if let Some(client) = &self.fleet.client {
            self.matcher.callers.reseed(client.seed());
        }
        for completion in completed {
            match completion {
                Completion::Request(id, question, settled) => {
                    if let Some(Pending { replies, waiting: Waiting::Request(progress), .. }) =
                        self.fleet.settle(id, question, settled)
                    {
                        self.rules.cancel(progress, &replies, now);
                    }
                }
                Completion::Operation(target, caller, reply) => {
                    self.rules.complete(target, caller, reply, now);
                }
            }
        }
    }
}

impl CompiledRule {
    /// What Redis is asked about a request.
    fn questions(
        &mut self,
        check: &Check,
        now: Now,
        tentative: bool,
    ) -> impl Iterator<Item = (Target, Question)> {
        let store = self.redis_store(check.plan);
        let charge =
            store.map(|it| it.question((check.key, check.cost), now, check.shadow, tentative));
        let bans = self.bans.as_ref().filter(|_| check.is_own && !check.shadow);
        let look = bans.and_then(|bans| bans.question(check.key, None));
        let rule = charge.map(|charge| (Target::Rule(check.rule), Question::Rule(charge)));
        rule.into_iter().chain(look.map(|look| (Target::Ban(check.rule), Question::Ban(look))))
    }
}

/// A round of questions about a request with rules in several shards of Redis.
///
/// Each shard charges its own rules. If another shard refuses, revocable charges are returned, and count as outstanding
/// until then, so that they cause no final refusal. The first round asks about revocable charges. The second round asks
/// about quotas, and about queues, of which only the last position can be returned.
struct Round {
    /// Whether the charges may be returned.
    tentative: bool,
    /// Whether it is the second round.
    follows: bool,
    /// Whether charges that cannot be returned wait for the second round.
    holds_back: bool,
}

impl Round {
    fn of(checks: &[Check], rules: &[CompiledRule], parts: Shards) -> Round {
        let pending = || checks.iter().filter(|it| matches!(it.outcome, CheckOutcome::Pending));
        let mut places = pending().map(|check| parts.of(check.key));
        let first = places.next();
        let is_spread = places.any(|part| Some(part) != first);
        let comes_back = |check: &Check| !is_final(check, rules);
        let by_redis = |check: &Check| {
            matches!(
                check.outcome,
                CheckOutcome::Admits { by: Basis::Redis(_) | Basis::Agreed(_), .. }
            )
        };
        Round {
            // Rules that are counted elsewhere are checked again when the replies come.
            tentative: is_spread || pending().count() < checks.len(),
            follows: !pending().any(comes_back)
                && checks.iter().any(|check| by_redis(check) || check.alone),
            holds_back: is_spread && pending().any(comes_back),
        }
    }

    /// Returns true if a pending rule is asked about in a later round.
    fn waits(&self, check: &Check, rules: &[CompiledRule]) -> bool {
        self.holds_back && is_final(check, rules)
    }
}

/// Returns true if the charge of a rule cannot be returned.
fn is_final(check: &Check, rules: &[CompiledRule]) -> bool {
    let turn = rules.get(check.rule).map(|rule| rule.turn);
    matches!(turn, Some(Turn::SharedQueue | Turn::Quota))
}
