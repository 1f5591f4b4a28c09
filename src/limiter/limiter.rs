//! The whole decision: which rules apply, what each of them says, and what is charged.
//!
//! All rules are judged at one instant and none is charged; only when all of them admit are all
//! charged, so a refused request leaves every rule as it found it.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use crate::bans::Bans;
use crate::check::Check;
use crate::commit::{Charged, Turn};
use crate::pending::PendingRequest;
use crate::report::metrics::RuleCounts;
use crate::upkeep::Upkeep;
use crate::verdict::Verdict;
use diana_algorithm::Algorithm;
use diana_policy::port::{Clock, Request};
use diana_policy::time::{Micros, Now};
use diana_policy::{Accepted, Except, LimitFields, Match, Rule};
use diana_redis::client::Client;
use diana_redis::handle::Handle;
use diana_redis::store::RedisStore;
use diana_request::cost::Teller;
use diana_request::identity::caller::Callers;
use diana_request::matching::{PathIndex, except};
use diana_request::plan::Choosers;
use diana_request::settling::Settler;
use diana_store::Store;
use diana_store::hot::spotter::Spotter;
use diana_store::permit::Freed;
use diana_store::slots::traffic::Traffic;

/// Judges requests by the rules of one policy, and holds what was used.
pub struct Limiter {
    pub(crate) entries: Entries,
    pub(crate) rules: Vec<CompiledRule>,
    pub(crate) kinds: Kinds,
    pub(crate) callers: Callers,
    pub(crate) choosers: Choosers,
    pub(crate) reports: Reports,
    pub(crate) fleet: Fleet,
    pub(crate) upkeep: Upkeep,
    /// Counters of reads and writes of shared data.
    pub(crate) traffic: Rc<Traffic>,
    /// Charges that came back.
    pub(crate) freed: Rc<Freed>,
    pub(crate) scratch: Scratch,
}

/// The entries of `limits`, by which the rules for a request are found.
pub(crate) struct Entries {
    pub(crate) paths: PathIndex,
    pub(crate) limits: Vec<Limit>,
    /// Exempt from all rules.
    pub(crate) except: Except,
    /// Whether anything is exempt from any rule.
    pub(crate) has_exemptions: bool,
    /// Whether anything is compared with a request's path.
    pub(crate) needs_path: bool,
    pub(crate) reads_headers: bool,
}

/// What kinds of rules there are.
pub(crate) struct Kinds {
    /// The turns in which they are charged, in order.
    pub(crate) turns: Vec<Turn>,
    /// Whether a caller may be banned.
    pub(crate) has_bans: bool,
    /// Whether any rule settles its reservations.
    pub(crate) settles: bool,
}

/// How decisions are reported, and where.
pub(crate) struct Reports {
    pub(crate) shadow: bool,
    pub(crate) log_refused: bool,
    pub(crate) accepted: Accepted,
    /// In which fields accepted requests tell the limits.
    pub(crate) fields: LimitFields,
    /// A header of requests that names the rules in shadow which would have refused them.
    pub(crate) mark: Option<Rc<str>>,
    /// Headers that mark requests, each once. They are taken off every request that comes in.
    pub(crate) markers: Vec<Rc<str>>,
}

/// The other gateways, reached through Redis.
pub(crate) struct Fleet {
    pub(crate) client: Option<Client>,
    /// What is to be asked, and how Redis is.
    pub(crate) redis: Rc<RefCell<Handle>>,
    /// The requests that wait for an answer, by their tickets.
    pub(crate) asked: BTreeMap<u64, PendingRequest>,
    /// Questions of operators to Redis.
    pub(crate) inquiries: Vec<crate::operator::Inquiry>,
    /// Whether there are rules for the fleet, and the mode in the metrics.
    pub(crate) is_global: bool,
    pub(crate) mode: Option<&'static str>,
}

/// An entry of `limits`; its rules are a range of [`Limiter::rules`].
pub(crate) struct Limit {
    pub(crate) matcher: Match,
    pub(crate) except: Except,
    pub(crate) rules: Range<usize>,
}

