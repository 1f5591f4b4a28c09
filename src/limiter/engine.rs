//! The whole decision: which rules apply, what each of them says, and what is charged.
//!
//! All rules are judged at one instant and none is charged; only when all of them admit are all
//! charged, so a refused request leaves every rule as it found it.

mod ask;
mod banned;
mod build;
mod charge;
mod explain;
mod hear;
mod hot;
pub mod inquiry;
mod judge;
mod opinion;
mod plans;
mod refuse;
mod report;
mod round;
mod settle;
mod upkeep;

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use crate::bans::Bans;
use crate::report::metrics::RuleCounts;
use crate::verdict::Verdict;
use ask::Asked;
pub use ask::Resumed;
pub use build::Unbuildable;
use charge::{Charged, Turn};
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
use opinion::Opinion;
use upkeep::Upkeep;

/// Judges requests by the rules of one policy, and holds what was used.
pub struct Engine {
    entries: Entries,
    rules: Vec<Judge>,
    kinds: Kinds,
    callers: Callers,
    choosers: Choosers,
    reports: Reports,
    fleet: Fleet,
    upkeep: Upkeep,
    /// Counters of reads and writes of shared data.
    traffic: Rc<Traffic>,
    /// Charges that came back.
    freed: Rc<Freed>,
    scratch: Scratch,
}

/// The entries of `limits`, by which the rules for a request are found.
struct Entries {
    paths: PathIndex,
    limits: Vec<Limit>,
    /// Exempt from all rules.
    except: Except,
    /// Whether anything is exempt from any rule.
    has_exemptions: bool,
    /// Whether anything is compared with a request's path.
    needs_path: bool,
    reads_headers: bool,
}

/// What kinds of rules there are.
struct Kinds {
    /// The turns in which they are charged, in order.
    turns: Vec<Turn>,
    /// Whether a caller may be banned.
    has_bans: bool,
    /// Whether any rule settles its reservations.
    settles: bool,
}

/// How decisions are reported, and where.
struct Reports {
    shadow: bool,
    log_refused: bool,
    accepted: Accepted,
    /// In which fields accepted requests tell the limits.
    fields: LimitFields,
    /// A header of requests that names the rules in shadow which would have refused them.
    mark: Option<Rc<str>>,
    /// Headers that mark requests, each once. They are taken off every request that comes in.
    markers: Vec<Rc<str>>,
}

/// The other gateways, reached through Redis.
struct Fleet {
    client: Option<Client>,
    /// What is to be asked, and how Redis is.
    redis: Rc<RefCell<Handle>>,
    /// The requests that wait for an answer, by their tickets.
    asked: BTreeMap<u64, Asked>,
    /// Questions of operators to Redis.
    inquiries: Vec<inquiry::Inquiry>,
    /// Whether there are rules for the fleet, and the mode in the metrics.
    is_global: bool,
    mode: Option<&'static str>,
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
    /// Its name, which records share.
    name: Rc<str>,
    algorithm: Rc<dyn Algorithm>,
    /// Reads what requests take, if they do not all take the same.
    teller: Option<Box<Teller>>,
    /// Says what requests turned out to use, if that is settled at their end.
    settler: Option<Box<Settler>>,
    /// By what else it judges, if there is anything.
    plans: Option<Box<plans::Judged>>,
    /// Its actor's number in [`Callers`]; none for `all`.
    actor: Option<usize>,
    /// Counts its callers.
    store: Box<dyn Store>,
    /// How many callers the store has room for.
    keys: u64,
    bans: Option<Box<Bans>>,
    hot: Option<Spotter>,
    /// Whether requests have places in a line, which are given back if a client leaves.
    queues: bool,
    turn: Turn,
    counts: RuleCounts,
    /// When its last line was logged.
    logged: Option<Micros>,
}

/// What one request leaves behind while it is judged, kept to be used again without allocating.
#[derive(Default)]
struct Scratch {
    /// The path as exemptions see it: nothing unless it is spelled plainly, since what the upstream
    /// makes of another spelling is anybody's guess.
    path: Vec<u8>,
    /// The entries that cover the path.
    limits: Vec<usize>,
    opinions: Vec<Opinion>,
    /// Whether an operator asks about it, and then the rules that have no say since others ban its caller.
    explains: bool,
    silenced: Vec<usize>,
    /// The rules whose caller is hot.
    hot: Vec<usize>,
    /// Whether the request was counted already when it came.
    is_counted: bool,
    /// When all of them were judged.
    now: Now,
    /// Since when the request waits for the decision.
    since: Micros,
}

impl Engine {
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
    fn decide_since(
        &mut self,
        since: Option<Micros>,
        request: &dyn Request,
        clock: &dyn Clock,
    ) -> Verdict {
        if self.fleet.is_global && self.fleet.redis.borrow().away() > 0 {
            self.need_redis();
        }
        self.gather(since.is_none(), request);
        if self.scratch.opinions.is_empty() {
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
    fn gather(&mut self, is_new: bool, request: &dyn Request) {
        self.scratch.hot.clear();
        self.scratch.is_counted = !is_new;
        self.callers.begin();
        self.choosers.begin();
        self.scratch.opinions.clear();
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
    fn conclude(&mut self) -> Verdict {
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

impl Judge {
    /// The store of its callers, which judges by this plan from now on, if the rule has plans.
    #[inline(always)]
    fn by_plan(&mut self, plan: u32) -> &mut dyn Store {
        if self.plans.is_some() {
            self.store.judge_by(plan);
        }
        &mut *self.store
    }

    /// The same if Redis counts them.
    fn in_redis(&mut self, plan: u32) -> Option<&mut RedisStore> {
        let store: &mut dyn Any = self.by_plan(plan);
        store.downcast_mut()
    }
}
