//! Which rules apply to a request, and the caller of each.

use std::ops::Range;

use crate::check::{Check, InProgress};
use crate::plans::Chosen;
use crate::report::explained::{Explained, Why};
use crate::rules::{CompiledRule, Rules};
use diana_policy::key::Key;
use diana_policy::path::Path;
use diana_policy::port::{Pseudo, Request};
use diana_policy::time::Now;
use diana_policy::{Absent, Except, Match};
use diana_request::identity::caller::{Caller, Callers};
use diana_request::matching::{PathIndex, except, matcher};
use diana_request::plan::Choosers;
use diana_store::{Account, Reservation};

/// The entries of `limits`, and the sources that identify callers.
pub(crate) struct Matcher {
    pub(crate) paths: PathIndex,
    pub(crate) limits: Vec<LimitRules>,
    /// Exempt from all rules.
    pub(crate) except: Except,
    /// Whether anything is exempt from any rule.
    pub(crate) has_exemptions: bool,
    /// Whether any entry or exemption depends on the path.
    pub(crate) needs_path: bool,
    /// The limits that cover the root path. They cover all requests if no entry depends on the path.
    pub(crate) at_root: Vec<usize>,
    pub(crate) reads_headers: bool,
    pub(crate) callers: Callers,
    pub(crate) choosers: Choosers,
    /// The memory for the checks of the next request: its allocation costs 3 % of a request.
    pub(crate) spare: Vec<Check>,
}

/// An entry of `limits`; its rules are a range of [`Rules::list`].
pub(crate) struct LimitRules {
    pub(crate) matcher: Match,
    pub(crate) except: Except,
    pub(crate) rules: Range<usize>,
}

/// A request during the match.
struct Asked<'r> {
    request: &'r dyn Request,
    /// The limits that cover its path, unless those at the root do.
    limits: Option<Vec<usize>>,
    /// The path for exemptions: empty unless it is spelled plainly, since the upstream may read another spelling in
    /// several ways.
    path: Vec<u8>,
    /// Whether the request has not been counted yet.
    is_new: bool,
}

