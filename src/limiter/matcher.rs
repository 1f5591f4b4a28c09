//! Which rules apply to a request, and the caller of each.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use crate::check::{Check, InProgress};
use crate::plans::Chosen;
use crate::replaces::Replacements;
use crate::report::explanation::{Explained, Why};
use crate::report::metrics::RequestCounts;
use crate::rule::CompiledRule;
use crate::rules::Rules;
use diana_policy::key::Key;
use diana_policy::path::Path;
use diana_policy::port::{Clock, Pseudo, Request};
use diana_policy::{Absent, Except, Match, Metric, Prefix};
use diana_request::identity::caller::{Caller, Callers};
use diana_request::matching::{PathIndex, matcher};
use diana_request::plan::PlanSelectors;
use diana_store::{Account, Reservation};

/// The entries of `limits`, and the sources that identify callers.
pub(crate) struct Matcher {
    pub(crate) paths: PathIndex,
    pub(crate) limits: Vec<LimitRules>,
    /// The requests that are exempt from all rules.
    pub(crate) except: Except,
    /// The rules that other rules replace.
    pub(crate) replacements: Replacements,
    /// Whether anything is exempt from any rule, or replaced.
    pub(crate) has_exemptions: bool,
    /// Whether any rule, condition or exemption depends on the client's address.
    pub(crate) needs_address: bool,
    /// Whether the current request was exempt from any rule.
    pub(crate) is_exempted: bool,
    pub(crate) counts: RequestCounts,
    /// Whether any entry or exemption depends on the path.
    pub(crate) needs_path: bool,
    /// The limits that cover the path of the current request: those at the root if no entry depends
    /// on the path. Of many that require routes, those for its route.
    pub(crate) covering: Vec<usize>,
    /// Its path for exemptions: empty unless it is spelled plainly, since the upstream may read
    /// another spelling in several ways.
    pub(crate) path: Vec<u8>,
    pub(crate) reads_headers: bool,
    /// Whether a rule that may refuse or mark requests depends on the route.
    pub(crate) enforces_by_route: bool,
    /// Whether no rule applies to any request.
    pub(crate) is_disabled: bool,
    pub(crate) callers: Callers,
    pub(crate) selectors: PlanSelectors,
}

/// An entry of `limits`; its rules are a range of [`Rules::list`].
pub(crate) struct LimitRules {
    pub(crate) urls: Rc<[Prefix]>,
    pub(crate) matcher: Match,
    pub(crate) except: Except,
    pub(crate) rules: Range<usize>,
    /// Whether it has applied to a request.
    pub(crate) has_applied: Cell<bool>,
}

/// A request during the match.
struct MatchInput<'r> {
    request: &'r dyn Request,
    clock: &'r dyn Clock,
    /// Whether the request has not been counted yet.
    is_new: bool,
}

/// The caller of a request under a rule.
struct RuleCaller {
    key: Key,
    /// The share of the callers, in percent, that come before this one in a fixed order.
    percentile: u8,
    /// Whether the caller is known, and does not share its state with other callers.
    is_identified: bool,
    /// Whether the rule refuses requests of unknown callers.
    is_denied: bool,
}

/// The path by a header of a request. Requests without a path fall under the root.
fn path_of(raw: Option<&[u8]>) -> Path<'_> {
    Path::of(raw.filter(|raw| *raw != b"*").unwrap_or(b"/"))
}

