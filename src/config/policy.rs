//! The meaning of a valid configuration: plain values that the engine is built from.

use std::rc::Rc;

use crate::actor::Source;
use crate::algorithm::Algorithm;
use crate::quota::Quota;
use crate::route::except::Except;
pub use crate::route::matcher::Match;
use crate::route::path::Prefix;
use crate::store::local::Table;

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
    /// Lines for the log about things that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

impl Policy {
    /// A line for the log: what was configured and how much memory it can take.
    #[must_use]
    pub fn summary(&self) -> String {
        let rules: usize = self.limits.iter().map(|limit| limit.rules.len()).sum();
        let most = bytes(&self.limits, self.keys).div_ceil(1024);
        format!("configuration accepted: {rules} rules; a worker's tables take at most {most} KiB")
    }
}

/// Bytes that the tables of these limits can grow to in a worker.
#[must_use]
pub fn bytes(limits: &[Limit], keys: usize) -> u64 {
    let bytes = |rule: &Rule| {
        let callers = if rule.actor.is_empty() { 1 } else { keys };
        Table::bytes(rule.algorithm.words(), callers)
    };
    limits.iter().flat_map(|limit| &limit.rules).map(bytes).sum()
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
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Unique name, `[a-z0-9_-]+`.
    pub name: String,
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
}

/// Where usage is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In each worker.
    Local,
    /// In the gateway.
    Gateway,
    /// In the fleet.
    Global,
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
