//! The rules of a limiter, each with its store.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use crate::bans::Bans;
use crate::check::{Check, CheckOutcome, InProgress};
use crate::commit::Turn;
use crate::pending::Replies;
use crate::plans::RulePlans;
use crate::report::explained::{Explained, Why};
use crate::report::metrics::RuleCounts;
use crate::report::{Reason, Record, Refused};
use diana_algorithm::Algorithm;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;
use diana_policy::time::{Micros, Now, SECOND};
use diana_policy::{Rule, Scope};
use diana_redis::handle::Handle;

use diana_redis::protocol::Reply;
use diana_redis::settled::Settled;
use diana_redis::store::RedisStore;
use diana_redis::target::Target;
use diana_request::cost::Teller;
use diana_request::settling::Settler;
use diana_store::Store;
use diana_store::hot::spotter::Spotter;
use diana_store::permit::Freed;

/// All rules, in the order of the document.
pub(crate) struct Rules {
    pub(crate) list: Vec<CompiledRule>,
    /// The turns in which they are charged, in order.
    pub(crate) turns: Vec<Turn>,
    /// Whether a caller may be banned.
    pub(crate) has_bans: bool,
    /// Whether any rule settles its reservations.
    pub(crate) settles: bool,
    /// Charges that came back.
    pub(crate) returned: Rc<Freed>,
    /// The state of Redis; `None` without one.
    pub(crate) redis: Option<Rc<RefCell<Handle>>>,
}

/// A rule with its usage.
pub(crate) struct CompiledRule {
    pub(crate) config: Rule,
    /// Its name, which records share.
    pub(crate) name: Rc<str>,
    pub(crate) algorithm: Rc<dyn Algorithm>,
    /// Reads the cost of requests, unless all cost the same.
    pub(crate) teller: Option<Box<Teller>>,
    /// Reads what requests used, if that is settled at their end.
    pub(crate) settler: Option<Box<Settler>>,
    pub(crate) plans: Option<Box<RulePlans>>,
    /// Its actor's number in the callers; none for `all`.
    pub(crate) actor: Option<usize>,
    /// Whether it is checked and reported only.
    pub(crate) shadow: bool,
    /// Counts its callers.
    pub(crate) store: Box<dyn Store>,
    /// How many callers the store has room for.
    pub(crate) keys: u64,
    pub(crate) bans: Option<Box<Bans>>,
    pub(crate) hot: Option<Spotter>,
    /// Whether requests take positions in a queue, which are returned if a client leaves.
    pub(crate) queues: bool,
    pub(crate) turn: Turn,
    pub(crate) counts: RuleCounts,
    /// By how many the callers in this worker's memory changed since the last flush.
    pub(crate) change_in_keys: i64,
    /// When its last line was logged.
    pub(crate) logged: Option<Micros>,
}

impl Rules {
    /// Checks a request against every rule.
    pub(crate) fn check(&mut self, progress: &mut InProgress) {
        let now = progress.now;
        let is_full = self.settles && self.returned.is_full();
        for check in &mut progress.checks {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            let CheckOutcome::Unchecked = check.outcome else { continue };
            if is_full && rule.is_in_flight() {
                // Without memory for its charge, the slot could not be freed.
                let refused = Refused::new(Reason::Busy, Retry::Soon, Some(0));
                check.outcome = CheckOutcome::Refuses(refused);
                continue;
            }
            let found = rule.store.check(check.account(), check.cost, now);
            rule.counts.overflow += u64::from(found.is_overflow());
            check.take(rule, found);
        }
    }

    /// Looks for bans of the request's callers. Returns true if there are any: then only rules that ban are kept.
    #[inline(never)]
    pub(crate) fn is_banned(&mut self, progress: &mut InProgress) -> bool {
        for check in &mut progress.checks {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            if let Some(bans) = &mut rule.bans
                && check.is_own
                && !check.shadow
            {
                let left = bans.left(check.key, progress.now.mono);
                check.ban(rule, left);
            }
        }
        self.keep_bans(progress)
    }

