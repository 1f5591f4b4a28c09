//! A request in progress, and its check against each rule that applies.

use crate::report::explanation::Explained;
use crate::report::{Outcome, Record};
use crate::rule::CompiledRule;
use diana_algorithm::latest_renewal;
use diana_policy::decision::Retry;
use diana_policy::key::{Key, KeyHasher};
use diana_policy::port::Clock;
use diana_policy::time::{Micros, Now};
use diana_policy::{Metric, Scope};
use diana_request::settling::{GrpcOutcome, HeaderUsage};
use diana_store::permit::OpenCharge;
use diana_store::question::Question;
use diana_store::refusal::{Reason, Refused};
use diana_store::replies::Replies;
use diana_store::reservation::Decider;
use diana_store::usage::Remaining;
use diana_store::{CheckOutcome, Reservation};

/// A request with its checks: begun by `decide`, stored while an authority is asked, resumed or
/// dropped.
#[derive(Default)]
pub(crate) struct InProgress {
    /// One for each rule that applies.
    pub(crate) checks: Vec<Check>,
    /// When all rules were checked. Zero until the first rule needs it.
    pub(crate) now: Now,
    pub(crate) waiter: Waiter,
    /// The authority's replies to its questions, once all of them are there.
    pub(crate) replies: Replies,
    /// The rules that mark it, because its caller is hot.
    pub(crate) hot: Vec<usize>,
    /// The hash of its callers, if only the checks of bans are left and one of them has jitter.
    pub(crate) banned_callers: Option<u64>,
    /// The rules that do not apply, if an operator asks for an explanation.
    pub(crate) explained: Option<Vec<Explained>>,
}

/// The check of a request against one rule.
pub(crate) struct Check {
    pub(crate) rule: usize,
    /// Whether the caller is known, and does not share its state with other callers.
    pub(crate) is_identified: bool,
    /// Whether the rule marks a request that exceeds its limit, instead of refusing it.
    pub(crate) marks: bool,
    /// The check by the rule's store.
    pub(crate) reservation: Reservation,
    /// Whether the rule has an authority that knows whether the caller is banned.
    pub(crate) is_ban_asked: bool,
}

impl InProgress {
    /// Begins with the request of another stream, by the host's number.
    #[inline]
    pub(crate) fn begin(&mut self, stream: u32) {
        self.checks.clear();
        self.now = Now::default();
        self.waiter = Waiter { stream, ..Waiter::default() };
        self.hot.clear();
        (self.banned_callers, self.explained) = (None, None);
    }

    /// The instant at which all rules are checked: reads the clock once.
    #[inline]
    pub(crate) fn read_clock(&mut self, clock: &dyn Clock) -> Now {
        if self.now.mono == 0 {
            self.now = clock.now();
        }
        self.now
    }

    /// Continues at a later instant, at which the rules that do not refuse it are checked again.
    pub(crate) fn resume(&mut self, now: Now) {
        self.now = now;
        for check in self.checks.iter_mut().filter(|check| !check.is_refused()) {
            check.reservation.now = now;
        }
    }

    /// Returns true if a question about it was lost, so that it must be decided again.
    pub(crate) fn is_lost(&self) -> bool {
        self.checks.iter().any(|check| check.reservation.outcome == CheckOutcome::Lost)
    }

    /// The first check of an admitted request by a rule that marks it, or else by a rule in shadow
    /// that would have refused or held it.
    pub(crate) fn spared(&self) -> Option<usize> {
        let first = |is_it: fn(&Check) -> bool| self.checks.iter().position(is_it);
        let refused = || first(Check::is_refused).or_else(|| first(Check::would_hold));
        first(Check::is_over).or_else(refused)
    }

    /// A hash of all callers that its rules distinguish: as fine as the finest of them. `None` if
    /// there are none.
    pub(crate) fn callers(&self) -> Option<u64> {
        let keys = self.checks.iter().map(Check::key);
        let mut known = keys.filter(|key| ![Key::ALL, Key::SHARED].contains(key)).peekable();
        known.peek()?;
        let mut hasher = KeyHasher::public();
        known.for_each(|key| hasher.part(0, &key.hash.to_le_bytes()));
        Some(hasher.finish().hash)
    }
}

