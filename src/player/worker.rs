//! One worker of a gateway: the core's own limiter, which is called at the instants at which a proxy would call it.

use std::mem::take;
use std::rc::Rc;

use diana_limiter::{Explained, Limiter, Outcome, Refusal, Resumed, Unbuildable, Verdict};
use diana_policy::key::Seed;
use diana_policy::port::{Metrics, SharedData};
use diana_policy::time::{Micros, Now};
use diana_policy::{Policy, Scope};
use diana_store::permit::{End, Permit};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use hashbrown::HashMap;

use crate::Arrival;
use crate::host::{Nobody, Still};

/// What metrics are called behind.
pub const NAMESPACE: &str = "replay";

/// Nobody attacks a replay, and the same log is to say the same again.
const SEED: Seed = Seed { k0: 0, k1: 0 };

/// Tells the rules of one worker, or of one gateway, from the same ones of others.
const APART: u64 = 0x9e37_79b9_7f4a_7c15;

/// What became of a request.
#[derive(Debug)]
pub enum Fate {
    /// It went on at once.
    Goes,
    /// A rule held it for so many ticks.
    Held(Option<Rc<str>>, Micros),
    /// It was refused.
    Refused(Box<Refusal>),
}

impl Fate {
    /// Whether the request was refused.
    pub fn is_refused(&self) -> bool {
        matches!(self, Fate::Refused(_))
    }

    /// Whether it was refused since its caller was banned.
    pub fn is_ban(&self) -> bool {
        matches!(self, Fate::Refused(refusal) if matches!(refusal.by.outcome, Outcome::Banned(_)))
    }

    /// The rule that decided about it.
    pub fn rule(&self) -> Option<&str> {
        match self {
            Fate::Goes => None,
            Fate::Held(rule, _) => rule.as_deref(),
            Fate::Refused(refusal) => Some(&refusal.by.rule),
        }
    }
}

/// A request that was decided.
#[derive(Debug)]
pub struct Judged<A> {
    /// The request.
    pub arrival: Rc<A>,
    /// What became of it.
    pub fate: Fate,
    /// What is to be settled when it ends, and when it goes on.
    pub open: Option<(Permit, Micros)>,
}

/// A worker.
pub struct Worker<A> {
    limiter: Limiter,
    /// When it is to be seen to; nothing while there is nothing to see to.
    upkeep: Option<Micros>,
    /// When it is going to be called.
    pub called: Option<Micros>,
    /// Requests that wait for permits which other workers hold.
    waiting: HashMap<u64, Rc<A>>,
}

/// A worker's number among all, and that of its gateway.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Among the workers of all gateways.
    pub worker: usize,
    /// Among the gateways.
    pub gateway: usize,
}

impl<A: Arrival> Worker<A> {
    /// A worker with these rules. All workers have the same `data`, in which each counts with whom its rules say.
    ///
    /// # Errors
    /// If a rule cannot be built.
    pub fn new(
        mut policy: Policy,
        place: Place,
        data: Rc<dyn SharedData>,
    ) -> Result<Worker<A>, Unbuildable> {
        for rule in policy.limits.iter_mut().flat_map(|limit| &mut limit.rules) {
            let apart = match rule.scope {
                Scope::Local => place.worker,
                Scope::Gateway => place.gateway,
                Scope::Global => 0,
            };
            rule.fingerprint = rule.fingerprint.wrapping_add(APART.wrapping_mul(apart as u64));
        }
        let mut tables = Tables::default();
        let stores = Stores::new(NAMESPACE.into(), data, &mut tables);
        let limiter = Limiter::new(policy, SEED, stores, None)?;
        Ok(Worker { limiter, upkeep: None, called: None, waiting: HashMap::new() })
    }

    /// Decides about a request, unless it waits.
    pub fn request(&mut self, arrival: &Rc<A>, now: Now) -> Option<Judged<A>> {
        let verdict = self.limiter.decide(&**arrival, &Still(now));
        if self.upkeep.is_none() {
            self.upkeep = Some(now.mono + self.limiter.tick_interval());
        }
        self.conclude(verdict, arrival, now)
    }

    /// What each rule says of a request, or why it says nothing. It counts as any other, and is not settled.
    pub fn explain(&mut self, arrival: &A, now: Now) -> Vec<Explained> {
        self.limiter.explain(true);
        let (mut verdict, skipped) = self.limiter.decide_explained(arrival, &Still(now));
        self.limiter.explain(false);
        let mut rules = match &mut verdict {
            Verdict::Admit(_, report) => {
                report.as_mut().map(|it| take(&mut it.explained)).unwrap_or_default()
            }
            Verdict::Hold(held) => take(&mut held.report.explained),
            Verdict::Refuse(refusal) => take(&mut refusal.explained),
            Verdict::Ask { .. } => Vec::new(),
        };
        rules.extend(skipped);
        rules
    }

    /// Does what is due. The requests that have waited and are decided.
    pub fn call(&mut self, now: Now) -> Vec<Judged<A>> {
        self.called = None;
        let ready = self.limiter.work(now, &Nobody);
        let judged = ready.iter().filter_map(|resumed| self.resume(resumed, now)).collect();
        if self.upkeep.is_some_and(|due| due <= now.mono) {
            let goes_on = self.limiter.tidy(now);
            while self.limiter.hot_callers().is_some() {}
            self.upkeep = goes_on.then(|| now.mono + self.limiter.tick_interval());
        }
        judged
    }

    fn resume(&mut self, resumed: &Resumed, now: Now) -> Option<Judged<A>> {
        let arrival = self.waiting.remove(&resumed.ticket)?;
        let verdict = self.limiter.decide_again(resumed, &*arrival, &Still(now));
        self.conclude(verdict, &arrival, now)
    }

    fn conclude(&mut self, verdict: Verdict, arrival: &Rc<A>, now: Now) -> Option<Judged<A>> {
        let arrival = arrival.clone();
        match verdict {
            Verdict::Admit(permit, _) => {
                let open = (!permit.is_none()).then_some((permit, now.mono));
                Some(Judged { arrival, fate: Fate::Goes, open })
            }
            Verdict::Hold(held) => {
                let permit = held.permit;
                // No log tells of clients that left before it was their turn, so it has come.
                held.place.finish(End::Served);
                let open = (!permit.is_none()).then_some((permit, held.until));
                let by = held.report.by.map(|by| by.rule);
                Some(Judged { arrival, fate: Fate::Held(by, held.until - now.mono), open })
            }
            Verdict::Refuse(refusal) => {
                Some(Judged { arrival, fate: Fate::Refused(Box::new(refusal)), open: None })
            }
            Verdict::Ask { ticket } => {
                self.waiting.insert(ticket, arrival);
                None
            }
        }
    }

    /// Settles what a request used, which has ended.
    pub fn end(&mut self, mut permit: Permit, arrival: &A, now: Now) {
        self.limiter.hear_response(&mut permit, arrival);
        self.limiter.settle(permit, arrival, now);
        if self.upkeep.is_none() {
            self.upkeep = Some(now.mono + self.limiter.tick_interval());
        }
    }

    /// When it is to be called.
    pub fn next(&self, now: Micros) -> Option<Micros> {
        [self.upkeep, self.limiter.next(now)].into_iter().flatten().min()
    }

    /// Whether requests wait.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Hands on what its rules counted.
    pub fn flush(&mut self, metrics: &dyn Metrics) {
        self.limiter.flush(NAMESPACE, metrics);
    }
}
