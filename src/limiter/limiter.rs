//! One decision: match, identify, check, commit.
//!
//! All rules are checked at one instant and none is charged. Only if every rule admits are all of
//! them charged, so a refused request leaves each rule as it was. A request in progress is one
//! value ([`InProgress`]): `decide` begins it, it is stored while an authority is asked, and
//! `resume` continues it.

use std::rc::Rc;

use crate::check::InProgress;
use crate::compile::{self, Unbuildable};
use crate::entry_watch::EntryWatch;
use crate::fleet::Fleet;
use crate::matcher::Matcher;
use crate::operator::{self, Parts};
use crate::order::{CallerQuery, Inquired, OrderResult, PendingOrder};
use crate::pending::{Pending, Ready, ReadyRequest, Waiting};
use crate::report::hot::HotCallers;
use crate::report::metrics;
use crate::rule::CompiledRule;
use crate::rules::{JointOutcome, Rules};
use crate::upkeep::Upkeep;
use crate::verdict::{Reporter, Verdict};
use crate::{commit, permit};
use diana_policy::Scope;
use diana_policy::key::{GatewayId, Key, LoggedKey, Seed};
use diana_policy::port::{Clock, Ending, Metrics, Request, SharedData};
use diana_policy::time::{Micros, Now};
use diana_policy::{Metric, Policy, Rule, words};
use diana_store::backend::{Backend, Receiver};
use diana_store::counter_spec::known_fingerprint;
use diana_store::permit::Permit;
use diana_store::process::Process;
use diana_store::reclaimer::SlotReclaimer;
use diana_store::replies::Replies;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::usage::{Order, OrderError};

/// Decides about requests by the rules of one policy.
pub struct Limiter {
    pub(crate) matcher: Matcher,
    pub(crate) rules: Rules,
    pub(crate) fleet: Fleet,
    pub(crate) reporter: Reporter,
    pub(crate) entries: EntryWatch,
    pub(crate) upkeep: Upkeep,
    /// The latest request, unless it waits for replies. The next one uses its memory, since an
    /// allocation would cost 3 % of a request.
    pub(crate) progress: InProgress,
}

impl Limiter {
    /// A limiter that counts in `stores`. `seed` is the secret that callers are hashed with.
    ///
    /// # Errors
    /// If a rule cannot be built. Configurations without problems have no such rule.
    pub fn new(
        policy: Policy,
        seed: Seed,
        stores: Stores<'_>,
        backend: Option<Box<dyn Backend>>,
    ) -> Result<Limiter, Unbuildable> {
        compile::limiter(policy, seed, stores, backend)
    }

    /// A limiter with separate tables and without an authority for the fleet, for tools and tests.
    ///
    /// # Errors
    /// As [`Limiter::new`].
    pub fn standalone(
        policy: Policy,
        seed: Seed,
        data: Rc<dyn SharedData>,
    ) -> Result<Limiter, Unbuildable> {
        Limiter::new(policy, seed, Stores::new("alone".into(), data, &mut Tables::default()), None)
    }

    /// Headers that mark requests. They are removed from every incoming request.
    #[must_use]
    pub fn markers(&self) -> &[Rc<str>] {
        &self.reporter.markers
    }

