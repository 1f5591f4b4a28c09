//! The work of a limiter between requests.

use std::rc::Rc;

use crate::limiter::Limiter;
use crate::matcher::Matcher;
use crate::report::hot::HotCallers;
use crate::report::metrics::{self, RuleCounts};
use crate::rules::CompiledRule;
use diana_policy::port::{Metrics, SharedData};
use diana_policy::time::{Micros, Now};
use diana_policy::words;
use diana_store::reclaimer::SlotReclaimer;
use diana_store::slots::Traffic;

/// When upkeep is due. Bans and hot keys are less urgent than the return of leases.
pub(crate) struct Upkeep {
    /// Ticks between two calls.
    tick_interval: Micros,
    /// Ticks between two updates of bans and hot keys; zero if no rule has either.
    update_interval: Micros,
    /// The latest of these updates.
    updated_at: Option<Micros>,
    /// Whether any rule has checked a request.
    serves: bool,
    /// Counters of reads and writes of shared data.
    traffic: Rc<Traffic>,
    /// How rules of scope `global` are counted, as last reported.
    mode: Option<&'static str>,
}

impl Upkeep {
    pub(crate) fn new(
        tick_interval: Micros,
        update_interval: Micros,
        traffic: Rc<Traffic>,
    ) -> Upkeep {
        let (updated_at, serves, mode) = (None, false, None);
        Upkeep { tick_interval, update_interval, updated_at, serves, traffic, mode }
    }

    /// Returns true if an update of bans and hot keys is due, and records that it is made.
    fn begin_update(&mut self, now: Micros) -> bool {
        let is_due =
            self.updated_at.is_none_or(|at| now.saturating_sub(at) >= self.update_interval);
        if is_due {
            self.updated_at = Some(now);
        }
        is_due
    }
}

impl Limiter {
    /// How often [`Limiter::maintain`] and [`Limiter::flush`] are due, in ticks.
    #[must_use]
    pub fn tick_interval(&self) -> Micros {
        self.upkeep.tick_interval
    }

    /// Maintains all rules. Returns true if more is due soon, even without a request.
    pub fn maintain(&mut self, now: Now) -> bool {
        self.rules.return_charges(now);
        let mut more = false;
        for rule in &mut self.rules.list {
            let done = rule.store.maintain(now);
            more |= done.is_busy;
            rule.change_in_keys += done.keys;
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
        self.upkeep.serves |=
            self.rules.list.iter().any(|rule| rule.counts != RuleCounts::default());
        let mode = if self.is_connected() { "fleet" } else { "gateway" };
        self.report_mode(
            namespace,
            (self.fleet.is_global && self.upkeep.serves).then_some(mode),
            metrics,
        );
        if let Some(backend) = &mut self.fleet.backend {
            metrics::flush_fleet(namespace, &backend.take_counts(), metrics);
        }
        metrics::flush_traffic(namespace, &self.upkeep.traffic, metrics);
        for rule in &mut self.rules.list {
            rule.counts.flush(namespace, &rule.config.name, metrics);
            let change = std::mem::take(&mut rule.change_in_keys);
            metrics::flush_keys(namespace, &rule.config.name, change, metrics);
            if let Some(spotter) = &mut rule.hot {
                let change = std::mem::take(&mut spotter.change);
                metrics::flush_hot_keys(namespace, &rule.config.name, change, metrics);
            }
        }
    }

    /// Reports the limits of its rules. `in_force` is false when the rules no longer apply.
    pub fn report_limits(&self, namespace: &str, in_force: bool, metrics: &dyn Metrics) {
        metrics::report_disabled(namespace, in_force && self.is_disabled(), metrics);
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
    fn report_mode(&mut self, namespace: &str, mode: Option<&'static str>, metrics: &dyn Metrics) {
        let before = std::mem::replace(&mut self.upkeep.mode, mode);
        if before != mode {
            if let Some(before) = before {
                metrics::flush_mode(namespace, before, -1, metrics);
            }
            if let Some(mode) = mode {
                metrics::flush_mode(namespace, mode, 1, metrics);
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
            metrics.set(&format!("diana.{namespace}.entries_unused"), unused.count);
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
        self.rules.holds_slots()
    }

    /// Reports the last counts, and subtracts this limiter's callers from the gauges.
    pub fn retire(&mut self, namespace: &str, now: Now, metrics: &dyn Metrics) {
        self.rules.return_charges(now);
        for rule in &mut self.rules.list {
            rule.maintain_bans(now);
            if let Some(spotter) = &mut rule.hot {
                spotter.close(now.mono);
            }
        }
        self.flush(namespace, metrics);
        self.report_mode(namespace, None, metrics);
        for rule in &mut self.rules.list {
            let change = rule.store.close(now);
            metrics::flush_keys(namespace, &rule.config.name, change, metrics);
        }
    }
}
