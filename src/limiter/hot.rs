//! Requests of hot callers: counted, marked, and told of.

use crate::limiter::{CompiledRule, Limiter};
use crate::report::hot::HotCallers;
use diana_policy::key::Key;
use diana_policy::port::Request;

impl Limiter {
    /// Whether the caller of the request in hand is hot for any rule.
    #[must_use]
    #[inline]
    pub fn is_hot(&self) -> bool {
        !self.scratch.hot.is_empty()
    }

    /// The marks of the request that was decided about last: headers, and the rules that they name. Where
    /// several rules have the same header it is to name the last.
    pub fn marks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.scratch.hot.iter().filter_map(|&rule| {
            let judge = self.rules.get(rule)?;
            Some((judge.hot.as_ref()?.hot().header.as_deref()?, judge.rule.name.as_str()))
        })
    }

    /// Notes a request of a hot caller.
    #[inline(never)]
    pub(crate) fn mark(&mut self, number: usize, key: Key, request: &dyn Request) {
        let Some(judge) = self.rules.get_mut(number) else { return };
        let Some(spotter) = &mut judge.hot else { return };
        judge.counts.hot += 1;
        if spotter.is_nameless(key.hash) {
            spotter.learn(key.hash, self.callers.name(judge.actor, request));
        }
        self.scratch.hot.push(number);
    }

    /// The next list of hot callers, for the log.
    pub fn hot_callers(&mut self) -> Option<HotCallers<'_>> {
        self.rules.iter_mut().find_map(|CompiledRule { rule, hot, .. }| {
            let spotter = hot.as_mut()?;
            let list = spotter.list.take()?;
            let (is_local, hot) = (rule.is_local(), spotter.hot());
            Some(HotCallers { rule: &rule.name, is_local, hot, list })
        })
    }
}