    /// If any rule bans the caller, drops the checks of all others, and returns what Redis charged. Returns true if so.
    pub(crate) fn keep_bans(&mut self, progress: &mut InProgress) -> bool {
        let any = progress.checks.iter().any(Check::is_ban);
        if any {
            self.give_back(progress);
            if let Some(explained) = &mut progress.explained {
                let others = progress.checks.iter().filter(|check| !check.is_ban());
                let others = others.filter_map(|check| self.skipped(check.rule, Why::Banned));
                explained.splice(..0, others);
            }
            progress.checks.retain(Check::is_ban);
        }
        any
    }

    /// Explains that a rule was not evaluated.
    pub(crate) fn skipped(&self, rule: usize, why: Why) -> Option<Explained> {
        Some(Explained::Skipped { rule: self.list.get(rule)?.name.clone(), why })
    }

    /// Returns what Redis charged for a request.
    pub(crate) fn give_back(&mut self, progress: &mut InProgress) {
        for check in &mut progress.checks {
            if let Some(rule) = self.list.get_mut(check.rule) {
                check.give_back(rule);
            }
        }
    }

    /// Updates all checks to the present, where Redis has replied about some of them.
    pub(crate) fn catch_up(&mut self, progress: &mut InProgress) {
        for check in &mut progress.checks {
            if let Some(rule) = self.list.get_mut(check.rule) {
                check.catch_up(rule, progress.now);
            }
        }
    }

    /// Takes the replies about a request.
    pub(crate) fn receive(&mut self, progress: &mut InProgress, replies: &Replies, now: Now) {
        progress.now = now;
        for check in &mut progress.checks {
            let (target, key) = (Target::Rule(check.rule), check.key);
            let is_asked = replies.is_about(target, key);
            if !is_asked || !matches!(check.outcome, CheckOutcome::Pending) {
                continue;
            }
            check.outcome = CheckOutcome::Unchecked;
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            match replies.settled(target, key) {
                Some(Settled::Decided { reply: Reply::Rule(reply), wait, sent, at }) => {
                    check.on_reply(rule, &reply, (wait, at), (sent, now));
                }
                _ => check.on_failure(rule, now),
            }
            if let Some(Settled::Decided { reply: Reply::Ban(reply), .. }) =
                replies.settled(Target::Ban(check.rule), key)
                && let Some(bans) = &mut rule.bans
            {
                let left = bans.hear(key, &reply, now.mono);
                check.ban(rule, left);
            }
        }
    }

    /// Returns what Redis charged for a request after its client has left.
    pub(crate) fn cancel(&mut self, mut progress: InProgress, replies: &Replies, now: Now) {
        self.receive(&mut progress, replies, now);
        self.give_back(&mut progress);
    }

    /// Passes the reply to an operation to the store or the bans that asked for it.
    pub(crate) fn complete(
        &mut self,
        target: Target,
        (key, plan): (Key, u32),
        reply: Option<(Reply, Now)>,
        now: Now,
    ) {
        match target {
            Target::Rule(rule) => {
                let reply = reply.and_then(|(reply, sent)| Some((*reply.rule()?, sent)));
                let rule = self.list.get_mut(rule);
                if let Some(store) = rule.and_then(|rule| rule.redis_store(plan)) {
                    store.complete(key, reply, now);
                }
            }
            Target::Ban(rule) => {
                let bans = self.list.get_mut(rule).and_then(|rule| rule.bans.as_mut());
                if let (Some(bans), Some((Reply::Ban(reply), _))) = (bans, reply) {
                    bans.hear(key, &reply, now.mono);
                }
            }
        }
    }

    /// Counts an admitted request. Returns the place of the first rule in shadow that would have refused it, or else of the
    /// first that would have held it.
    pub(crate) fn count_admitted(&mut self, progress: &InProgress) -> Option<usize> {
        let (mut would_refuse, mut would_hold) = (None, None);
        for (place, check) in progress.checks.iter().enumerate() {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            match check.outcome {
                CheckOutcome::Unchecked | CheckOutcome::Pending | CheckOutcome::Admits { .. } => {
                    rule.counts.admit(check.wait());
                    if check.turn() > check.wait() {
                        rule.counts.shadow_held += 1;
                        would_hold = would_hold.or(Some(place));
                    }
                    if rule.config.near.is_some() && rule.is_near(check) {
                        rule.counts.near += 1;
                    }
                }
                CheckOutcome::Refuses(_) => {
                    rule.counts.shadow_refused += 1;
                    would_refuse = would_refuse.or(Some(place));
                }
            }
        }
        would_refuse.or(would_hold)
    }

