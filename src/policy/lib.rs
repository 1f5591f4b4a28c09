//! What is to be done, as plain values: what a valid configuration means. An engine is built from it.
//!
//! Nothing here knows how anything is done: algorithms, sources and stores are built from these values, and
//! what a value means for a request stands where that is decided, in `matching`, `identity`, `ban` and `hot`.

use std::rc::Rc;

mod actor;
pub mod address;
pub mod ban;
pub mod bloom;
mod cost;
pub mod decision;
mod host;
mod hot;
pub mod json;
pub mod key;
mod matching;
pub mod number;
mod operator;
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
pub mod time;
pub mod tree;
pub mod words;
mod zone;

pub use actor::{Actor, IdentitySource};
pub use ban::Ban;
pub use cost::Told;
pub use hot::Hot;
pub use matching::{Block, Condition, Except, Field, Host, Match, Prefix, Test};
pub use operator::{Admin, Explain};
pub use plans::{Plan, PlanKind, Plans, plan};
pub use quota::{MAX_PERMITS, Quota};
use redis::Redis;
use remote::{Own, Remote};
pub use response::{BodyPiece, LimitFields, Response};
pub use rule::{Absent, Limit, Rule};
pub use scope::{Memory, Scope};
pub use settling::{Answered, NumberForm, Outcomes, ResponseSource, Settling};
pub use zone::{Summer, Zone};

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
    /// The configured number, which is larger where these rules leave too little memory for it.
    pub wanted_keys: usize,
    /// Whether refusals are logged, at most one line per rule and second.
    pub log_refused: bool,
    /// What accepted requests report.
    pub accepted: Accepted,
    /// How an operator asks what was decided about a request.
    pub explain: Option<Explain>,
    /// In which fields accepted requests tell the limits, if they do.
    pub fields: LimitFields,
    /// A header of requests that names the rules in shadow which would have refused them.
    pub mark: Option<Rc<str>>,
    /// Where an operator looks at callers, and lifts what they used.
    pub admin: Option<Admin>,
    /// Whether a configuration centre gave it.
    pub is_remote: bool,
    /// Where `global` rules are counted; without one each gateway counts them by itself.
    pub redis: Option<Redis>,
    /// Where rules come from that replace these.
    pub remote: Option<Remote>,
    /// Lines for the log about things that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

impl Policy {
    /// What stays in force under the rules of a remote document.
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
        }
    }
}

/// What accepted requests report; refused ones always report both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    /// `ratelimit` and `ratelimit-policy` on the upstream's response.
    pub headers: bool,
    /// Filter state `wasm.diana` for the access log.
    pub filter_state: bool,
}