impl Matcher {
    /// Adds a check of each rule that applies to a request. Reads the clock for the first of them.
    /// `is_new` is false if it is decided again, so that metrics and hot keys do not count it
    /// twice.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        rules: &mut Rules,
        request: &dyn Request,
        clock: &dyn Clock,
        is_new: bool,
        progress: &mut InProgress,
    ) {
        self.callers.begin();
        self.selectors.begin();
        self.find_covering(request);
        if !self.is_exempt(&self.except, request) {
            if self.has_exemptions {
                self.replace(rules, request);
            }
            self.apply_all(rules, &MatchInput { request, clock, is_new }, progress);
        } else {
            self.record_exemption();
        }
        self.callers.count(is_new);
        if self.is_exempted || self.needs_address {
            self.count(request, is_new);
        }
    }

    /// Records that a rule does not apply to the current request, since it is exempt.
    #[cold]
    fn record_exemption(&mut self) {
        self.is_exempted = true;
    }

    /// Counts a new request that was exempt, or has no address.
    #[inline(never)]
    fn count(&mut self, request: &dyn Request, is_new: bool) {
        let is_exempt = std::mem::take(&mut self.is_exempted);
        if is_new {
            self.counts.exempt += u64::from(is_exempt);
            self.counts.without_address += u64::from(self.needs_address && request.lacks_client());
        }
    }

    /// Finds the limits that cover the path and the route of a request, if any entry or exemption
    /// depends on them.
    #[inline]
    fn find_covering(&mut self, request: &dyn Request) {
        if !self.needs_path {
            if self.paths.needs_route() {
                self.paths.at_root(Some(request), &mut self.covering);
            }
            return;
        }
        let raw = request.pseudo(Pseudo::Path);
        let path = path_of(raw.as_deref());
        if self.has_exemptions {
            self.path = path.only_reading().as_deref().unwrap_or_default().into();
        }
        self.paths.covering(path, Some(request), &mut self.covering);
    }

    #[inline]
    fn is_exempt(&self, except: &Except, request: &dyn Request) -> bool {
        self.has_exemptions && matcher::exempts(except, request, &self.path)
    }

    /// Finds the rules that others replace for a request.
    #[inline(never)]
    fn replace(&mut self, rules: &mut Rules, request: &dyn Request) {
        if !self.replacements.is_any() {
            return;
        }
        let covering =
            self.covering.iter().filter_map(|&index| Some((index, self.limits.get(index)?)));
        let covering =
            covering.flat_map(|(index, limit)| limit.rules.clone().map(move |it| (it, index)));
        // A rule that is replaced itself replaces none.
        for (number, limit) in self.replacements.begin(covering) {
            let Some(rule) = rules.list.get(number) else { continue };
            if self.replacements.by(number).is_none() && self.is_in_force(rule, limit, request) {
                self.replacements.replace(number);
            }
        }
    }

    /// Returns true if a rule limits a request in every reading. Under an unlimited plan, too: clients
    /// cannot choose it.
    fn is_in_force(&mut self, rule: &CompiledRule, limit: usize, request: &dyn Request) -> bool {
        let Some(limit) = self.limits.get(limit) else { return false };
        let is_meant = limit.urls.iter().any(|url| url.covers(&self.path))
            && matcher::surely_holds(&limit.matcher, request);
        if !is_meant
            || self.is_exempt(&limit.except, request)
            || self.is_exempt(&rule.config.except, request)
            || rule.enforce == 0
        {
            return false;
        }
        let percentile = match self.callers.of(rule.actor, request) {
            Caller::Absent if rule.config.absent == Absent::Skip => return false,
            Caller::Known { percentile, .. } => percentile,
            Caller::Absent | Caller::Shared(_) => 0,
        };
        percentile < rule.enforce
    }

    fn apply_all(&mut self, rules: &mut Rules, input: &MatchInput<'_>, progress: &mut InProgress) {
        for index in 0..self.covering.len() {
            let number = self.covering.get(index);
            let Some(limit) = number.and_then(|&number| self.limits.get(number)) else { continue };
            if !matcher::holds(&limit.matcher, input.request) {
                continue;
            }
            limit.has_applied.set(true);
            if self.is_exempt(&limit.except, input.request) {
                self.record_exemption();
                continue;
            }
            for number in limit.rules.clone() {
                let Some(rule) = rules.list.get_mut(number) else { continue };
                self.apply((number, rule), input, progress);
            }
        }
    }

    /// Adds a check of a rule, if it applies.
    #[inline(always)]
    fn apply(
        &mut self,
        (number, rule): (usize, &mut CompiledRule),
        input: &MatchInput<'_>,
        progress: &mut InProgress,
    ) {
        if self.has_exemptions && self.is_skipped((number, rule), input) {
            return;
        }
        let cost_read = rule.cost_reader.as_ref().map(|reader| reader.cost(input.request));
        let mut cost = cost_read.unwrap_or(rule.config.quota.cost);
        let (mut plan, mut is_suspended) = (0, false);
        if rule.plans.is_some() {
            let Some(chosen) = self.choose(rule, input, progress) else { return };
            (plan, is_suspended) = (chosen.plan, chosen.is_suspended);
            cost = cost_read.or(chosen.cost).unwrap_or(cost);
        }
        let Some(caller) = self.caller((number, rule), input, progress) else {
            return rule.count_absent(input.is_new);
        };
        let RuleCaller { key, percentile, is_identified, is_denied } = caller;
        let account = Account { key, plan };
        let now = progress.read_clock(input.clock);
        // Built in place: a check is large, and a move of it would cost 60 instructions.
        progress.checks.extend(std::iter::once_with(|| Check {
            rule: number,
            is_identified,
            marks: false,
            reservation: Reservation::new(account, cost, now),
            is_ban_asked: false,
        }));
        let Some(check) = progress.checks.last_mut() else { return };
        let is_out = percentile >= rule.enforce;
        check.reservation.is_shadow = is_out;
        if rule.config.over.is_some() {
            check.reservation.is_shadow = true;
            check.marks = !is_out;
        }
        if is_denied || is_suspended {
            check.deny();
        }
        if is_identified {
            rule.callers.is_found = true;
        } else {
            rule.callers.miss(input.is_new);
        }
    }

    /// Returns true if a rule does not apply to the current request, since it is exempt or another
    /// rule replaces this one.
    #[inline(never)]
    fn is_skipped(
        &mut self,
        (number, rule): (usize, &CompiledRule),
        input: &MatchInput<'_>,
    ) -> bool {
        if self.replacements.by(number).is_some() {
            return true;
        }
        let is_exempt = matcher::exempts(&rule.config.except, input.request, &self.path);
        self.is_exempted |= is_exempt;
        is_exempt
    }

    /// The plan by which a rule with plans checks a request; `None` if its caller has no limit.
    #[inline(never)]
    fn choose(
        &mut self,
        rule: &mut CompiledRule,
        input: &MatchInput<'_>,
        progress: &mut InProgress,
    ) -> Option<Chosen> {
        let plans = rule.plans.as_deref()?;
        let read = self.selectors.read(plans.selector, &self.callers, input.request);
        rule.counts
            .add(Metric::LimitMissing, read.is_none() && input.is_new && plans.is_from_data());
        let chosen = plans.choose(read, || progress.read_clock(input.clock))?;
        let Some(selector) = plans.month_selector else { return Some(chosen) };
        let read = self.selectors.read(selector, &self.callers, input.request);
        Some(plans.starting(chosen, read))
    }

    /// The caller of a request under a rule; `None` if the rule skips requests without one.
    #[inline(always)]
    fn caller(
        &mut self,
        (number, rule): (usize, &mut CompiledRule),
        input: &MatchInput<'_>,
        progress: &mut InProgress,
    ) -> Option<RuleCaller> {
        let caller = self.callers.of(rule.actor, input.request);
        let absent = rule.config.absent;
        let (key, percentile) = match (caller, absent) {
            (Caller::Known { key, percentile }, _) => (key, percentile),
            (Caller::Absent, Absent::Skip) => return None,
            (Caller::Shared(key), _) => (key, 0),
            (Caller::Absent, _) => (Key::SHARED, 0),
        };
        let is_identified = matches!(caller, Caller::Known { .. });
        // Only for a new request: a second decision does not count it again.
        if let Some(spotter) = &mut rule.hot
            && is_identified
            && input.is_new
            && spotter.count(key)
        {
            self.count_hot(rule, key, input.request);
            let is_marked = rule.hot.as_ref().is_some_and(|hot| hot.hot().header.is_some());
            progress.hot.extend(is_marked.then_some(number));
        }
        let is_denied = caller == Caller::Absent && absent == Absent::Deny;
        Some(RuleCaller { key, percentile, is_identified, is_denied })
    }

    /// Counts a request of a hot caller.
    #[inline(never)]
    fn count_hot(&mut self, rule: &mut CompiledRule, key: Key, request: &dyn Request) {
        let Some(spotter) = &mut rule.hot else { return };
        rule.counts.add(Metric::Hot, 1);
        if spotter.is_nameless(key.hash) {
            spotter.learn(key.hash, self.callers.name(rule.actor, request));
        }
    }

    /// The rules that do not apply to a request in progress, and why.
    pub(crate) fn skipped(
        &mut self,
        rules: &mut Rules,
        progress: &mut InProgress,
        request: &dyn Request,
        clock: &dyn Clock,
    ) -> Vec<Explained> {
        let is_exempt = self.is_exempt(&self.except, request);
        let mut skipped = Vec::new();
        let (raw, mut covering) = (request.pseudo(Pseudo::Path), Vec::new());
        self.paths.covering(path_of(raw.as_deref()), None, &mut covering);
        for (index, limit) in self.limits.iter().enumerate() {
            let why = if self.is_disabled {
                Some(Why::Disabled)
            } else if is_exempt {
                Some(Why::Exempt)
            } else if !covering.contains(&index) {
                Some(Why::Path)
            } else if !matcher::holds(&limit.matcher, request) {
                Some(Why::Match)
            } else if self.is_exempt(&limit.except, request) {
                Some(Why::Exempt)
            } else {
                None
            };
            let is_skipped = |number: &usize| !progress.checks.iter().any(|it| it.rule == *number);
            skipped
                .extend(limit.rules.clone().filter(is_skipped).map(|number| (number, why.clone())));
        }
        let input = MatchInput { request, clock, is_new: false };
        let explain = |(number, why): (usize, Option<Why>)| {
            let why = why.unwrap_or_else(|| self.why_skipped(rules, number, &input, progress));
            rules.skipped(number, why)
        };
        skipped.into_iter().filter_map(explain).collect()
    }

    /// Why a rule skips a request that its limit covers.
    fn why_skipped(
        &mut self,
        rules: &mut Rules,
        number: usize,
        input: &MatchInput<'_>,
        progress: &mut InProgress,
    ) -> Why {
        if let Some(by) = self.replacements.by(number).and_then(|by| rules.list.get(by)) {
            return Why::Replaced(by.name.clone());
        }
        let Some(rule) = rules.list.get_mut(number) else { return Why::Absent };
        if self.is_exempt(&rule.config.except, input.request) {
            Why::Exempt
        } else if rule.plans.is_some() && self.choose(rule, input, progress).is_none() {
            Why::Plan
        } else {
            Why::Absent
        }
    }
}