impl Matcher {
    /// Finds the rules that apply to a request. It was counted before unless it `is_new`.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        rules: &mut Rules,
        request: &dyn Request,
        is_new: bool,
    ) -> InProgress {
        self.callers.begin();
        self.choosers.begin();
        let asked = self.asked(request, is_new);
        let checks = std::mem::take(&mut self.spare);
        let mut progress = InProgress { checks, ..InProgress::default() };
        if !self.is_exempt(&self.except, &asked) {
            self.apply_all(rules, &asked, &mut progress);
        }
        self.callers.count(is_new);
        progress
    }

    /// Keeps the memory of a request that was decided.
    #[inline]
    pub(crate) fn recycle(&mut self, progress: InProgress) {
        self.spare = progress.checks;
        self.spare.clear();
    }

    #[inline]
    fn asked<'r>(&self, request: &'r dyn Request, is_new: bool) -> Asked<'r> {
        let mut asked = Asked { request, limits: None, path: Vec::new(), is_new };
        if self.needs_path {
            let raw = request.pseudo(Pseudo::Path);
            // Requests without a path fall under the root.
            let path = Path::of(raw.as_deref().filter(|raw| *raw != b"*").unwrap_or(b"/"));
            if self.has_exemptions {
                asked.path = path.only_reading().as_deref().unwrap_or_default().into();
            }
            let mut limits = Vec::with_capacity(8);
            self.paths.covering(path, &mut limits);
            asked.limits = Some(limits);
        }
        asked
    }

    fn limits<'a>(&'a self, asked: &'a Asked<'_>) -> &'a [usize] {
        asked.limits.as_deref().unwrap_or(&self.at_root)
    }

    #[inline]
    fn is_exempt(&self, except: &Except, asked: &Asked<'_>) -> bool {
        self.has_exemptions && except::covers(except, asked.request, &asked.path)
    }

    fn apply_all(&mut self, rules: &mut Rules, asked: &Asked<'_>, progress: &mut InProgress) {
        for place in 0..self.limits(asked).len() {
            let number = self.limits(asked).get(place).copied();
            let Some(limit) = number.and_then(|number| self.limits.get(number)) else { continue };
            if !matcher::holds(&limit.matcher, asked.request)
                || self.is_exempt(&limit.except, asked)
            {
                continue;
            }
            for number in limit.rules.clone() {
                let Some(rule) = rules.list.get_mut(number) else { continue };
                self.apply((number, rule), asked, progress);
            }
        }
    }

    /// Adds a check of a rule, if it applies.
    #[inline(always)]
    fn apply(
        &mut self,
        (number, rule): (usize, &mut CompiledRule),
        asked: &Asked<'_>,
        progress: &mut InProgress,
    ) {
        if self.is_exempt(&rule.config.except, asked) {
            return;
        }
        let told = rule.teller.as_ref().map(|teller| teller.cost(asked.request));
        let mut cost = told.unwrap_or(rule.config.quota.cost);
        let (mut plan, mut is_suspended) = (0, false);
        if rule.plans.is_some() {
            let Some(chosen) = self.choose(rule, asked) else { return };
            (plan, is_suspended) = (chosen.plan, chosen.is_suspended);
            cost = told.or(chosen.cost).unwrap_or(cost);
        }
        if let Some(mut check) = self.check((number, rule), (plan, cost), asked, progress) {
            if is_suspended {
                check.deny();
            }
            progress.checks.push(check);
        }
    }

    /// The plan by which a rule with plans checks a request; `None` if its caller has no limit.
    #[inline(never)]
    fn choose(&mut self, rule: &mut CompiledRule, asked: &Asked<'_>) -> Option<Chosen> {
        let plans = rule.plans.as_deref()?;
        let said = self.choosers.look(plans.chooser, &self.callers, asked.request);
        rule.counts.limit_missing += u64::from(said.is_none() && asked.is_new && plans.is_told());
        plans.choose(said)
    }

    /// The check of a request of `cost` permits against a rule; `None` if the rule skips requests without a caller.
    #[inline(always)]
    fn check(
        &mut self,
        (number, rule): (usize, &mut CompiledRule),
        (plan, cost): (u32, u64),
        asked: &Asked<'_>,
        progress: &mut InProgress,
    ) -> Option<Check> {
        let caller = self.callers.of(rule.actor, asked.request);
        let absent = rule.config.absent;
        let (key, percentile) = match (caller, absent) {
            (Caller::Known { key, percentile }, _) => (key, percentile),
            (Caller::Absent, Absent::Skip) => return None,
            (Caller::Shared, _) | (Caller::Absent, _) => (Key::SHARE, 0),
        };
        let is_own = matches!(caller, Caller::Known { .. });
        // Counted once, for every decision.
        if let Some(spotter) = &mut rule.hot
            && is_own
            && asked.is_new
            && spotter.see(key)
        {
            self.count_hot(rule, key, asked.request);
            let is_marked = rule.hot.as_ref().is_some_and(|hot| hot.hot().header.is_some());
            progress.hot.extend(is_marked.then_some(number));
        }
        let mut reservation = Reservation::new(Account { key, plan }, cost, Now::default());
        reservation.is_shadow = rule.shadow || percentile >= rule.config.enforce;
        let mut check = Check { rule: number, is_own, reservation, ban: None };
        if caller == Caller::Absent && absent == Absent::Deny {
            check.deny();
        }
        Some(check)
    }

    /// Counts a request of a hot caller.
    #[inline(never)]
    fn count_hot(&mut self, rule: &mut CompiledRule, key: Key, request: &dyn Request) {
        let Some(spotter) = &mut rule.hot else { return };
        rule.counts.hot += 1;
        if spotter.is_nameless(key.hash) {
            spotter.learn(key.hash, self.callers.name(rule.actor, request));
        }
    }

    /// The rules that do not apply to a request in progress, and why.
    pub(crate) fn skipped(
        &mut self,
        rules: &mut Rules,
        progress: &InProgress,
        request: &dyn Request,
    ) -> Vec<Explained> {
        let asked = self.asked(request, false);
        let is_exempt = self.is_exempt(&self.except, &asked);
        let mut skipped = Vec::new();
        for (place, limit) in self.limits.iter().enumerate() {
            let why = match () {
                () if is_exempt => Some(Why::Exempt),
                () if !self.limits(&asked).contains(&place) => Some(Why::Path),
                () if !matcher::holds(&limit.matcher, request) => Some(Why::Match),
                () if self.is_exempt(&limit.except, &asked) => Some(Why::Exempt),
                () => None,
            };
            let is_skipped = |number: &usize| !progress.checks.iter().any(|it| it.rule == *number);
            skipped.extend(limit.rules.clone().filter(is_skipped).map(|number| (number, why)));
        }
        let explain = |(number, why): (usize, Option<Why>)| {
            let rule = rules.list.get_mut(number)?;
            let why = why.unwrap_or_else(|| self.why_skipped(rule, &asked));
            Some(Explained::Skipped { rule: rule.name.clone(), why })
        };
        skipped.into_iter().filter_map(explain).collect()
    }

    /// Why a rule skips a request that its limit covers.
    fn why_skipped(&mut self, rule: &mut CompiledRule, asked: &Asked<'_>) -> Why {
        match () {
            () if self.is_exempt(&rule.config.except, asked) => Why::Exempt,
            () if rule.plans.is_some() && self.choose(rule, asked).is_none() => Why::Plan,
            () => Why::Absent,
        }
    }
}
