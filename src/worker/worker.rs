//! The instances of a worker and all its waiting work. A root may have no calls for long, or none
//! any more while it is being replaced, so any called root does the work of all.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::clock::ClockOffset;
use super::hold::Queue;
use super::host::Host;
use super::instance::{Instance, WorkerData};
use super::operator::Attempts;
use super::redis::RedisAccess;
use super::state::StreamState;
use super::step::{Step, Steps};
use super::timer::Timers;
use diana_limiter::Held;
use diana_policy::Policy;
use diana_policy::port::Answer;
use diana_policy::time::Micros;
use diana_store::permit::End;
use diana_store::reclaimer::SlotReclaimer;
use diana_store::tables::Tables;

/// Maximum number of requests that are resumed in one call of the host. Some hundreds would exhaust
/// its stack.
pub(crate) const RELEASES: usize = 32;

/// Maximum number of removed rules with shared data to be cleared.
const MOST_RECLAIMERS: usize = 1024;

/// A worker of the host: one thread with its memory.
#[derive(Default)]
pub struct Worker {
    pub(crate) timers: Timers,
    /// Wrong tokens for explanations.
    pub(crate) attempts: Attempts,
    /// Wrong tokens for the operator's endpoint.
    pub(crate) admin_attempts: Attempts,
    offset: Rc<ClockOffset>,
    tables: RefCell<Tables>,
    /// The number of the next instance.
    number: Cell<u32>,
    instances: RefCell<Vec<Rc<Instance>>>,
    /// The streams with waiting requests, by the host's numbers: the request's number in the
    /// limiter if it waits for Redis, and the stream's state.
    waiting: RefCell<BTreeMap<u32, (Option<u64>, StreamState)>>,
    /// The held requests of all instances.
    queue: RefCell<Queue>,
    /// The shared data of removed rules, to be cleared.
    reclaimers: RefCell<Vec<SlotReclaimer>>,
}

impl Worker {
    /// Builds an instance for the root of the host's current call. It exists until no root or
    /// stream has a reference to it and it has no work left.
    ///
    /// # Errors
    ///
    /// A rule cannot be built.
    pub(crate) fn build(
        &self,
        namespace: Rc<str>,
        policy: Policy,
        redis: Option<RedisAccess>,
        host: &dyn Host,
    ) -> Result<Rc<Instance>, String> {
        let number = self.number.replace(self.number.get().wrapping_add(1));
        let built = {
            let tables = &mut self.tables.borrow_mut();
            let data = WorkerData { tables, offset: self.offset.clone(), number };
            Rc::new(Instance::new(namespace, policy, redis, data, host)?)
        };
        let mut replaced = self.all();
        replaced.retain(|other| other.namespace() == built.namespace());
        replaced.iter().for_each(|other| other.mark_replaced(host));
        if built.is_disabled() {
            let numbers: Vec<u32> = replaced.iter().map(|other| other.number).collect();
            self.queue.borrow_mut().free(&numbers);
        }
        built.report_limits(true, host);
        self.instances.borrow_mut().push(built.clone());
        Ok(built)
    }

    /// Holds a request until its turn.
    pub(crate) fn hold(&self, stream: u32, instance: &Instance, held: Held) {
        self.queue.borrow_mut().join(stream, instance.number, held);
    }

    /// Stores the state of a stream while its request waits.
    pub(crate) fn store_state(&self, stream: u32, pending: Option<u64>, state: StreamState) {
        self.waiting.borrow_mut().insert(stream, (pending, state));
    }

    /// Takes the state of a stream after its request has waited.
    pub(crate) fn take_state(&self, stream: u32) -> StreamState {
        self.waiting.borrow_mut().remove(&stream).map(|(_, state)| state).unwrap_or_default()
    }

    /// Removes a request after its client has left. Returns true if it still waited for its turn or
    /// for Redis.
    pub(crate) fn leave(&self, stream: u32, instance: &Instance, host: &dyn Host) -> bool {
        let pending = self.waiting.borrow().get(&stream).and_then(|(pending, _)| *pending);
        let cancel = |id| instance.with_limiter(host, |limiter| limiter.cancel(id));
        let is_cancelled = pending.and_then(cancel) == Some(true);
        let permit = self.queue.borrow_mut().leave(stream);
        let waited = is_cancelled || permit.is_some();
        if waited {
            if let Some(permit) = permit {
                permit.finish(End::Left);
            }
            let now = instance.now(host);
            instance.with_limiter(host, |limiter| limiter.return_charges(now));
            instance.record_activity(host);
        }
        waited
    }

    /// Resumes held requests at their turn and requests with a reply, and does the work of all
    /// instances that is due.
    pub(crate) fn tick(&self, host: &dyn Host) -> Steps {
        let mut steps = self.release(host);
        let may_send = self.timers.is_latest(host.caller());
        for instance in self.all() {
            if may_send {
                let now = instance.now(host);
                instance.with_redis(now, host, |redis| redis.work(now, host));
            }
            self.resume_ready(&instance, host, &mut steps);
            instance.log_fleet(host);
            instance.maintain(host);
        }
        self.clear_removed_rules(host);
        self.sweep(host);
        self.timers.reset_period(host, |now| self.next(now));
        steps
    }

