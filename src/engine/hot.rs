//! Requests of hot callers: counted, marked, and told of.

use std::fmt::Write;
use std::rc::Rc;

use super::Engine;
use crate::caller::Caller;
use crate::hot::spotter::{List, Spotter};
use crate::port::Request;
use crate::store::Scope;
use crate::time::spell;

impl Engine {
    /// Headers that mark the requests of hot callers. each once. They must be taken off whatever comes in.
    #[must_use]
    pub fn markers(&self) -> Vec<Rc<str>> {
        let mut names = Vec::new();
        for spotter in self.rules.iter().filter_map(|judge| judge.hot.as_ref()) {
            names.extend(spotter.hot().header.clone().filter(|name| !names.contains(name)));
        }
        names
    }

    /// The marks of the request that was decided about last: headers, and the rules that they name.
    /// Where several rules have the same header it names the first.
    pub fn marks(&self) -> impl Iterator<Item = (&str, &str)> {
        let mark = |&rule: &usize| {
            let judge = self.rules.get(rule)?;
            Some((judge.hot.as_ref()?.hot().header.as_deref()?, judge.rule.name.as_str()))
        };
        let hot = &self.scratch.hot;
        hot.iter().enumerate().filter_map(move |(place, rule)| {
            let (header, name) = mark(rule)?;
            let earlier = hot.iter().take(place).filter_map(mark);
            earlier.into_iter().all(|earlier| earlier.0 != header).then_some((header, name))
        })
    }

    /// Counts a request of a caller under a rule, whatever will be decided.
    #[inline(never)]
    pub(super) fn spot(&mut self, number: usize, caller: Caller, request: &dyn Request) {
        let Some(judge) = self.rules.get_mut(number) else { return };
        let (Some(spotter), Caller::Known { key, .. }) = (&mut judge.hot, caller) else { return };
        let Some(pace) = spotter.see(key.hash) else { return };
        judge.counts.hot += 1;
        judge.store.expect(key, pace.saturating_mul(judge.rule.quota.cost));
        if spotter.is_nameless(key.hash) {
            spotter.learn(key.hash, self.callers.name(judge.actor, request));
        }
        self.scratch.hot.push(number);
    }

    /// Lines for the log about hot callers.
    pub fn hot_lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for judge in &mut self.rules {
            let Some(spotter) = &mut judge.hot else { continue };
            if let Some(list) = spotter.list.take() {
                let scope = if judge.rule.scope == Scope::Local { "local" } else { "gateway" };
                lines.push(line(&judge.rule.name, scope, spotter, &list));
            }
        }
        lines
    }
}

fn line(rule: &str, scope: &str, spotter: &Spotter, list: &List) -> String {
    let (over, per) = (spotter.hot().over, spell(spotter.hot().per));
    let List { hot, requests, missed, top } = list;
    let mut line = format!(
        "hot rule={rule} scope={scope} over={over} per={per} keys={hot} requests={requests} \
         missed={missed} top="
    );
    for (place, (hash, count)) in top.iter().enumerate() {
        if place > 0 {
            line.push(',');
        }
        // Writing to a string cannot fail.
        _ = match spotter.name(*hash) {
            Some(name) => write!(line, "{name}:{count}"),
            None => write!(line, "{hash:016x}:{count}"),
        };
    }
    line
}
