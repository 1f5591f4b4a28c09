//! The whole decision: which rules apply, what each of them says, and what is charged.
//!
//! All rules are judged at one instant and none is charged; only when all of them admit are all
//! charged, so a refused request leaves every rule as it found it.

mod ask;
mod banned;
mod build;
mod charge;
mod hot;
mod judge;
mod report;
mod upkeep;

use std::ops::Range;
use std::rc::Rc;

use crate::caller::{Caller, Callers};
use crate::config::policy::{Accepted, Rule};
use crate::decision::{Decision, Retry};
use crate::fleet::desk::Desk;
use crate::hot::spotter::Spotter;
use crate::key::Key;
use crate::metrics::Counts;
use crate::port::{Clock, Pseudo, Request};
use crate::route::Router;
use crate::route::except::Except;
use crate::route::matcher::Match;
use crate::route::path::normalise;
use crate::store::Store;
use crate::store::bans::Bans;
use crate::store::shared::traffic::Traffic;
use crate::tickets::Tickets;
use crate::time::{Micros, Now};
use crate::verdict::Verdict;
pub use ask::Resumed;
use ask::{Asked, Grant};
use charge::{Charged, Turn};

/// Judges requests by the rules of one policy, and holds what was used.
pub struct Engine {
    router: Router,
    limits: Vec<Limit>,
    rules: Vec<Judge>,
    callers: Callers,
    /// Headers that mark the requests of hot callers, each once. They must be taken off whatever comes in.
    pub markers: Vec<Rc<str>>,
    except: Except,
    shadow: bool,
    log_refused: bool,
    accepted: Accepted,
    /// Whether anything is compared with a request's path.
    needs_path: bool,
    /// The one rule that judges every request and says nothing of those that it admits, if it is so.
    plain: Option<Plain>,
    /// How often upkeep is due, in ticks.
    pace: Micros,
    /// Whether any rule has judged a request.
    serves: bool,
    /// Whether a caller may be banned.
    has_bans: bool,
    /// Whether there are rules for the fleet, and how the metrics say that they are counted.
    is_global: bool,
    mode: Option<&'static str>,
    /// What was done with shared data.
    traffic: Rc<Traffic>,
    reads_headers: bool,
    /// Through which the fleet is asked.
    desk: Option<Desk>,
    /// The requests that wait for an answer, by their tickets.
    asked: Tickets<Asked>,
    scratch: Scratch,
}

/// An entry of `limits`; its rules are a range of [`Engine::rules`].
struct Limit {
    matcher: Match,
    except: Except,
    rules: Range<usize>,
}

/// Whom a single plain rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plain {
    /// All as one.
    Everybody,
    /// Callers by an actor, as numbered in [`Callers`].
    Actor(usize),
}

/// A rule with its usage.
struct Judge {
    rule: Rule,
    /// Its actor's number in [`Callers`].
    actor: usize,
    store: Box<dyn Store>,
    bans: Option<Box<dyn Bans>>,
    hot: Option<Spotter>,
    turn: Turn,
    counts: Counts,
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
    /// The rules whose caller is hot.
    hot: Vec<usize>,
    /// Whether the request was counted already when it came.
    is_counted: bool,
    /// When all of them were judged.
    now: Now,
    /// Since when the request waits for the decision.
    since: Micros,
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
    decision: Decision,
    /// Judge and report only.
    shadow: bool,
    /// Whether the rule bans the caller, without having judged.
    banned: bool,
    /// Whether it is the caller's own doing if he is refused.
    is_own: bool,
    charged: bool,
    /// Whether the fleet is asked about a ban, too.
    looks: bool,
    /// Whether the fleet has to be asked before anything can be decided.
    ask: bool,
    /// Whether it was asked in vain.
    alone: bool,
    /// What the fleet's store charged, and what it said was left.
    grant: Option<Grant>,
    known: Option<u64>,
    /// Permits left after the decision, once somebody wants to know.
    remaining: u64,
}

impl Opinion {
    fn retry(&self) -> Option<Retry> {
        match self.decision {
            Decision::Refuse { retry } => Some(retry),
            Decision::Admit { .. } => None,
        }
    }

    fn is_refusal(&self) -> bool {
        !self.shadow && !self.decision.is_admitted()
    }

    /// Ticks that the rule holds the request.
    fn wait(&self) -> Micros {
        match self.decision {
            Decision::Admit { wait } if !self.shadow => wait,
            _ => 0,
        }
    }
}

impl Engine {
    /// Whether more of a request's headers matters than its path.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.reads_headers
    }

    /// The short way of most requests under a single rule, kept apart from the long one so that it
    /// touches little code. Whether the request was charged and goes on, and nothing else is to be
    /// done; otherwise nothing was charged, and [`Engine::decide`] has to.
    #[inline]
    pub fn pass(&mut self, request: &dyn Request, clock: &dyn Clock) -> bool {
        let key = match self.plain {
            None => return false,
            Some(Plain::Everybody) => Key::ALL,
            Some(Plain::Actor(actor)) => {
                self.callers.begin();
                match self.callers.of(actor, request) {
                    Caller::Known { key, .. } => key,
                    Caller::Shared | Caller::Absent => return false,
                }
            }
        };
        let Some(judge) = self.rules.first_mut() else { return false };
        let now = clock.now();
        if judge.bans.as_mut().is_some_and(|bans| bans.left(key, now.mono) > 0) {
            return false;
        }
        if judge.hot.as_mut().is_some_and(|spotter| spotter.is_hot(key.hash)) {
            return false;
        }
        let passed = judge.store.pass(key, now);
        judge.counts.allowed += u64::from(passed);
        if passed && let Some(spotter) = &mut judge.hot {
            spotter.see(key.hash);
        }
        passed
    }

    /// Decides about a request, and charges for it if it is admitted. The clock is read once, and
    /// only if a rule applies.
    pub fn decide(&mut self, request: &dyn Request, clock: &dyn Clock) -> Verdict {
        self.decide_since(None, request, clock)
    }

    /// The same, about a request that may have waited already.
    #[inline(never)]
    fn decide_since(
        &mut self,
        since: Option<Micros>,
        request: &dyn Request,
        clock: &dyn Clock,
    ) -> Verdict {
        self.callers.begin();
        self.route(request);
        self.scratch.opinions.clear();
        self.scratch.hot.clear();
        self.scratch.is_counted = since.is_some();
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
                self.apply(rule, request);
            }
        }
        if self.scratch.opinions.is_empty() {
            return Verdict::PASS;
        }
        let now = clock.now();
        (self.scratch.now, self.scratch.since) = (now, since.unwrap_or(now.mono));
        if self.has_bans && self.is_banned() {
            return self.refuse();
        }
        self.judge();
        self.conclude()
    }

    /// Charges the request in hand if all rules admit it.
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

    /// Fills the scratch with the entries that may apply.
    fn route(&mut self, request: &dyn Request) {
        let Scratch { path, is_plain, lower, limits, .. } = &mut self.scratch;
        limits.clear();
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
}