    /// Processes the reply to a call. Returns `None` if none of the instances made it.
    pub(crate) fn on_reply(
        &self,
        token: u32,
        answer: &Answer<'_>,
        host: &dyn Host,
    ) -> Option<Steps> {
        let mut steps = Steps::new();
        let may_send = self.timers.is_latest(host.caller());
        let taken = self.all().iter().any(|instance| {
            let now = instance.now(host);
            let taken = instance.with_redis(now, host, |it| it.on_reply(token, answer, now));
            if taken != Some(true) {
                return false;
            }
            if may_send {
                instance.with_redis(now, host, |redis| redis.work(now, host));
            }
            // The reply may contain permits for a caller without further requests.
            instance.schedule_maintenance(host);
            self.resume_ready(instance, host, &mut steps);
            instance.log_fleet(host);
            true
        });
        self.sweep(host);
        taken.then_some(steps)
    }

    /// Sets a timer for waiting work. Required at the end of each call of the host that may have
    /// made a request wait.
    pub(crate) fn schedule(&self, host: &dyn Host) {
        self.timers.schedule(host, |now| self.next(now));
    }

    /// The root of the host's current call has ended, and no longer has an instance.
    pub(crate) fn end(&self, host: &dyn Host) {
        for instance in self.all() {
            let (now, root) = (instance.now(host), host.caller());
            instance.with_redis(now, host, |redis| redis.on_root_ended(root));
        }
        self.sweep(host);
        if !self.timers.end(host, |now| self.next(now)) {
            // The host will not call again, so no work can be completed.
            self.drop_unused(&|_| true, host);
        }
    }

    /// The time of the next work.
    fn next(&self, now: Micros) -> Option<Micros> {
        let held = self.queue.borrow().next();
        let instances = self.instances.borrow();
        let instances = instances.iter().filter_map(|instance| instance.next(now)).min();
        [held, instances, self.next_clearing()].into_iter().flatten().min()
    }

    /// Resumes held requests at their turn.
    fn release(&self, host: &dyn Host) -> Steps {
        let now = host.monotonic();
        let mut queue = self.queue.borrow_mut();
        let released = std::iter::from_fn(|| queue.release(now)).take(RELEASES);
        let resumed = released.map(|(stream, permit)| {
            permit.finish(End::Served);
            (stream, Step::default())
        });
        resumed.collect()
    }

    /// Hands over open settlements, then drops instances without references and without work.
    pub(crate) fn sweep(&self, host: &dyn Host) {
        self.hand_over_settlements(host);
        self.drop_unused(&|instance| instance.is_finished(host), host);
    }

    /// Drops instances without references for which `may_go` returns true.
    fn drop_unused(&self, may_go: &dyn Fn(&Instance) -> bool, host: &dyn Host) {
        let is_unused =
            |instance: &mut Rc<Instance>| Rc::strong_count(instance) == 1 && may_go(instance);
        let unused: Vec<Rc<Instance>> =
            self.instances.borrow_mut().extract_if(.., is_unused).collect();
        let rest = self.all();
        // A VM ends with its last instance. Its metrics may be those of another VM as well, which
        // takes its place, and go with the last one.
        if !unused.is_empty() && (!rest.is_empty() || host.process().is_some()) {
            unused.iter().for_each(|instance| instance.report_limits(false, host));
            // A remaining instance with the same rule sets its metrics again.
            rest.iter().for_each(|instance| instance.report_limits(true, host));
        }
        for instance in unused {
            let in_force: Vec<SlotReclaimer> =
                self.all().iter().flat_map(|instance| instance.remains(host)).collect();
            let mut removed = instance.remains(host);
            removed.retain(|rule| !in_force.iter().any(|other| other.is_of(rule)));
            let mut reclaimers = self.reclaimers.borrow_mut();
            for rule in removed.into_iter().filter_map(SlotReclaimer::if_present) {
                reclaimers.retain(|other| !other.is_of(&rule));
                reclaimers.push(rule);
            }
            // If rules are removed faster than their slots expire, the oldest slots are not
            // cleared.
            let more = reclaimers.len().saturating_sub(MOST_RECLAIMERS);
            reclaimers.drain(..more);
        }
    }

    /// Hands unsettled charges of retired instances to the newest live instance, so that retired
    /// instances can be dropped while Redis is down.
    fn hand_over_settlements(&self, host: &dyn Host) {
        let all = self.all();
        let mut rest = all.as_slice();
        while let [old, later @ ..] = rest {
            rest = later;
            // `all` holds the second reference.
            if Rc::strong_count(old) == 2 {
                let mut later = later.iter().rev().filter(|it| it.namespace() == old.namespace());
                later.any(|successor| successor.inherit(old, host));
            }
        }
    }

    /// The time at which the next removed rule may be cleared.
    fn next_clearing(&self) -> Option<Micros> {
        self.reclaimers.borrow().iter().map(SlotReclaimer::due).min()
    }

    /// Clears the shared data of removed rules, if that is due.
    fn clear_removed_rules(&self, host: &dyn Host) {
        let Some(due) = self.next_clearing() else { return };
        let Some(instance) = self.all().pop().filter(|_| due <= host.monotonic()) else { return };
        let now = instance.now(host);
        self.reclaimers.borrow_mut().retain_mut(|rule| rule.work(now));
    }

    fn all(&self) -> Vec<Rc<Instance>> {
        self.instances.borrow().clone()
    }
}