    /// Returns true if it decides about no request.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.matcher.is_disabled
    }

    /// Returns true if more of a request is read than its path.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.matcher.reads_headers
    }

    /// Returns true if a rule that may refuse or mark requests depends on the route.
    #[must_use]
    pub fn enforces_by_route(&self) -> bool {
        self.matcher.enforces_by_route
    }

    /// Decides about the request of a stream, by the host's number, and charges for it if it is
    /// admitted. The clock is read once, and only if a rule applies.
    pub fn decide(&mut self, request: &dyn Request, stream: u32, clock: &dyn Clock) -> Verdict {
        self.prepare(clock);
        let Limiter { matcher, rules, fleet, reporter, progress, .. } = self;
        progress.begin(stream);
        matcher.begin(rules, request, clock, true, progress);
        evaluate(progress, rules, fleet, reporter)
    }

    /// As [`Limiter::decide`]; the verdict explains to an operator what each rule decided, or why
    /// it does not apply.
    pub fn decide_explained(
        &mut self,
        request: &dyn Request,
        stream: u32,
        clock: &dyn Clock,
    ) -> Verdict {
        self.prepare(clock);
        let Limiter { matcher, rules, fleet, reporter, progress, .. } = self;
        progress.begin(stream);
        matcher.begin(rules, request, clock, true, progress);
        progress.explained = Some(matcher.skipped(rules, progress, request, clock));
        evaluate(progress, rules, fleet, reporter)
    }

    /// Continues a request that has its replies. Returns `None` if a question was lost: then
    /// [`Limiter::restart`] decides about the request again.
    pub fn resume(&mut self, ready: &mut ReadyRequest, now: Now) -> Option<Verdict> {
        permit::return_charges(&mut self.rules, now);
        let progress = &mut ready.progress;
        progress.resume(now);
        let _turns = self.rules.process.map(|process| self.rules.turns(process, progress));
        let outcome = self.rules.check(progress);
        if progress.is_lost() {
            self.rules.cancel(progress);
            return None;
        }
        if self.rules.keep_bans(progress) {
            return Some(self.reporter.refuse(progress, &mut self.rules));
        }
        Some(conclude(progress, outcome, &mut self.rules, &mut self.fleet, &self.reporter))
    }

    /// Decides again about a request that [`Limiter::resume`] did not decide.
    pub fn restart(
        &mut self,
        ready: &mut ReadyRequest,
        request: &dyn Request,
        clock: &dyn Clock,
    ) -> Verdict {
        self.prepare(clock);
        let progress = &mut ready.progress;
        progress.checks.clear();
        progress.now = Now::default();
        self.matcher.begin(&mut self.rules, request, clock, false, progress);
        evaluate(progress, &mut self.rules, &mut self.fleet, &self.reporter)
    }

    /// Cancels a pending request after its client has left. Its charges are returned once its
    /// replies are read. Returns true if the request was still pending.
    pub fn cancel(&mut self, id: u64) -> bool {
        self.fleet.cancel(id)
    }

    /// Returns true if the bytes of requests' bodies are read at their end, for any rule.
    #[must_use]
    pub fn reads_request_bytes(&self) -> bool {
        self.rules.list.iter().any(CompiledRule::reads_request_bytes)
    }

    /// Returns true if the bytes of the request's body are read at its end, for one of its charges.
    #[must_use]
    pub fn reads_request_bytes_of(&self, permit: &mut Permit) -> bool {
        permit::reads_request_bytes(&self.rules, permit)
    }

    /// Reads the usage of a request from the headers of its response.
    pub fn on_response(&self, permit: &mut Permit, ending: &dyn Ending) {
        permit::on_response(&self.rules, permit, ending);
    }

    /// Reads the usage of a request from the trailers of its response.
    pub fn on_trailers(&self, permit: &mut Permit, ending: &dyn Ending) {
        permit::on_trailers(&self.rules, permit, ending);
    }

    /// Settles the charges of a request at the end of its stream.
    pub fn finish(&mut self, permit: Permit, ending: &dyn Ending, now: Now) {
        permit::finish(&mut self.rules, permit, ending, now);
    }

    /// Cancels and settles the charges of requests that have ended. Due before another worker or
    /// limiter with the same state checks a request.
    pub fn return_charges(&mut self, now: Now) {
        permit::return_charges(&mut self.rules, now);
    }

    #[inline]
    fn prepare(&mut self, clock: &dyn Clock) {
        if self.rules.returned.is_any() {
            permit::return_charges(&mut self.rules, clock.now());
        }
        self.fleet.prepare(&mut self.matcher.callers, false);
    }

    /// The number of requests and orders that have their replies and were not resumed yet.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.fleet.ready.len()
    }

    /// The next request to be resumed, or order to be answered. Charges of cancelled requests are
    /// returned.
    pub fn next_ready(&mut self, now: Now) -> Option<Ready> {
        while let Some(id) = self.fleet.ready.pop_front() {
            let Some(pending) = self.fleet.pending.remove(&id) else { continue };
            let Pending { is_cancelled, waiting } = pending;
            match waiting {
                Waiting::Request(progress) if is_cancelled => self.rules.abandon(progress, now),
                Waiting::Request(progress) => {
                    let waiter = progress.waiter;
                    return Some(Ready::Request(ReadyRequest { waiter, progress }));
                }
                Waiting::Order(mut order) => {
                    let mut seen = operator::carry_out(&mut self.rules, &order, now);
                    if seen == Err(OrderError::Lost) {
                        // The callers are known by other keys now: the order is given again.
                        match operator::ask(self.parts(), &mut order) {
                            Ok(questions) if !questions.is_empty() => {
                                let waiting = Waiting::Order(order);
                                let pending = Pending { is_cancelled, waiting };
                                self.fleet.wait(id, pending, questions, (0, now.mono));
                                continue;
                            }
                            asked => seen = asked.map(|_| Vec::new()),
                        }
                    }
                    let stream = (!is_cancelled).then_some(order.stream);
                    let result = OrderResult { rule: order.rule, order: order.order, seen };
                    return Some(Ready::Order { stream, result });
                }
            }
        }
        None
    }

    /// Returns true if all callers of rules of scope `global` are counted together with the other
    /// gateways.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.fleet.is_connected()
    }

    /// Takes the results of questions to the authority. Requests with all of their replies become
    /// ready. Due after each call of the connection to it.
    pub fn take_results(&mut self, now: Now) {
        while let Some((receiver, replies)) = self.fleet.next_complete() {
            match receiver {
                Receiver::Request(id) => {
                    if let Some(progress) = self.fleet.on_answered(id, replies) {
                        self.rules.abandon(progress, now);
                    }
                }
                Receiver::Store(rule, account) => {
                    if let Some(rule) = self.rules.list.get_mut(rule) {
                        rule.store.on_reply(account, &replies, now);
                    }
                }
                Receiver::Bans(rule, caller) => {
                    let rule = self.rules.list.get_mut(rule);
                    if let Some(bans) = rule.and_then(|rule| rule.bans.as_mut()) {
                        bans.on_reply(caller, &replies, now.mono);
                    }
                }
            }
        }
    }

    /// The rules, in document order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.list.iter().map(|rule| &rule.config)
    }

    /// This gateway, if a rule counts in each one.
    #[must_use]
    pub fn gateway(&self, rule: usize) -> Option<GatewayId> {
        self.rules.list.get(rule)?.gateway
    }

    /// The names of the actors of a rule; none if it has a single counter.
    pub fn actors(&self, rule: usize) -> impl Iterator<Item = &str> {
        self.matcher.callers.actors(self.rules.list.get(rule).and_then(|rule| rule.actor))
    }

    /// Carries out an order of the request of a stream. Without an error [`Inquired::Done`] is
    /// empty if the rule has no such caller.
    ///
    /// # Errors
    /// Why the order cannot be carried out.
    pub fn inquire(
        &mut self,
        rule: usize,
        query: CallerQuery,
        order: Order,
        stream: u32,
        now: Now,
    ) -> Result<Inquired, OrderError> {
        if let Some(rule) = self.rules.list.get(rule)
            && order.sets().is_some()
            && rule.bans.is_none()
        {
            return Err(OrderError::NoBans);
        }
        if let Some(rule) = self.rules.list.get(rule)
            && let CallerQuery::Key(LoggedKey { gateway: Some(gateway), .. }) = query
            && rule.gateway != Some(gateway)
        {
            return Err(OrderError::Foreign);
        }
        let (callers, replies) = (Vec::new(), Replies::default());
        let mut pending = PendingOrder { rule, order, query, stream, callers, replies };
        let questions = operator::ask(self.parts(), &mut pending)?;
        match questions.is_empty() {
            true => operator::carry_out(&mut self.rules, &pending, now).map(Inquired::Done),
            false => Ok(Inquired::Pending(self.fleet.send_order(pending, questions, now.mono))),
        }
    }

    /// The hot callers of a rule with their numbers of requests; `None` if the rule has no `hot`,
    /// or counts per worker.
    #[must_use]
    pub fn top(&mut self, rule: usize, now: Micros) -> Option<Vec<(u64, Key)>> {
        self.rules.list.get_mut(rule)?.hot.as_mut()?.top(now)
    }

    /// How often [`Limiter::maintain`] and [`Limiter::flush`] are due, in ticks.
    #[must_use]
    pub fn tick_interval(&self) -> Micros {
        self.upkeep.tick_interval
    }

    /// Maintains all rules. Returns true if more is due soon, even without a request.
    pub fn maintain(&mut self, now: Now) -> bool {
        permit::return_charges(&mut self.rules, now);
        let mut more = false;
        for rule in &mut self.rules.list {
            let done = rule.store.maintain(now);
            more |= done.is_busy;
            rule.counts.add(Metric::Keys, done.keys);
        }
        if !self.upkeep.begin_update(now.mono) {
            // Bans and hot keys may have gathered counts for the next update.
            return true;
        }
        for rule in &mut self.rules.list {
            rule.maintain_bans(now);
            more |= rule.hot.as_mut().is_some_and(|hot| hot.maintain(now.mono));
        }
        more
    }

    /// Reports the counts since the last flush.
    pub fn flush(&mut self, namespace: &str, metrics: &dyn Metrics) {
        let Matcher { counts, callers, .. } = &mut self.matcher;
        counts.without_metadata += std::mem::take(&mut callers.without_metadata);
        counts.flush(namespace, metrics);
        // Only a worker with requests reports a mode: Envoy's main thread has a VM, too, but no
        // requests.
        self.upkeep.serves |= self.rules.list.iter().any(|rule| rule.counts.has_requests());
        let mode = if self.is_connected() { Metric::ModeFleet } else { Metric::ModeGateway };
        let reports = self.fleet.is_global && self.upkeep.serves;
        self.report_mode(namespace, reports.then_some(mode), metrics);
        if let Some(backend) = &mut self.fleet.backend {
            metrics::flush_fleet(namespace, &backend.take_counts(), metrics);
        }
        metrics::flush_traffic(namespace, &self.upkeep.traffic, metrics);
        for rule in &mut self.rules.list {
            if let Some(spotter) = &mut rule.hot {
                rule.counts.add(Metric::HotKeys, std::mem::take(&mut spotter.change));
            }
            rule.counts.flush(namespace, &rule.config.name, metrics);
        }
    }

    /// Reports the limits of its rules. `in_force` is false when the rules no longer apply.
    pub fn report_limits(&self, namespace: &str, in_force: bool, metrics: &dyn Metrics) {
        metrics.set(Metric::Disabled, &[namespace], (in_force && self.is_disabled()).into());
        for rule in &self.rules.list {
            let (limit, window) = rule.algorithm.properties().quota();
            let values = if in_force { [limit, window, rule.keys] } else { [0; 3] };
            let scope = rule.config.scope_with(self.fleet.backend.is_some());
            metrics::report_limit(namespace, &rule.name, scope, values, metrics);
        }
    }

    /// The next list of hot callers, for the log.
    pub fn hot_callers(&mut self) -> Option<HotCallers<'_>> {
        self.rules.list.iter_mut().find_map(|CompiledRule { config, hot, .. }| {
            let spotter = hot.as_mut()?;
            let list = spotter.list.take()?;
            let (is_local, hot) = (config.is_local(), spotter.hot());
            Some(HotCallers { rule: &config.name, is_local, hot, list })
        })
    }

    /// Moves this worker from one gauge of a mode to another, if its mode has changed.
    fn report_mode(&mut self, namespace: &str, mode: Option<Metric>, metrics: &dyn Metrics) {
        let before = std::mem::replace(&mut self.upkeep.mode, mode);
        if before != mode {
            for (mode, change) in [(before, -1), (mode, 1)] {
                mode.into_iter().for_each(|mode| metrics.add(mode, &[namespace], change));
            }
        }
    }

    /// Calls `log` with a line for each rule that has seen many requests, and never its source. Returns true if it is due again,
    /// after other workers have reported theirs.
    pub fn missing_sources(
        &mut self,
        namespace: &str,
        data: &dyn SharedData,
        log: &dyn Fn(&str),
    ) -> bool {
        let mut waits = false;
        for rule in &mut self.rules.list {
            let CompiledRule { config, callers, usage, whole_usage, .. } = rule;
            for (kind, watch) in [
                ("caller", Some(callers)),
                ("usage", usage.as_deref_mut()),
                ("whole usage", whole_usage.as_deref_mut()),
            ] {
                let name = || format!("diana/2/{namespace}/{:016x}/{kind}", config.fingerprint);
                let Some(watch) = watch.filter(|watch| watch.is_due()) else { continue };
                if watch.report(&name(), data) {
                    log(&watch.line(&config.name, kind));
                }
                waits |= watch.is_enough;
            }
        }
        waits
    }

    /// Calls `log` once in a gateway with a line for each rule with callers that are numbers which the host has rounded.
    pub fn rounded_callers(&mut self, namespace: &str, data: &dyn SharedData, log: &dyn Fn(&str)) {
        for CompiledRule { config, actor, is_rounded, .. } in &mut self.rules.list {
            if *is_rounded || !self.matcher.callers.has_rounded(*actor) {
                continue;
            }
            *is_rounded = true;
            let name = format!("diana/1/{namespace}/{:016x}/rounded", config.fingerprint);
            if words::write([1], data, &name, None) {
                log(&format!(
                    "rule `{}`: callers have numbers from 2⁵³ on, which Envoy has rounded, so that neighbours share permits and \
                     bans; read a claim by `payload_header`, or let the issuer write it as a text",
                    config.name
                ));
            }
        }
    }

    /// Reports the entries that applied to none of some thousand requests: their number, and a line
    /// for the log. `requests` are those since the last report. Exempt ones do not
    /// count, since no entry may apply to them. Due before [`Limiter::flush`].
    pub fn unused_entries(
        &mut self,
        namespace: &str,
        requests: u64,
        (data, metrics): (&dyn SharedData, &dyn Metrics),
        log: &dyn Fn(&str),
    ) {
        let Matcher { limits, counts, is_disabled, .. } = &self.matcher;
        if *is_disabled {
            return;
        }
        let requests = requests.saturating_sub(counts.exempt);
        let name = format!("diana/1/{namespace}/entries");
        let has_applied = limits.iter().map(|limit| limit.has_applied.get());
        if let Some(unused) = self.entries.report(requests, has_applied, &name, data) {
            metrics.set(Metric::EntriesUnused, &[namespace], unused.count);
            unused.line.iter().for_each(|line| log(line));
        }
    }

    /// The values of its rules in shared data, to be cleared when the rules are removed.
    #[must_use]
    pub fn remains(
        &self,
        namespace: &Rc<str>,
        data: &Rc<dyn SharedData>,
        now: Micros,
    ) -> Vec<SlotReclaimer> {
        let mut all = Vec::new();
        let of_all = || (namespace.clone(), data.clone());
        for CompiledRule { config, algorithm, .. } in
            self.rules.list.iter().filter(|rule| !rule.config.is_local())
        {
            let ((name, data), fingerprint) = (of_all(), config.fingerprint);
            if config.daily.is_none() {
                let algorithm = algorithm.clone();
                all.push(SlotReclaimer::of_callers(name, data, fingerprint, algorithm, now));
            }
            if config.scope == Scope::Global {
                let (name, data) = of_all();
                all.push(SlotReclaimer::of_leases(name, data, fingerprint, now));
            }
            if config.asks_after {
                let ((name, data), known) = (of_all(), known_fingerprint(fingerprint));
                let algorithm = algorithm.clone();
                all.push(SlotReclaimer::of_callers(name, data, known, algorithm, now));
            }
            let (name, data) = of_all();
            all.extend(
                config.ban.map(|ban| SlotReclaimer::of_bans(name, data, fingerprint, ban, now)),
            );
        }
        all
    }

    /// Returns true if requests are in flight under a rule that other workers count, too.
    #[must_use]
    pub fn holds_slots(&self) -> bool {
        permit::holds_slots(&self.rules)
    }

    /// Reports the last counts, and subtracts this limiter's callers from the gauges.
    pub fn retire(&mut self, namespace: &str, now: Now, metrics: &dyn Metrics) {
        permit::return_charges(&mut self.rules, now);
        for rule in &mut self.rules.list {
            rule.maintain_bans(now);
            if let Some(spotter) = &mut rule.hot {
                spotter.close(now.mono);
            }
        }
        self.flush(namespace, metrics);
        self.report_mode(namespace, None, metrics);
        for rule in &mut self.rules.list {
            rule.counts.add(Metric::Keys, rule.store.close(now));
            rule.counts.flush(namespace, &rule.config.name, metrics);
        }
    }

    fn parts(&mut self) -> Parts<'_> {
        (&mut self.matcher, &mut self.rules, &mut self.fleet)
    }
}

