//! What a limiter does between requests.

use std::rc::Rc;

use crate::limiter::{CompiledRule, Limiter};
use crate::report::metrics::{self, RuleCounts};
use diana_policy::port::{Metrics, SharedData};
use diana_policy::time::{Micros, Now};
use diana_store::remains::Remains;

/// When upkeep is due. Bans and hot keys are less urgent than leases that go back.
pub(crate) struct Upkeep {
    /// Ticks between two calls.
    pub(crate) tick_interval: Micros,
    /// Ticks between two looks at bans and hot keys; zero if no rule has either.
    every: Micros,
    last: Option<Micros>,
    /// Whether any rule has judged a request.
    pub(crate) serves: bool,
}

impl Upkeep {
    pub(crate) fn every(tick_interval: Micros, every: Micros) -> Upkeep {
        Upkeep { tick_interval, every, last: None, serves: false }
    }

    fn is_due(&mut self, now: Micros) -> bool {
        let due = self.last.is_none_or(|last| now.saturating_sub(last) >= self.every);
        if due {
            self.last = Some(now);
        }
        due
    }
}

impl Limiter {
    /// How often [`Limiter::tidy`] and [`Limiter::flush`] are due, in ticks.
    #[must_use]
    pub fn tick_interval(&self) -> Micros {
        self.upkeep.tick_interval
    }

    /// Does what has to be done from time to time. Whether there is more to do soon, even if no
    /// request comes.
    pub fn tidy(&mut self, now: Now) -> bool {
        self.take_back(now);
        let mut more = false;
        for judge in &mut self.rules {
            let done = judge.store.maintain(now);
            more |= done.is_busy;
            judge.change_in_keys += done.keys;
        }
        if !self.upkeep.is_due(now.mono) {
            // What was counted since it last was is not left lying where no other request comes.
            return true;
        }
        for judge in &mut self.rules {
            if let Some(bans) = &mut judge.bans {
                bans.tidy(now.mono);
            }
            more |= judge.hot.as_mut().is_some_and(|hot| hot.tidy(now.mono));
        }
        more
    }

    /// Hands on what was counted since the last flush.
    pub fn flush(&mut self, namespace: &str, metrics: &dyn Metrics) {
        metrics::flush_metadata(namespace, &mut self.callers.without_metadata, metrics);
        // Envoy's main thread has a VM, too, which no request reaches.
        self.upkeep.serves |= self.rules.iter().any(|judge| judge.counts != RuleCounts::default());
        let mode = if self.is_together() { "fleet" } else { "gateway" };
        self.tell_mode(
            namespace,
            (self.fleet.is_global && self.upkeep.serves).then_some(mode),
            metrics,
        );
        if let Some(client) = &mut self.fleet.client {
            client.stats.unsettled =
                std::mem::take(&mut self.fleet.redis.borrow_mut().ledgers.dropped);
            metrics::flush_fleet(namespace, &mut client.stats, metrics);
        }
        metrics::flush_traffic(namespace, &self.traffic, metrics);
        for judge in &mut self.rules {
            judge.counts.bans =
                judge.bans.as_mut().map_or(0, |bans| std::mem::take(&mut bans.begun));
            judge.counts.flush(namespace, &judge.rule.name, metrics);
            let change = std::mem::take(&mut judge.change_in_keys);
            metrics::flush_keys(namespace, &judge.rule.name, change, metrics);
            if let Some(spotter) = &mut judge.hot {
                let change = std::mem::take(&mut spotter.change);
                metrics::flush_hot_keys(namespace, &judge.rule.name, change, metrics);
            }
        }
    }

    /// Tells the limits of its rules, or that they are no longer in force.
    pub fn tell_limits(&self, namespace: &str, in_force: bool, metrics: &dyn Metrics) {
        for judge in &self.rules {
            let (limit, window) = judge.algorithm.properties().quota();
            let told = if in_force { [limit, window, judge.keys] } else { [0; 3] };
            let scope = judge.rule.scope_with(self.fleet.client.is_some());
            metrics::tell_limit(namespace, &judge.name, scope, told, metrics);
        }
    }

    /// Whether all callers of rules for the fleet are counted together with the other gateways.
    #[must_use]
    pub fn is_together(&self) -> bool {
        self.fleet.client.is_some() && self.fleet.redis.borrow().away() == 0
    }

    fn tell_mode(&mut self, namespace: &str, mode: Option<&'static str>, metrics: &dyn Metrics) {
        let before = std::mem::replace(&mut self.fleet.mode, mode);
        if before != mode {
            before.into_iter().for_each(|mode| metrics::flush_mode(namespace, mode, -1, metrics));
            mode.into_iter().for_each(|mode| metrics::flush_mode(namespace, mode, 1, metrics));
        }
    }

    /// What its rules have in shared data.
    #[must_use]
    pub fn remains(
        &self,
        namespace: &Rc<str>,
        data: &Rc<dyn SharedData>,
        now: Micros,
    ) -> Vec<Remains> {
        let mut all = Vec::new();
        let of_all = || (namespace.clone(), data.clone());
        for CompiledRule { rule, algorithm, .. } in
            self.rules.iter().filter(|judge| !judge.rule.is_local())
        {
            let ((name, data), fingerprint) = (of_all(), rule.fingerprint);
            if rule.daily.is_none() {
                let algorithm = algorithm.clone();
                all.push(Remains::of_callers(name, data, fingerprint, algorithm, now));
            }
            let (name, data) = of_all();
            all.extend(rule.ban.map(|ban| Remains::of_bans(name, data, fingerprint, ban, now)));
        }
        all
    }

    /// Whether requests are under way that hold places in flight which others count, too.
    #[must_use]
    pub fn holds_places(&self) -> bool {
        let is_place =
            |judge: &CompiledRule| judge.settler.as_ref().is_some_and(|it| it.is_place());
        let counts_places = |judge: &CompiledRule| !judge.rule.is_local() && is_place(judge);
        self.freed.is_awaited() && self.rules.iter().any(counts_places)
    }

    /// Hands on the last counts, and takes this limiter's callers back from the gauges.
    pub fn retire(&mut self, namespace: &str, now: Now, metrics: &dyn Metrics) {
        self.take_back(now);
        for spotter in self.rules.iter_mut().filter_map(|judge| judge.hot.as_mut()) {
            spotter.close(now.mono);
        }
        self.flush(namespace, metrics);
        self.tell_mode(namespace, None, metrics);
        for judge in &mut self.rules {
            judge.bans.iter_mut().for_each(|bans| bans.tidy(now.mono));
            let change = judge.store.close(now);
            metrics::flush_keys(namespace, &judge.rule.name, change, metrics);
        }
    }
}
