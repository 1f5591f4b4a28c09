//! The rules of a limiter, each with its store.

use std::rc::Rc;
use std::sync::Arc;

use crate::check::{Check, InProgress};
use crate::commit::{ChargePhase, JointOutcome};
use crate::plans::RulePlans;
use crate::replaces::Replaces;
use crate::report::Record;
use crate::report::explanation::{Explained, Why};
use crate::report::metrics::RuleCounts;
use crate::source_watch::SourceWatch;
use diana_algorithm::Algorithm;
use diana_policy::decision::Retry;
use diana_policy::key::{GatewayId, Key, LoggedKey};
use diana_policy::time::{Micros, Now, SECOND};
use diana_policy::{Rule, Scope};
use diana_request::cost::CostReader;
use diana_request::settling::UsageReader;
use diana_store::bans::Bans;
use diana_store::hot::spotter::Spotter;
use diana_store::permit::CancelQueue;
use diana_store::process::{Process, TurnNumber, Turns};
use diana_store::refusal::Reason;
use diana_store::reservation::Decider;
use diana_store::{Account, CheckOutcome, Reservation, Store};

/// All rules, in the order of the document.
pub(crate) struct Rules {
    pub(crate) list: Vec<CompiledRule>,
    /// The phases of a commit in which any of them is charged, in order.
    pub(crate) phases: Vec<ChargePhase>,
    /// Whether a caller may be banned.
    pub(crate) has_bans: bool,
    /// Whether any rule settles its reservations.
    pub(crate) settles: bool,
    /// Charges of requests that have ended, to be cancelled or settled.
    pub(crate) returned: Rc<CancelQueue>,
    /// Whether there is an authority outside of the gateway.
    pub(crate) has_backend: bool,
    /// The process with the callers of `gateway` rules, if workers take turns for them.
    pub(crate) process: Option<&'static Process>,
}

/// A rule with its usage.
pub(crate) struct CompiledRule {
    pub(crate) config: Rule,
    /// Its name, which records share.
    pub(crate) name: Rc<str>,
    pub(crate) algorithm: Arc<dyn Algorithm>,
    /// Reads the cost of requests, unless all cost the same.
    pub(crate) cost_reader: Option<Box<CostReader>>,
    /// Reads what requests used, if that is settled at their end.
    pub(crate) usage_reader: Option<Box<UsageReader>>,
    pub(crate) plans: Option<Box<RulePlans>>,
    /// The rules that it replaces, if any.
    pub(crate) replaces: Option<Box<Replaces>>,
    /// This gateway, if its callers are counted here: no other gateway knows their keys.
    pub(crate) gateway: Option<GatewayId>,
    /// Its actor's number in the callers; none for `all`.
    pub(crate) actor: Option<usize>,
    /// Whether it is checked and reported only.
    pub(crate) shadow: bool,
    /// Whether it refuses no request: in shadow, or since it marks them.
    pub(crate) yields: bool,
    /// Counts its callers.
    pub(crate) store: Box<dyn Store>,
    /// Whether that is a store of the authority outside of the gateway.
    pub(crate) is_in_backend: bool,
    /// The number of callers that the store has room for.
    pub(crate) keys: u64,
    /// Counts its refusals, and knows its banned callers.
    pub(crate) bans: Option<Box<Bans>>,
    pub(crate) hot: Option<Spotter>,
    /// Whether requests ever have a caller.
    pub(crate) callers: SourceWatch,
    /// Whether responses ever have the usage, if that is settled.
    pub(crate) usage: Option<Box<SourceWatch>>,
    /// Whether responses ever have all numbers of the usage, if that is a sum.
    pub(crate) whole_usage: Option<Box<SourceWatch>>,
    /// Whether a caller had a number that the host has rounded, and the log has its line.
    pub(crate) is_rounded: bool,
    /// Whether requests take positions in a queue, which are returned if a client leaves.
    pub(crate) queues: bool,
    pub(crate) phase: ChargePhase,
    pub(crate) counts: RuleCounts,
    /// The change of the number of callers in this worker's memory since the last flush.
    pub(crate) change_in_keys: i64,
    /// When its last line was logged.
    pub(crate) logged: Option<Micros>,
}

