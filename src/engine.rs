//! The whole decision: which rules apply, what each of them says, and what is charged.
//!
//! All rules are judged at one instant and none is charged; only when all of them admit are all
//! charged, so a refused request leaves every rule as it found it.

mod report;

use std::ops::Range;

use crate::caller::{Caller, Callers};
use crate::config::policy::{Absent, Accepted, Policy, Rule};
use crate::decision::{Decision, Retry};
use crate::key::{Key, Seed};
use crate::metrics::{self, Counts};
use crate::port::{Clock, Metrics, Pseudo, Request};
use crate::route::Router;
use crate::route::except::Except;
use crate::route::matcher::Match;
use crate::route::path::normalise;
use crate::store::local::{Place, Table};
use crate::time::{Micros, Now};
use crate::verdict::Verdict;

/// Judges requests by the rules of one policy, and holds what was used.
pub struct Engine {
    router: Router,
    limits: Vec<Limit>,
    rules: Vec<Judge>,
    callers: Callers,
    except: Except,
    shadow: bool,
    log_refused: bool,
    accepted: Accepted,
    /// Whether anything is compared with a request's path.
    needs_path: bool,
    scratch: Scratch,
}

/// An entry of `limits`; its rules are a range of [`Engine::rules`].
struct Limit {
    matcher: Match,
    except: Except,
    rules: Range<usize>,
}

/// A rule with its usage.
struct Judge {
    rule: Rule,
    /// Its actor's number in [`Callers`].
    actor: usize,
    table: Table,
    counts: Counts,
    /// Callers in the table when metrics were last flushed.
    reported: usize,
    /// When its last line was logged.
    logged: Option<Micros>,
}

/// What one request leaves behind while it is judged, kept to be used again without allocating.
#[derive(Default)]
struct Scratch {
    path: Vec<u8>,
    /// Whether the request spells its path in normal form. Exemptions by path hold only then: what
    /// the upstream makes of another spelling is anybody's guess.
    is_plain: bool,
    lower: Vec<u8>,
    limits: Vec<usize>,
    opinions: Vec<Opinion>,
    /// When all of them were judged.
    now: Now,
    states: Vec<u64>,
}

impl Scratch {
    /// The path as exemptions see it.
    fn plain_path(&self) -> &[u8] {
        if self.is_plain { &self.path } else { b"" }
    }
}

/// What one rule says about the request in hand.
struct Opinion {
    rule: usize,
    key: Key,
    place: Place,
    /// Where the charged state lies in [`Scratch::states`].
    state: Range<usize>,
    /// Why it refuses, if it does.
    refuses: Option<Retry>,
    /// Judge and report only.
    shadow: bool,
}

impl Engine {
    /// An engine that has seen nobody yet. `seed` is the secret that callers are hashed with.
    #[must_use]
    pub fn new(policy: Policy, seed: Seed) -> Engine {
        let rules = || policy.limits.iter().flat_map(|limit| &limit.rules);
        let percentiles = rules().any(|rule| (1..100).contains(&rule.enforce));
        let mut needs_path = !policy.except.paths.is_empty();
        let router = Router::new(policy.limits.iter().map(|limit| &limit.url));
        let mut callers = Callers::new(policy.actors, seed, percentiles);
        let mut judges = Vec::new();
        let mut limits = Vec::new();
        for limit in policy.limits {
            let start = judges.len();
            needs_path |= !limit.except.paths.is_empty();
            for rule in limit.rules {
                needs_path |= !rule.except.paths.is_empty();
                let actor = callers.register(&rule.actor);
                let table = Table::new(rule.algorithm.clone(), policy.keys);
                let counts = Counts::default();
                judges.push(Judge { rule, actor, table, counts, reported: 0, logged: None });
            }
            let rules = start..judges.len();
            limits.push(Limit { matcher: limit.matcher, except: limit.except, rules });
        }
        Engine {
            needs_path: needs_path || router.needs_path(),
            router,
            limits,
            rules: judges,
            callers,
            except: policy.except,
            shadow: policy.shadow,
            log_refused: policy.log_refused,
            accepted: policy.accepted,
            scratch: Scratch::default(),
        }
    }

    /// Decides about a request, and charges for it if it is admitted. The clock is read once, and
    /// only if a rule applies.
    pub fn decide(&mut self, request: &dyn Request, clock: &dyn Clock) -> Verdict {
        self.route(request);
        self.scratch.opinions.clear();
        self.callers.begin();
        let mut now = None;
        for place in 0..self.scratch.limits.len() {
            let Some(limit) = self.scratch.limits.get(place).and_then(|&at| self.limits.get(at))
            else {
                continue;
            };
            if !limit.matcher.holds(request)
                || !limit.except.is_empty()
                    && limit.except.covers(request, self.scratch.plain_path())
            {
                continue;
            }
            for rule in limit.rules.clone() {
                self.judge(rule, request, *now.get_or_insert_with(|| clock.now()));
            }
        }
        let Some(now) = now else { return Verdict::PASS };
        self.scratch.now = now;
        if self.scratch.opinions.iter().any(Opinion::is_refusal) {
            return self.refuse();
        }
        self.charge();
        self.admit()
    }

