//! The policy: a valid configuration as plain values. The limiter is built from it.
//!
//! Algorithms, sources and stores are built from these values. The meaning of a value for a request
//! is documented in `matching`, `actor` and `ban`. The crate also has the small tools that
//! several crates need: keys and their hashes, headers of a response, paths, spellings of header
//! values, JSON, rings, filters, and the state of a ban.

use std::rc::Rc;

mod actor;
pub mod ban;
pub mod bloom;
pub mod decision;
pub mod gateways;
pub mod headers;
mod host;
pub mod json;
pub mod key;
mod matching;
mod metric;
mod module_kind;
pub mod names;
pub mod number;
pub mod path;
mod plans;
pub mod port;
mod quota;
pub mod redis;
pub mod remote;
mod response;
pub mod ring;
mod rule;
mod scope;
pub mod settlement;
mod settling;
pub mod spelling;
mod switches;
pub mod time;
pub mod tree;
pub mod words;
mod zone;

pub use actor::{Actor, ChosenCost, CostSource, IdentitySource, NumberSource};
pub use ban::Ban;
pub use matching::{
    Condition, ConditionBlock, ConditionField, Except, HostPattern, Match, Prefix, RouteNames,
    Test, Wildcard,
};
pub use metric::{Metric, MetricKind};
pub use module_kind::{ModuleKind, OnFault};
pub use plans::{Plan, PlanKind, Plans};
pub use quota::{MAX_DRAINED, MAX_PERMITS, MAX_USED, Quota};
use redis::Redis;
use remote::{Own, Remote};
pub use response::{BodyPiece, FieldForm, LimitFields, Response, SINGLE_FIELDS};
pub use rule::{Absent, Hot, Limit, Over, Rule};
pub use scope::{Memory, Scope};
pub use settling::{NumberForm, Outcomes, ResponseCost, ResponseSource, Settling, Term};
pub use switches::Switches;
pub use zone::{Starts, Summer, Zone};

/// A complete configuration.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The limits, in document order.
    pub limits: Vec<Limit>,
    /// The actors that rules may name, the defaults first.
    pub actors: Vec<Actor>,
    /// Requests that are exempt from all limits.
    pub except: Except,
    /// Shadow mode: evaluate and report everything, refuse nothing.
    pub shadow: bool,
    /// Decide about no request. Usage stays, and counts continue afterwards.
    pub disabled: bool,
    /// Prefix of shared keys and metric names. By default the plugin's root id.
    pub namespace: Option<String>,
    /// The number of live callers for which each rule's table is sized.
    pub keys: usize,
    /// The configured number of callers. It is higher than `keys` if the rules leave too little
    /// memory.
    pub wanted_keys: usize,
    /// Whether refusals are logged, at most one line per rule and second.
    pub log_refused: bool,
    /// Reports of accepted requests.
    pub accepted: Accepted,
    /// The explanation of decisions for operators.
    pub explain: Option<Explain>,
    /// The response fields with the limits of accepted requests.
    pub fields: LimitFields,
    /// The request header that names rules in shadow mode that would have refused the request.
    pub mark: Option<Rc<str>>,
    /// The endpoint where operators read and reset callers.
    pub admin: Option<Admin>,
    /// Whether the configuration came from a configuration server.
    pub is_remote: bool,
    /// The Redis of `global` rules. Without one, each gateway counts separately.
    pub redis: Option<Redis>,
    /// The Adler-32 checksum of its text. 0 without a text, as of a `Struct`.
    pub checksum: u32,
    /// The source of rules that replace these.
    pub remote: Option<Remote>,
    /// The form of the module that read it.
    pub module: ModuleKind,
    /// What happens to a request after a fault of the module.
    pub on_fault: OnFault,
    /// Warnings for the log about settings that are allowed and probably unintended.
    pub warnings: Vec<String>,
}

impl Policy {
    /// All rules, in document order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.limits.iter().flat_map(|limit| &limit.rules)
    }

    /// The exemptions of the document, its entries and its rules.
    pub fn excepts(&self) -> impl Iterator<Item = &Except> {
        let entries = self.limits.iter().map(|limit| &limit.except);
        entries.chain(self.rules().map(|rule| &rule.except)).chain([&self.except])
    }

    /// All blocks of conditions.
    pub fn blocks(&self) -> impl Iterator<Item = &ConditionBlock> {
        let matchers = self.limits.iter().map(|limit| &limit.matcher);
        let of_entries = matchers.flat_map(|matcher| matcher.any.iter().chain(&matcher.unless));
        of_entries.chain(self.excepts().flat_map(|except| &except.any))
    }

    /// The sources that its rules read from requests, but for those of plans.
    pub fn sources(&self) -> impl Iterator<Item = &IdentitySource> {
        self.rules().flat_map(|rule| {
            let actors = rule.actor.iter().filter_map(|&actor| self.actors.get(actor));
            let costs = rule.cost_source.iter().flat_map(|cost| cost.sources());
            actors.flat_map(|actor| &actor.sources).chain(costs)
        })
    }

    /// The settings that remain valid under the rules of a remote document.
    #[must_use]
    pub fn own(&self) -> Own {
        Own {
            keys: self.wanted_keys,
            log_refused: self.log_refused,
            accepted: self.accepted,
            explain: self.explain.clone(),
            mark: self.mark.clone(),
            admin: self.admin.clone(),
            redis: self.redis.clone(),
            module: self.module,
            on_fault: self.on_fault,
        }
    }
}

/// Reports of accepted requests. Refused requests always report both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    /// `ratelimit` and `ratelimit-policy` on the upstream's response.
    pub headers: bool,
    /// Filter state `wasm.diana` for the access log.
    pub filter_state: bool,
}

/// The endpoint where operators read and reset callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// The prefix of its paths, without a trailing `/`.
    pub path: String,
    /// The environment variable of the VM with the token.
    pub token_env: String,
}

/// The explanation of decisions for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explain {
    /// The header, in lower case. In a request it carries the token, in a response the explanation.
    pub header: Rc<str>,
    /// The environment variable of the VM with the token.
    pub token_env: String,
}