impl Rules {
    /// Waits for the turns of a request's callers, from its check to its charge.
    #[inline]
    pub(crate) fn turns(&self, process: &'static Process, progress: &InProgress) -> Turns {
        let number = |check: &Check| self.list.get(check.rule)?.turn(check.key());
        process.turns(progress.checks.iter().filter_map(number))
    }

    /// Checks a request against every rule, for the first time or again. Pending checks read the
    /// replies; the others are repeated at the present instant.
    pub(crate) fn check(&mut self, progress: &mut InProgress) -> JointOutcome {
        let now = progress.now;
        let is_full = self.settles && self.returned.is_full();
        let (mut delay, mut is_pending, mut is_refused) = (0, false, false);
        for check in &mut progress.checks {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            check.check(rule, now);
            if is_full && rule.is_in_flight() && !check.is_refused() {
                // Without memory for its charge, the slot could not be freed.
                check.cancel(rule);
                check.refuse_with(Reason::Busy, Retry::Soon, Some(0));
            }
            match check.reservation.outcome {
                CheckOutcome::Pending => is_pending = true,
                // A rule in shadow neither holds nor refuses.
                _ if check.is_shadow() => {}
                CheckOutcome::Refused(_) => is_refused = true,
                _ => delay = delay.max(check.wait_without_shadow()),
            }
        }
        match (is_refused, is_pending) {
            (true, _) => JointOutcome::Refused,
            (false, true) => JointOutcome::Pending(delay),
            (false, false) => JointOutcome::Admitted(delay),
        }
    }

    /// Returns true if any rule bans the request's caller. Then drops the checks of all other
    /// rules.
    #[inline(never)]
    pub(crate) fn is_banned(&mut self, progress: &mut InProgress) -> bool {
        for check in &mut progress.checks {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            if check.may_be_banned(rule)
                && let Some(bans) = &mut rule.bans
            {
                let left = bans.left(check.key(), progress.now.mono);
                check.refuse_banned(rule, left);
            }
        }
        self.keep_bans(progress)
    }

    /// If any rule bans the caller, drops the checks of all others, and cancels their charges.
    /// Returns true if so.
    pub(crate) fn keep_bans(&mut self, progress: &mut InProgress) -> bool {
        let any = progress.checks.iter().any(Check::is_ban);
        if any {
            self.cancel(progress);
            for check in progress.checks.iter().filter(|check| !check.is_ban()) {
                if let Some(rule) = self.list.get_mut(check.rule) {
                    rule.counts.not_asked += 1;
                }
            }
            if let Some(explained) = &mut progress.explained {
                let others = progress.checks.iter().filter(|check| !check.is_ban());
                let others = others.filter_map(|check| self.skipped(check.rule, Why::Banned));
                explained.splice(..0, others);
            }
            let has_jitter = |check: &Check| {
                let rule = self.list.get(check.rule).filter(|_| check.is_ban());
                rule.is_some_and(|rule| rule.config.response.jitter > 0)
            };
            if progress.checks.iter().any(has_jitter) {
                progress.banned_callers = progress.callers();
            }
            progress.checks.retain(Check::is_ban);
        }
        any
    }

    /// Explains that a rule was not evaluated.
    pub(crate) fn skipped(&self, rule: usize, why: Why) -> Option<Explained> {
        Some(Explained::Skipped { rule: self.list.get(rule)?.name.clone(), why })
    }

    /// Cancels the charges of a request that does not proceed.
    pub(crate) fn cancel(&mut self, progress: &mut InProgress) {
        for check in progress.checks.iter_mut().rev() {
            if let Some(rule) = self.list.get_mut(check.rule) {
                check.cancel(rule);
            }
        }
    }