/// A rule with its usage.
pub(crate) struct CompiledRule {
    pub(crate) rule: Rule,
    /// Its name, which records share.
    pub(crate) name: Rc<str>,
    pub(crate) algorithm: Rc<dyn Algorithm>,
    /// Reads what requests take, if they do not all take the same.
    pub(crate) teller: Option<Box<Teller>>,
    /// CheckOutcome what requests turned out to use, if that is settled at their end.
    pub(crate) settler: Option<Box<Settler>>,
    /// By what else it judges, if there is anything.
    pub(crate) plans: Option<Box<crate::plans::RulePlans>>,
    /// Its actor's number in [`Callers`]; none for `all`.
    pub(crate) actor: Option<usize>,
    /// Counts its callers.
    pub(crate) store: Box<dyn Store>,
    /// How many callers the store has room for.
    pub(crate) keys: u64,
    pub(crate) bans: Option<Box<Bans>>,
    pub(crate) hot: Option<Spotter>,
    /// Whether requests have places in a line, which are given back if a client leaves.
    pub(crate) queues: bool,
    pub(crate) turn: Turn,
    pub(crate) counts: RuleCounts,
    /// By how many the callers in this worker's memory changed since the last flush.
    pub(crate) change_in_keys: i64,
    /// When its last line was logged.
    pub(crate) logged: Option<Micros>,
}

/// What one request leaves behind while it is judged, kept to be used again without allocating.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The path as exemptions see it: nothing unless it is spelled plainly, since what the upstream
    /// makes of another spelling is anybody's guess.
    pub(crate) path: Vec<u8>,
    /// The entries that cover the path.
    pub(crate) limits: Vec<usize>,
    pub(crate) checks: Vec<Check>,
    /// Whether an operator asks about it, and then the rules that have no say since others ban its caller.
    pub(crate) explains: bool,
    pub(crate) silenced: Vec<usize>,
    /// The rules whose caller is hot.
    pub(crate) hot: Vec<usize>,
    /// Whether the request was counted already when it came.
    pub(crate) is_counted: bool,
    /// When all of them were judged.
    pub(crate) now: Now,
    /// Since when the request waits for the decision.
    pub(crate) since: Micros,
}

impl Limiter {
    /// Headers that mark requests. They are taken off every request that comes in.
    #[must_use]
    pub fn markers(&self) -> &[Rc<str>] {
        &self.reports.markers
    }

    /// Whether more of a request's headers matters than its path.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.entries.reads_headers
    }

    /// Decides about a request, and charges for it if it is admitted. The clock is read once, and
    /// only if a rule applies.
    pub fn decide(&mut self, request: &dyn Request, clock: &dyn Clock) -> Verdict {
        if self.freed.is_any() {
            self.take_back(clock.now());
        }
        self.decide_since(None, request, clock)
    }

    /// Decides about a request that may have been asked about already, since `since`.
    #[inline(never)]
    pub(crate) fn decide_since(
        &mut self,
        since: Option<Micros>,
        request: &dyn Request,
        clock: &dyn Clock,
    ) -> Verdict {
        if self.fleet.is_global && self.fleet.redis.borrow().away() > 0 {
            self.need_redis();
        }
        self.gather(since.is_none(), request);
        if self.scratch.checks.is_empty() {
            return Verdict::pass();
        }
        let now = clock.now();
        self.scratch.now = now;
        self.scratch.since = since.unwrap_or(now.mono);
        if self.kinds.has_bans && self.is_banned() {
            return self.refuse();
        }
        self.judge();
        self.conclude()
    }

    /// Notes which rules apply to a request.
    #[inline]
    pub(crate) fn gather(&mut self, is_new: bool, request: &dyn Request) {
        self.scratch.hot.clear();
        self.scratch.is_counted = !is_new;
        self.callers.begin();
        self.choosers.begin();
        self.scratch.checks.clear();
        if self.entries.needs_path {
            self.match_path(request);
        }
        if !self.entries.has_exemptions
            || !except::covers(&self.entries.except, request, &self.scratch.path)
        {
            self.apply_all(request);
        }
        self.callers.count(is_new);
    }

    /// Charges the request in hand if all rules admit it.
    #[inline(never)]
    pub(crate) fn conclude(&mut self) -> Verdict {
        match self.charge() {
            Charged::Leaves(delay) => self.admit(delay),
            Charged::Asks(delay) => self.ask(delay),
            Charged::Nothing => {
                self.give_back();
                self.refuse()
            }
        }
    }
}

impl CompiledRule {
    /// Its store if Redis counts the callers, with the numbers of a plan at hand.
    pub(crate) fn in_redis(&mut self, plan: u32) -> Option<&mut RedisStore> {
        let store: &mut dyn Any = &mut *self.store;
        let store: &mut RedisStore = store.downcast_mut()?;
        store.judge_by(plan);
        Some(store)
    }
}
