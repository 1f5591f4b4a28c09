//! Rules, and the paths that they are for.

use std::rc::Rc;

use super::redis::OnFailure;
use super::{Ban, Except, Hot, Match, Plans, Prefix, Quota, Response, Scope, Settling, Told};
use crate::bloom::Shape;

/// One entry of `limits`.
#[derive(Debug)]
pub struct Limit {
    /// The paths that it covers, at least one; they share what is counted.
    pub urls: Vec<Prefix>,
    /// What else must hold.
    pub matcher: Match,
    /// Requests that this entry does not judge.
    pub except: Except,
    /// Its rules in document order.
    pub rules: Vec<Rule>,
    /// A hash of the paths and of what else must hold.
    pub fingerprint: u64,
}

impl Limit {
    /// Whether headers are looked at to tell whom it is for.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.matcher.reads_headers() || self.except.reads_headers()
    }
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Unique name, `[a-z0-9_-]+`.
    pub name: String,
    /// Tells the rule apart from all others of its namespace; equal in configurations in which it
    /// counts on.
    pub fingerprint: u64,
    /// Indices into [`Policy::actors`](super::Policy::actors); several make a compound key, none is `all`.
    pub actor: Vec<usize>,
    /// The rule's numbers.
    pub quota: Quota,
    /// By what else it may judge a request, if there is anything.
    pub plans: Option<Rc<Plans>>,
    /// Where requests say what they take, if they do.
    pub told: Option<Box<Told>>,
    /// How what was reserved for a request is settled at its end, if it is.
    pub settling: Option<Box<Settling>>,
    /// Short name of the algorithm, such as `TB`, by which it stands in the registry.
    pub algo: &'static str,
    /// Words that its algorithm keeps of a caller.
    pub words: usize,
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
    /// Who comes so often that its requests are marked.
    pub hot: Option<Hot>,
    /// Per cent of the limit, 1 ..= 99, beyond which admitted requests are counted.
    pub near: Option<u8>,
    /// Overrides that of [`Redis`](super::redis::Redis).
    pub on_failure: Option<OnFailure>,
}

impl Rule {
    /// Permits that most requests take, as far as is known.
    #[must_use]
    pub fn usual_cost(&self) -> u64 {
        self.told.as_ref().map_or(self.quota.cost, |told| told.default)
    }

    /// Whether it limits how many requests there are at a time.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.settling.as_ref().is_some_and(|settling| settling.is_place)
    }

    /// Whether each worker counts for itself.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.scope == Scope::Local
    }

    /// How widely usage is counted where there is a Redis, or none.
    #[must_use]
    pub fn scope_with(&self, redis: bool) -> Scope {
        match self.scope {
            Scope::Global if !redis => Scope::Gateway,
            scope => scope,
        }
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