    /// Reads the replies about a request after its client has left, and cancels the charges.
    pub(crate) fn abandon(&mut self, mut progress: InProgress, now: Now) {
        for check in progress.checks.iter_mut().filter(|it| it.reservation.is_pending()) {
            if let Some(rule) = self.list.get_mut(check.rule) {
                check.check(rule, now);
            }
        }
        self.cancel(&mut progress);
    }

    /// Counts an admitted request. Returns the index of the first rule whose limit it exceeds, or
    /// else of the first rule in shadow that would have refused it, or that would have held it.
    pub(crate) fn count_admitted(&mut self, progress: &InProgress) -> Option<usize> {
        let (mut over, mut would_refuse, mut would_hold) = (None, None, None);
        for (index, check) in progress.checks.iter().enumerate() {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            rule.counts.overflow += u64::from(check.reservation.is_overflow);
            rule.counts.degraded += u64::from(check.reservation.is_degraded());
            if check.is_over() {
                rule.counts.over += 1;
                over = over.or(Some(index));
                continue;
            }
            if check.is_refused() {
                rule.count_shadow_refusal(check, progress.now);
                would_refuse = would_refuse.or(Some(index));
                continue;
            }
            rule.counts.admit(check.wait());
            if check.wait_without_shadow() > check.wait() {
                rule.counts.shadow_held += 1;
                would_hold = would_hold.or(Some(index));
            }
            if rule.config.near.is_some() && rule.is_near(check) {
                rule.counts.near += 1;
            }
        }
        over.or(would_refuse).or(would_hold)
    }

    /// The headers that mark a request: with the rules of hot callers, and with the values of rules
    /// whose limit it exceeds. If several rules have the same header, the last one counts.
    pub(crate) fn marks(&self, progress: &InProgress) -> Vec<(Rc<str>, String)> {
        let of_hot = |&rule: &usize| {
            let rule = self.list.get(rule)?;
            let header = rule.hot.as_ref()?.hot().header.clone()?;
            Some((header, String::from(&*rule.name)))
        };
        let of_over = |check: &Check| {
            let over = self.list.get(check.rule)?.config.over.as_ref()?;
            Some((over.mark.clone(), over.value.clone()))
        };
        let exceeded = progress.checks.iter().filter(|check| check.is_over());
        let all = progress.hot.iter().filter_map(of_hot).chain(exceeded.filter_map(of_over));
        let mut marks: Vec<(Rc<str>, String)> = Vec::new();
        for (header, value) in all {
            marks.retain(|(other, _)| *other != header);
            marks.push((header, value));
        }
        marks
    }

    /// The decisions of all rules that applied.
    pub(crate) fn records(&mut self, progress: &InProgress) -> Vec<Record> {
        progress.checks.iter().filter_map(|check| self.record(check, progress.now)).collect()
    }

    /// The decision of one rule at `now`.
    pub(crate) fn record(&mut self, check: &Check, now: Now) -> Option<Record> {
        let rule = self.list.get_mut(check.rule)?;
        Some(rule.record(check, self.has_backend, now))
    }
}

impl CompiledRule {
    /// Returns true if workers take turns for its callers, where they are threads of one process.
    pub(crate) fn has_turns(&self) -> bool {
        self.config.scope == Scope::Gateway
    }

    /// The turn of a caller.
    pub(crate) fn turn(&self, key: Key) -> Option<TurnNumber> {
        self.has_turns().then(|| TurnNumber::of(self.config.fingerprint, key))
    }