    /// Writes what every rule that admits was charged, and counts it.
    fn charge(&mut self) {
        for opinion in &self.scratch.opinions {
            let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
            match opinion.refuses {
                Some(_) => judge.counts.shadow_refused += 1,
                None => {
                    let state = self.scratch.states.get(opinion.state.clone()).unwrap_or_default();
                    judge.table.write(opinion.key, opinion.place, state);
                    judge.counts.allowed += 1;
                }
            }
        }
    }

    /// Hands on what was counted since the last flush.
    pub fn flush(&mut self, namespace: &str, metrics: &mut dyn Metrics) {
        metrics::flush_metadata(namespace, &mut self.callers.without_metadata, metrics);
        for judge in &mut self.rules {
            let keys = judge.table.len();
            judge.counts.flush(namespace, &judge.rule.name, metrics);
            metrics::flush_keys(namespace, &judge.rule.name, &mut judge.reported, keys, metrics);
        }
    }

    /// Hands on the last counts, and takes this engine's callers back from the gauges.
    pub fn retire(&mut self, namespace: &str, metrics: &mut dyn Metrics) {
        self.flush(namespace, metrics);
        for judge in &mut self.rules {
            metrics::flush_keys(namespace, &judge.rule.name, &mut judge.reported, 0, metrics);
        }
    }

    /// Fills the scratch with the entries that may apply.
    fn route(&mut self, request: &dyn Request) {
        let Scratch { path, is_plain, lower, limits, states, .. } = &mut self.scratch;
        limits.clear();
        states.clear();
        path.clear();
        path.push(b'/');
        *is_plain = true;
        if self.needs_path
            && let Some(raw) = request.pseudo(Pseudo::Path)
            && *raw != *b"*"
        {
            *is_plain = normalise(&raw, path);
        }
        let plain: &[u8] = if *is_plain { path } else { b"" };
        if self.except.is_empty() || !self.except.covers(request, plain) {
            self.router.covering(path, lower, limits);
        }
    }

    /// Adds the opinion of one rule, if it has one about this request.
    fn judge(&mut self, number: usize, request: &dyn Request, now: Now) {
        let Some(Judge { rule, actor, table, counts, .. }) = self.rules.get_mut(number) else {
            return;
        };
        let Scratch { opinions, states, path, is_plain, .. } = &mut self.scratch;
        let plain: &[u8] = if *is_plain { path } else { b"" };
        if !rule.except.is_empty() && rule.except.covers(request, plain) {
            return;
        }
        let mut shadow = self.shadow || rule.shadow;
        let caller =
            if rule.actor.is_empty() { Caller::ALL } else { self.callers.of(*actor, request) };
        let (key, percentile) = match (caller, rule.absent) {
            (Caller::Known { key, percentile }, _) => (key, percentile),
            (Caller::Absent, Absent::Skip) => return,
            (Caller::Shared, _) | (Caller::Absent, _) => (Key::SHARE, 0),
        };
        shadow |= percentile >= rule.enforce;
        let place = table.find(key, now);
        counts.overflow += u64::from(place == Place::Overflow);
        let start = states.len();
        let state = start..start + rule.algorithm.words();
        states.resize(state.end, 0);
        let new = states.get_mut(state.clone()).unwrap_or_default();
        let old = table.state(key, place);
        let decision = match (caller, rule.absent) {
            (Caller::Absent, Absent::Deny) => Decision::NEVER,
            _ => rule.algorithm.step(old, table.judging(now), rule.quota.cost, new),
        };
        // Nothing can hold a request yet, so one that would have to wait is refused, and one that
        // could only wait later is told when it need not.
        let refuses = match decision {
            Decision::Admit { wait: 0 } => None,
            Decision::Admit { wait } => Some(Retry::After(wait)),
            Decision::Refuse { retry: Retry::After(early) } => {
                let then = table.judging(now).later(early);
                match rule.algorithm.step(old, then, rule.quota.cost, new) {
                    Decision::Admit { wait } => Some(Retry::After(early.saturating_add(wait))),
                    Decision::Refuse { .. } => Some(Retry::After(early)),
                }
            }
            Decision::Refuse { retry } => Some(retry),
        };
        opinions.push(Opinion { rule: number, key, place, state, refuses, shadow });
    }
}

impl Opinion {
    fn is_refusal(&self) -> bool {
        self.refuses.is_some() && !self.shadow
    }
}
