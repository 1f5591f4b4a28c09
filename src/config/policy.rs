//! The meaning of a valid configuration: plain values that the engine is built from.

pub mod redis;
pub mod remote;

use std::rc::Rc;

use crate::actor::Source;
use crate::algorithm::Algorithm;
use crate::ban::Ban;
use crate::bloom::Shape;
use crate::hot::Hot;
use crate::hot::spotter::Spotter;
use crate::quota::Quota;
use crate::route::except::Except;
pub use crate::route::matcher::Match;
use crate::route::path::Prefix;
pub use crate::store::{Memory, Scope};
use redis::Redis;
use remote::{Own, Remote};

/// Everything that a configuration says.
#[derive(Debug)]
pub struct Policy {
    /// The rules, in document order.
    pub limits: Vec<Limit>,
    /// The actors that rules may name; the defaults come first.
    pub actors: Vec<Actor>,
    /// Requests that no rule judges.
    pub except: Except,
    /// Judge and report everything, refuse nothing.
    pub shadow: bool,
    /// Prefix of shared keys and metric names; by default the plugin's root id.
    pub namespace: Option<String>,
    /// How many live callers each rule's table is made for.
    pub keys: usize,
    /// Whether refusals are logged, at most one line per rule and second.
    pub log_refused: bool,
    /// What accepted requests report.
    pub accepted: Accepted,
    /// Where `global` rules are counted; without one each gateway counts them by itself.
    pub redis: Option<Redis>,
    /// Where rules come from that replace these.
    pub remote: Option<Remote>,
    /// Lines for the log about things that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

impl Policy {
    /// Whether a single rule judges every request, enforced for all callers, and nothing is told of
    /// those that it admits.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let silent = self.accepted == Accepted::default() && !self.shadow;
        let [Limit { matcher, except, rules, .. }] = self.limits.as_slice() else { return false };
        let [rule] = rules.as_slice() else { return false };
        silent
            && matcher.is_empty()
            && [&self.except, except, &rule.except].iter().all(|except| except.is_empty())
            && rule.enforce == 100
            && !rule.shadow
    }

    /// Whether more of a request's headers matters than its path, so that all of them are best
    /// read at once.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        let by_actor = |actor: &usize| self.actors.get(*actor).is_some_and(Actor::reads_headers);
        let by_rule = |rule: &Rule| rule.except.reads_headers() || rule.actor.iter().any(by_actor);
        let by_limit = |limit: &Limit| {
            !limit.matcher.is_empty()
                || limit.except.reads_headers()
                || limit.rules.iter().any(by_rule)
        };
        self.except.reads_headers() || self.limits.iter().any(by_limit)
    }

    /// What stays in force under the rules of a remote document.
    #[must_use]
    pub fn own(&self) -> Own {
        Own {
            keys: self.keys,
            log_refused: self.log_refused,
            accepted: self.accepted,
            redis: self.redis.clone(),
        }
    }

    /// A line for the log: what was configured and how much memory it can take.
    #[must_use]
    pub fn summary(&self) -> String {
        let rules: usize = self.limits.iter().map(|limit| limit.rules.len()).sum();
        let Memory { worker, shared } = memory(&self.limits, self.keys);
        let (worker, shared) = (worker.div_ceil(1024), shared.div_ceil(1024));
        let mut line = format!(
            "configuration accepted: {rules} rules; callers take at most {worker} KiB in each worker \
             and {shared} KiB of shared data"
        );
        for rule in self.limits.iter().flat_map(|limit| &limit.rules) {
            let Some(daily) = rule.daily else { continue };
            let bytes = daily.bytes().div_ceil(1024);
            line.push_str(&format!("; of that the quota of `{}` {bytes} KiB", rule.name));
        }
        line
    }
}

/// What the callers of these limits take at most.
#[must_use]
pub fn memory(limits: &[Limit], keys: usize) -> Memory {
    let mut sum = Memory::default();
    for rule in limits.iter().flat_map(|limit| &limit.rules) {
        let callers = if rule.actor.is_empty() { 1 } else { keys };
        let words = rule.algorithm.words();
        let mut of = rule.scope.memory(words, callers, rule.ban.is_some());
        if let Some(shape) = rule.daily {
            // All but its bans lies in the filter.
            let rows = rule.scope.memory(words, callers, false);
            of.worker = of.worker - rows.worker + shape.bytes();
            of.shared -= rows.shared;
        }
        sum = sum.with(of);
        if rule.hot.is_some() {
            sum = sum.with(Spotter::memory(rule.is_local()));
        }
    }
    sum
}

/// One entry of `limits`.
#[derive(Debug)]
pub struct Limit {
    /// The path that it covers.
    pub url: Prefix,
    /// What else must hold.
    pub matcher: Match,
    /// Requests that this entry does not judge.
    pub except: Except,
    /// Its rules in document order.
    pub rules: Vec<Rule>,
    /// A hash of the path and of what else must hold.
    pub identity: u64,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Unique name, `[a-z0-9_-]+`.
    pub name: String,
    /// Tells the rule apart from all others of its namespace; equal in configurations in which it
    /// counts on.
    pub identity: u64,
    /// Indices into [`Policy::actors`]; several make a compound key, none is `all`.
    pub actor: Vec<usize>,
    /// The rule's numbers.
    pub quota: Quota,
    /// Short name of the algorithm, such as `TB`.
    pub algo: &'static str,
    /// The algorithm, built from `quota`.
    pub algorithm: Rc<dyn Algorithm>,
    /// Where usage is counted.
    pub scope: Scope,
    /// How many accounts are counted by the day in fixed memory, if they are.
    pub daily: Option<Shape>,
    /// What a request without this actor does.
    pub absent: Absent,
    /// Per cent of callers for whom the rule is enforced, 0 ..= 100.
    pub enforce: u8,
    /// Judge and report, never refuse.
    pub shadow: bool,
    /// Whether the rule shows in client headers.
    pub expose: bool,
    /// Requests that this rule does not judge.
    pub except: Except,
    /// The answer to a request that this rule refuses.
    pub response: Rc<Response>,
    /// Whom it bans.
    pub ban: Option<Ban>,
    /// Who comes so often that his requests are marked.
    pub hot: Option<Hot>,
}

impl Rule {
    /// Whether each worker counts for itself.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.scope == Scope::Local
    }
}

/// What a request without a rule's actor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// The rule does not judge it.
    Skip,
    /// All such requests share one bucket.
    Share,
    /// It is refused.
    Deny,
}

/// A named way to recognise callers.
#[derive(Debug)]
pub struct Actor {
    /// The name that rules use.
    pub name: String,
    /// Asked in order; the first that yields a value wins.
    pub sources: Vec<Rc<dyn Source>>,
}

impl Actor {
    fn reads_headers(&self) -> bool {
        self.sources.iter().any(|source| source.reads_headers())
    }
}

/// The answer to a refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// 400 ..= 599.
    pub status: u16,
    /// The body; without a newline at its end, since gRPC callers get it as `grpc-message`.
    pub body: String,
    /// The body's media type.
    pub content_type: String,
    /// Headers to add, names in lower case.
    pub headers: Vec<(String, String)>,
}

/// What accepted requests report; refused ones always report both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    /// `ratelimit` and `ratelimit-policy` on the upstream's response.
    pub headers: bool,
    /// Filter state `wasm.diana` for the access log.
    pub filter_state: bool,
}