/// Checks a request against the rules that apply.
fn evaluate(
    progress: &mut InProgress,
    rules: &mut Rules,
    fleet: &mut Fleet,
    reporter: &Reporter,
) -> Verdict {
    if progress.checks.is_empty() {
        return reporter.unlimited(progress);
    }
    if rules.has_bans && rules.is_banned(progress) {
        return reporter.refuse(progress, rules);
    }
    if let Some(process) = rules.process {
        return in_turns(process, progress, rules, fleet, reporter);
    }
    let outcome = rules.check(progress);
    conclude(progress, outcome, rules, fleet, reporter)
}

/// Checks and charges a request in the turns of its callers. It is a separate function, since
/// their guard would cost each request of other workers 20 instructions.
#[inline(never)]
fn in_turns(
    process: &'static Process,
    progress: &mut InProgress,
    rules: &mut Rules,
    fleet: &mut Fleet,
    reporter: &Reporter,
) -> Verdict {
    let _turns = rules.turns(process, progress);
    let outcome = rules.check(progress);
    conclude(progress, outcome, rules, fleet, reporter)
}

/// Charges a request if all rules admit it.
fn conclude(
    progress: &mut InProgress,
    checked: JointOutcome,
    rules: &mut Rules,
    fleet: &mut Fleet,
    reporter: &Reporter,
) -> Verdict {
    match commit::commit(rules, progress, checked) {
        JointOutcome::Admitted(delay) => reporter.admit(progress, delay, rules),
        JointOutcome::Pending(delay) => fleet.send_questions(progress, delay, rules),
        JointOutcome::Refused => {
            rules.cancel(progress);
            reporter.refuse(progress, rules)
        }
    }
}
