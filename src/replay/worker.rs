//! One worker of a gateway, with its host and its open streams.

use std::rc::Rc;

use diana_limiter::{Explained, Verdict};
use diana_policy::port::SharedData;
use diana_policy::time::Micros;
use diana_policy::{Accepted, Policy, Scope};
use diana_worker::{Next, Root, Stream, Worker};
use hashbrown::HashMap;

use crate::Arrival;
use crate::decision::ReplayDecision;
use crate::host::{Counters, ReplayHost, Shadowed};

/// The namespace in the names of counters.
pub(crate) const NAMESPACE: &str = "replay";

/// Separates the fingerprints of rules that are counted apart.
const APART: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of a worker among all workers, and the number of its gateway.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerNumber {
    pub(crate) worker: usize,
    pub(crate) gateway: usize,
}

/// A worker.
pub(crate) struct ReplayWorker<A> {
    host: ReplayHost,
    worker: Worker,
    root: Root,
    /// Streams that have work at their end, by their numbers.
    open: HashMap<u32, (Stream, Rc<A>)>,
    /// The number of the latest stream.
    stream: u32,
    /// Streams of admitted requests, each with the time of its end.
    ends: Vec<(u32, Micros)>,
    /// The tick that the fleet has scheduled.
    pub(crate) scheduled: Option<Micros>,
}

impl<A: Arrival> ReplayWorker<A> {
    /// A worker with these rules. All workers of a fleet have the same `data`, `counters` and
    /// `shadowed`.
    ///
    /// # Errors
    /// If it cannot build the rules.
    pub(crate) fn new(
        policy: Policy,
        number: WorkerNumber,
        data: Rc<dyn SharedData>,
        counters: Rc<Counters>,
        shadowed: Rc<Shadowed>,
    ) -> Result<ReplayWorker<A>, String> {
        let host = ReplayHost::new(data, counters, shadowed);
        let (worker, mut root) = (Worker::default(), Root::default());
        root.apply(NAMESPACE, b"", for_worker(policy, number), &worker, &host)?;
        let (open, ends) = (HashMap::new(), Vec::new());
        Ok(ReplayWorker { host, worker, root, open, stream: 0, ends, scheduled: None })
    }

    /// Decides about a request that arrives.
    pub(crate) fn request(&mut self, arrival: &Rc<A>, now: Micros) -> ReplayDecision {
        let ReplayWorker { host, worker, root, .. } = self;
        let Some(instance) = root.instance() else { return ReplayDecision::Admitted };
        host.set_time(now);
        self.stream = self.stream.wrapping_add(1).max(1);
        let (step, stream) = Stream::begin(instance, self.stream, &**arrival, worker, host);
        if let Some(stream) = stream.filter(Stream::is_open) {
            self.open.insert(self.stream, (stream, arrival.clone()));
            if let Next::Continue = step.next {
                self.ends.push((self.stream, now.saturating_add(arrival.took())));
            }
        }
        host.take_decision()
    }

    /// Decides about a request, and explains the decision by each rule. The request is not settled.
    pub(crate) fn explain(&self, arrival: &A, now: Micros) -> (ReplayDecision, Vec<Explained>) {
        let Some(instance) = self.root.instance() else {
            return (ReplayDecision::Admitted, Vec::new());
        };
        self.host.set_time(now);
        let verdict = instance.decide_explained(arrival, 0, &self.host);
        let rules = match &verdict {
            Verdict::Admit(_, Some(report)) => report.explained.clone(),
            Verdict::Hold(held) => held.report.explained.clone(),
            Verdict::Refuse(refusal) => refusal.explained.clone(),
            Verdict::Admit(_, None) | Verdict::Pending { .. } => Vec::new(),
        };
        (ReplayDecision::new(&verdict, now), rules)
    }

    /// The timer of the root fires.
    pub(crate) fn tick(&mut self, now: Micros) {
        self.host.set_time(now);
        self.host.fire();
        // Without Redis, each of them continues a held request.
        for (stream, _) in self.root.tick(&self.worker, &self.host) {
            if let Some((_, arrival)) = self.open.get(&stream) {
                self.ends.push((stream, now.saturating_add(arrival.took())));
            }
        }
    }

    /// A stream ends: its charges are settled.
    pub(crate) fn end(&mut self, stream: u32, now: Micros) {
        let Some((mut stream, arrival)) = self.open.remove(&stream) else { return };
        self.host.set_time(now);
        // A line of a log has the headers of the response and the end of the stream at once.
        stream.response(&*arrival, &self.worker, &self.host);
        stream.end(&*arrival, &self.worker, &self.host);
    }

    /// Passes the counts of its rules on to the counters.
    pub(crate) fn flush(&self) {
        if let Some(instance) = self.root.instance() {
            instance.flush(&self.host);
        }
    }

    /// The time at which the timer of its root fires.
    pub(crate) fn next_tick(&self) -> Option<Micros> {
        self.host.next_tick()
    }

    /// Takes the streams of requests that were admitted since the last call, each with the time of
    /// its end.
    pub(crate) fn take_ends(&mut self) -> Vec<(u32, Micros)> {
        std::mem::take(&mut self.ends)
    }
}

/// The policy of one worker. All workers of all gateways use the same shared data, where the states
/// of a rule are found by its fingerprint. So the fingerprint contains the number of the gateway or
/// of the worker, unless the rule counts for the whole fleet.
fn for_worker(mut policy: Policy, number: WorkerNumber) -> Policy {
    policy.namespace = None;
    // The rules in the file are replayed, without Redis.
    policy.remote = None;
    policy.redis = None;
    // The records of admitted requests name the callers that a rule in shadow would refuse.
    let has_shadow = policy.shadow || policy.rules().any(|rule| rule.shadow);
    policy.accepted = Accepted { headers: has_shadow, filter_state: false };
    for rule in policy.limits.iter_mut().flat_map(|limit| &mut limit.rules) {
        let apart = match rule.scope {
            Scope::Local => number.worker,
            Scope::Gateway => number.gateway,
            Scope::Global => 0,
        };
        rule.fingerprint = rule.fingerprint.wrapping_add(APART.wrapping_mul(apart as u64));
    }
    policy
}