    /// Returns true if it limits the requests in flight.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.usage_reader.as_ref().is_some_and(|usage_reader| usage_reader.is_slot())
    }

    /// Returns true if the bytes of requests' bodies are read at the end.
    pub(crate) fn reads_request_bytes(&self) -> bool {
        self.usage_reader.as_ref().is_some_and(|usage_reader| usage_reader.reads_request_bytes())
    }

    /// A caller's key for logs and operators.
    pub(crate) fn logged(&self, key: Key) -> LoggedKey {
        LoggedKey { key, gateway: self.gateway }
    }

    /// The decision at `now`, where an authority outside of the gateway may be available.
    fn record(&mut self, check: &Check, has_backend: bool, now: Now) -> Record {
        let Reservation { by, account, .. } = check.reservation;
        let is_shadow = check.is_trial();
        Record {
            scope: match by {
                Decider::Share => Scope::Gateway,
                _ => self.config.scope_with(has_backend),
            },
            shadow: is_shadow,
            marks: check.marks,
            shown: self.config.expose && !is_shadow && by != Decider::Unavailable,
            outcome: check.outcome(self, now),
            policy: match &mut self.plans {
                Some(plans) => plans.policy(account.plan),
                None => self.algorithm.properties().quota(),
            },
            plan: self.plans.as_ref().and_then(|plans| plans.name(account.plan)),
            caller: self.logged(account.key),
            rule: self.name.clone(),
        }
    }

    /// Counts a request that the rule skips, since it has no value for the actor.
    #[cold]
    pub(crate) fn count_absent(&mut self, is_new: bool) {
        self.counts.absent += u64::from(is_new);
        self.callers.miss(is_new);
    }

    /// Counts a request that the rule refuses, towards a ban of its caller, too.
    pub(crate) fn count_refusal(&mut self, check: &Check, now: Now) {
        let reason = check.refused().map(|refused| refused.reason);
        self.counts.leased += u64::from(reason == Some(Reason::Outstanding));
        self.count_final_refusal(check, now);
    }

    /// Counts a request that the rule would have refused outside of shadow.
    pub(crate) fn count_shadow_refusal(&mut self, check: &Check, now: Now) {
        self.counts.shadow_refused += 1;
        self.counts.shadow_banned += u64::from(check.is_shadow_ban());
        if check.may_be_banned(self) {
            self.count_final_refusal(check, now);
        }
    }

    /// Counts a refusal towards a ban of the caller, if it is final and the rule does not ban by
    /// usage.
    fn count_final_refusal(&mut self, check: &Check, now: Now) {
        let bans_by_usage =
            self.usage_reader.as_ref().is_some_and(|usage_reader| usage_reader.bans());
        let is_final = check.refused().is_some_and(|refused| refused.is_final());
        if check.is_identified && is_final && !bans_by_usage {
            self.count_towards_ban(check.reservation.account, now);
        }
    }

    /// Counts a refusal, or a request with usage, towards a ban of the caller.
    pub(crate) fn count_towards_ban(&mut self, account: Account, now: Now) {
        if let Some(bans) = &mut self.bans {
            bans.count(account.key, 1, now.mono);
        }
    }

    /// Counts the refusals that its bans have gathered, and the bans that began.
    pub(crate) fn maintain_bans(&mut self, now: Now) {
        if let Some(bans) = &mut self.bans {
            let begun = bans.maintain(now.mono);
            let count =
                if self.shadow { &mut self.counts.shadow_bans } else { &mut self.counts.bans };
            *count += begun;
        }
    }

    /// Returns true if the rule may log a line now: at most once a second.
    pub(crate) fn may_log(&mut self, now: Now) -> bool {
        let is_due = self.logged.is_none_or(|last| now.mono.saturating_sub(last) >= SECOND);
        if is_due {
            self.logged = Some(now.mono);
        }
        is_due
    }

    /// Returns true if the caller has used more than `near` percent of its limit.
    #[inline(never)]
    pub(crate) fn is_near(&mut self, check: &Check) -> bool {
        let Some(near) = self.config.near else { return false };
        let limit = self.algorithm.properties().limit;
        let used = check.remaining(self).map(|left| limit.saturating_sub(left));
        used.is_some_and(|used| u128::from(used) * 100 > u128::from(limit) * u128::from(near))
    }
}