    /// The headers that mark a request of a hot caller, and the rules that they name. If several rules have the same
    /// header, the last one counts.
    pub(crate) fn marks(&self, progress: &InProgress) -> Vec<(Rc<str>, String)> {
        let mark = |&rule: &usize| {
            let rule = self.list.get(rule)?;
            let header = rule.hot.as_ref()?.hot().header.clone()?;
            Some((header, String::from(&*rule.name)))
        };
        progress.hot.iter().filter_map(mark).collect()
    }

    /// The decisions of all rules that applied.
    pub(crate) fn records(&mut self, progress: &InProgress) -> Vec<Record> {
        progress.checks.iter().filter_map(|check| self.record(check, progress.now)).collect()
    }

    /// The decision of one rule at `now`.
    pub(crate) fn record(&mut self, check: &Check, now: Now) -> Option<Record> {
        let rule = self.list.get_mut(check.rule)?;
        let scope = rule.scope(check.key, self.redis.as_deref());
        Some(rule.record(check, scope, now))
    }
}

impl CompiledRule {
    /// Its store, if Redis counts the callers, with the numbers of a plan at hand.
    pub(crate) fn redis_store(&mut self, plan: u32) -> Option<&mut RedisStore> {
        let store: &mut dyn Any = &mut *self.store;
        let store: &mut RedisStore = store.downcast_mut()?;
        store.judge_by(plan);
        Some(store)
    }

    /// Returns true if it limits the requests in flight.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.settler.as_ref().is_some_and(|settler| settler.is_place())
    }

    /// How widely a caller is counted.
    fn scope(&self, caller: Key, redis: Option<&RefCell<Handle>>) -> Scope {
        if let Some(redis) = redis
            && self.config.scope == Scope::Global
        {
            let redis = redis.borrow();
            let on_failure = self.config.on_failure.unwrap_or(redis.on_failure);
            if on_failure == OnFailure::Gateway && redis.is_alone(caller) {
                return Scope::Gateway;
            }
        }
        self.config.scope_with(redis.is_some())
    }

    /// The decision at `now`, for a request that is counted in this scope.
    fn record(&mut self, check: &Check, scope: Scope, now: Now) -> Record {
        let known = check.known(self);
        Record {
            scope,
            shadow: check.shadow,
            shown: self.config.expose && !check.shadow && check.is_counted(),
            outcome: check.reported(),
            policy: match &mut self.plans {
                Some(plans) => plans.policy(check.plan),
                None => self.algorithm.properties().quota(),
            },
            plan: self.plans.as_ref().and_then(|plans| plans.name(check.plan)),
            remaining: check.remaining(known),
            reset: check.reset(self, known, now),
            caller: check.key,
            rule: self.name.clone(),
        }
    }

    /// Counts a refusal towards a ban of the caller, if it is one that does.
    pub(crate) fn note_refusal(&mut self, check: &Check, now: Now) {
        let Some(refused) = check.refused() else { return };
        self.counts.lent += u64::from(refused.reason == Reason::Outstanding);
        if let Some(bans) = &mut self.bans
            && check.is_own
            && refused.is_final()
            && !self.settler.as_ref().is_some_and(|settler| settler.bans())
        {
            bans.refused(check.key, now.mono);
        }
    }

    /// Returns true at most once a second, for its lines of the log.
    pub(crate) fn may_log(&mut self, now: Now) -> bool {
        let is_due = self.logged.is_none_or(|last| now.mono.saturating_sub(last) >= SECOND);
        if is_due {
            self.logged = Some(now.mono);
        }
        is_due
    }

    /// Returns true if it admits a request of a caller that has used more than `near` percent of its limit.
    #[inline(never)]
    pub(crate) fn is_near(&mut self, check: &Check) -> bool {
        let Some(near) = self.config.near else { return false };
        let limit = self.algorithm.properties().limit;
        let used = check.remaining(check.known(self)).map(|left| limit.saturating_sub(left));
        used.is_some_and(|used| u128::from(used) * 100 > u128::from(limit) * u128::from(near))
    }
}