impl Check {
    /// Refuses the request without a check: the caller is unknown, or its plan has no permits.
    #[inline(never)]
    pub(crate) fn deny(&mut self) {
        self.refuse_with(Reason::Used, Retry::Never, Some(0));
    }

    /// Replaces the outcome by a refusal.
    pub(crate) fn refuse_with(&mut self, reason: Reason, retry: Retry, remaining: Option<u64>) {
        self.reservation.outcome = CheckOutcome::Refused(Refused { reason, retry, remaining });
    }

    pub(crate) fn key(&self) -> Key {
        self.reservation.account.key
    }

    pub(crate) fn plan(&self) -> u64 {
        self.reservation.account.plan
    }

    /// Returns true if the rule neither refuses nor holds this caller: it is only reported, or marks
    /// requests.
    pub(crate) fn is_shadow(&self) -> bool {
        self.reservation.is_shadow
    }

    /// Returns true if the rule is only reported for this caller.
    pub(crate) fn is_trial(&self) -> bool {
        self.is_shadow() && !self.marks
    }

    /// Returns true if the rule marks the request, which exceeds its limit.
    pub(crate) fn is_over(&self) -> bool {
        self.marks && self.is_refused()
    }

    /// Returns true if the rule may ban the caller, or may report that in shadow it would. In the
    /// part of callers outside of `enforce` it does neither.
    pub(crate) fn may_be_banned(&self, rule: &CompiledRule) -> bool {
        self.is_identified && (!self.is_shadow() || rule.tries_bans)
    }

    /// Checks the request, for the first time or again. A refused request stays refused.
    #[inline]
    pub(crate) fn check(&mut self, rule: &mut CompiledRule, replies: &Replies) {
        if self.is_refused() {
            return;
        }
        rule.store.check(&mut self.reservation, replies);
        self.is_identified &= !self.reservation.is_overflow;
        if self.is_ban_asked {
            self.check_ban(rule, replies);
        }
    }

    #[inline(never)]
    fn check_ban(&mut self, rule: &mut CompiledRule, replies: &Replies) {
        self.is_ban_asked = false;
        if let Some(bans) = &mut rule.bans {
            let now = self.reservation.now.mono;
            let mut left = bans.on_reply(self.key(), replies, now);
            if left == 0 && !self.reservation.is_pending() {
                left = bans.known_left(self.key(), now);
            }
            self.refuse_banned(rule, left);
        }
    }

    /// Replaces the rule's admission by a refusal, and cancels a charge.
    pub(crate) fn refuse(&mut self, rule: &mut CompiledRule, reason: Reason, retry: Retry) {
        let is_outstanding =
            self.refused().is_some_and(|refused| refused.reason == Reason::Outstanding);
        let reason = if is_outstanding { Reason::Outstanding } else { reason };
        let remaining = self.remaining(rule);
        self.cancel(rule);
        self.refuse_with(reason, retry, remaining);
    }

    /// Refuses the request if its caller is banned for more than zero ticks, and cancels a charge.
    pub(crate) fn refuse_banned(&mut self, rule: &mut CompiledRule, left: Micros) {
        if left > 0 {
            self.cancel(rule);
            self.reservation.outcome = CheckOutcome::Refused(Refused::banned(left));
        }
    }

    /// Cancels the charge of a request that does not proceed, if it is charged.
    pub(crate) fn cancel(&mut self, rule: &mut CompiledRule) {
        if self.reservation.is_charged() {
            rule.store.cancel(&mut self.reservation);
        }
    }

    /// Returns true if the rule was not evaluated, since another one refuses the request.
    pub(crate) fn is_unasked(&self) -> bool {
        matches!(self.reservation.outcome, CheckOutcome::Unchecked | CheckOutcome::Pending)
    }

    /// Returns true if the rule refuses the request.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.reservation.outcome, CheckOutcome::Refused(_))
    }

    /// The refusal, if the rule refuses the request.
    pub(crate) fn refused(&self) -> Option<Refused> {
        self.reservation.refused().map(Refused::reported)
    }

    /// Returns true if the rule bans the caller, or in shadow would.
    fn is_banned(&self) -> bool {
        self.refused().is_some_and(|refused| refused.reason == Reason::Banned)
    }

    /// Returns true if the rule refuses the request, since it bans the caller.
    pub(crate) fn is_ban(&self) -> bool {
        self.is_banned() && !self.is_shadow()
    }

    /// Returns true if in shadow the rule would ban the caller.
    pub(crate) fn is_shadow_ban(&self) -> bool {
        self.is_banned() && self.is_shadow()
    }

    /// The decision at `now`, for reports.
    pub(crate) fn outcome(&self, rule: &mut CompiledRule, now: Now) -> Outcome {
        let balance = self.balance(rule);
        let remaining = balance.map(|balance| balance.permits);
        match self.refused() {
            Some(refused) => Outcome::Refused(Refused { remaining, ..refused }),
            None => {
                let (wait, renewal) =
                    (self.wait_without_shadow(), self.renewal(rule, balance, now));
                Outcome::Admitted { wait, remaining, renewal }
            }
        }
    }

    /// The remaining permits after the decision, and the time until there are more, if the store
    /// knows them.
    fn balance(&self, rule: &mut CompiledRule) -> Option<Remaining> {
        match self.reservation.outcome {
            CheckOutcome::Unchecked => None,
            CheckOutcome::Refused(Refused { remaining: Some(permits), .. }) => {
                Some(Remaining { permits, renewal: None })
            }
            _ => rule.store.remaining(&self.reservation),
        }
    }

    /// The remaining permits after the decision, if they are known.
    pub(crate) fn remaining(&self, rule: &mut CompiledRule) -> Option<u64> {
        self.balance(rule).map(|balance| balance.permits)
    }

    /// Ticks until more permits remain, of a request that is not refused; `None` is never.
    fn renewal(
        &self,
        rule: &mut CompiledRule,
        balance: Option<Remaining>,
        now: Now,
    ) -> Option<Micros> {
        if let Some(balance) = balance {
            return balance.renewal;
        }
        if self.reservation.is_pending() {
            return None;
        }
        let CompiledRule { algorithm, plans, .. } = rule;
        let plans = plans.as_deref_mut();
        let algorithm = plans.map_or(&*algorithm, |plans| plans.algorithm(self.plan()));
        Some(
            latest_renewal(&**algorithm, self.reservation.cost, now)?
                .saturating_add(self.wait_without_shadow()),
        )
    }

    /// Ticks for which the rule holds the request; zero in shadow.
    pub(crate) fn wait(&self) -> Micros {
        if self.is_shadow() { 0 } else { self.wait_without_shadow() }
    }

    /// Ticks for which the rule holds the request, or would hold it without shadow.
    pub(crate) fn wait_without_shadow(&self) -> Micros {
        self.reservation.wait()
    }

    /// Returns true if the rule would hold the request outside of shadow.
    pub(crate) fn would_hold(&self) -> bool {
        self.is_shadow() && self.wait_without_shadow() > 0
    }

    /// The decision at `now`, where an authority outside of the gateway may be available.
    pub(crate) fn record(&self, rule: &mut CompiledRule, has_backend: bool, now: Now) -> Record {
        let Reservation { by, account, .. } = self.reservation;
        let is_shadow = self.is_trial();
        Record {
            scope: match by {
                Decider::Share => Scope::Gateway,
                _ => rule.config.scope_with(has_backend),
            },
            shadow: is_shadow,
            marks: self.marks,
            shown: rule.config.expose && !is_shadow && by != Decider::Unavailable,
            outcome: self.outcome(rule, now),
            policy: match &mut rule.plans {
                Some(plans) => plans.policy(account.plan),
                None => rule.algorithm.properties().quota(),
            },
            plan: rule.plans.as_ref().and_then(|plans| plans.name(account.plan)),
            caller: rule.logged(account.key),
            rule: rule.name.clone(),
        }
    }

    /// Counts a request that the rule refuses, towards a ban of its caller, too.
    pub(crate) fn count_refusal(&self, rule: &mut CompiledRule, now: Now) {
        let reason = self.refused().map(|refused| refused.reason);
        rule.counts.add(Metric::Leased, reason == Some(Reason::Outstanding));
        self.count_final_refusal(rule, now);
    }

    /// Counts a request that the rule would have refused outside of shadow.
    pub(crate) fn count_shadow_refusal(&self, rule: &mut CompiledRule, now: Now) {
        rule.counts.add(Metric::ShadowRefused, 1);
        rule.counts.add(Metric::ShadowBanned, self.is_shadow_ban());
        if self.may_be_banned(rule) {
            self.count_final_refusal(rule, now);
        }
    }

    /// Counts a refusal towards a ban of the caller, if it is final and the rule does not ban by
    /// usage.
    fn count_final_refusal(&self, rule: &mut CompiledRule, now: Now) {
        let bans_by_usage =
            rule.usage_reader.as_ref().is_some_and(|usage_reader| usage_reader.bans());
        let is_final = self.refused().is_some_and(|refused| refused.is_final());
        if self.is_identified && is_final && !bans_by_usage {
            rule.count_towards_ban(self.reservation.account, now);
        }
    }

    /// Counts an admitted request under a rule that neither refuses nor holds it. Returns true if
    /// another rule would have.
    #[inline(never)]
    pub(crate) fn count_in_shadow(&self, rule: &mut CompiledRule, now: Now) -> bool {
        match self.reservation.outcome {
            CheckOutcome::Refused(_) if self.marks => rule.counts.add(Metric::Over, 1),
            CheckOutcome::Refused(_) => self.count_shadow_refusal(rule, now),
            _ => {
                let would_hold = self.would_hold();
                rule.counts.admit(0);
                rule.counts.add(Metric::ShadowHeld, would_hold);
                return would_hold;
            }
        }
        true
    }

    /// Returns true if the rule admits the request, and the caller has used more than `near` percent
    /// of its limit.
    #[inline(never)]
    pub(crate) fn is_near(&self, rule: &mut CompiledRule) -> bool {
        let Some(near) = rule.config.near.filter(|_| !self.is_refused()) else { return false };
        let limit = rule.limit();
        let used = self.remaining(rule).map(|left| limit.saturating_sub(left));
        used.is_some_and(|used| u128::from(used) * 100 > u128::from(limit) * u128::from(near))
    }

    /// The questions to the authority: about a request, and whether its caller is banned.
    pub(crate) fn ask(
        &mut self,
        rule: &mut CompiledRule,
        is_tentative: bool,
    ) -> impl Iterator<Item = Question> + use<> {
        self.reservation.is_tentative = is_tentative;
        let about_ban = match &rule.bans {
            Some(bans) if self.may_be_banned(rule) => bans.ask(self.key(), None),
            _ => None,
        };
        self.is_ban_asked = about_ban.is_some();
        rule.store.ask(&self.reservation).into_iter().chain(about_ban)
    }

    /// The charge for a request, if there was one and a store counts it.
    pub(crate) fn charge(&self, rule: &CompiledRule, now: Now) -> Option<OpenCharge> {
        let Reservation { account, cost, receipt, by, .. } = self.reservation;
        receipt.filter(|_| by != Decider::Unavailable).map(|receipt| OpenCharge {
            key: account.key,
            receipt,
            since: now.mono,
            reserved: cost,
            used: 0,
            rule: self.rule as u32,
            plan: account.plan,
            header_usage: HeaderUsage::Nothing,
            grpc: GrpcOutcome::Other,
            is_identified: self.may_be_banned(rule),
            is_degraded: by == Decider::Share,
        })
    }
}

/// A request that waits, or has waited, for replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiter {
    /// Its number in the limiter; 0 if it has not waited.
    pub id: u64,
    /// Its stream, by the host's number.
    pub stream: u32,
    /// Since when it waits for the replies of a round.
    pub since: Micros,
}
