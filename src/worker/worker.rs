//! All instances of a worker, and all that waits in it. A root may not be called for long, or never again while
//! it is being replaced, so whichever root is called does what is due for all of them.

mod go_on;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::clock::Offset;
use super::hold::Queue;
use super::host::Host;
use super::instance::{Instance, Kept};
use super::operator::Attempts;
use super::timer::Timers;
use super::waiting::Late;
use diana_limiter::verdict::Held;
use diana_policy::Policy;
use diana_policy::port::Answer;
use diana_policy::time::Micros;
use diana_redis::client::Endpoint;
use diana_store::permit::End;
use diana_store::remains::Remains;
use diana_store::tables::Tables;

/// Requests that go on in one call of the host at most: some hundreds would exhaust its stack.
const RELEASES: usize = 32;

/// Rules that ended whose shared data waits to be emptied.
const MOST_REMAINS: usize = 1024;

/// A worker of the host: one thread, with one memory of its own.
#[derive(Default)]
pub struct Worker {
    pub(crate) timers: Timers,
    /// Who tried to pass for an operator that asks why.
    pub(crate) attempts: Attempts,
    /// The same of the operator's path.
    pub(crate) admin_attempts: Attempts,
    offset: Rc<Offset>,
    tables: RefCell<Tables>,
    /// The number of the next instance.
    number: Cell<u32>,
    instances: RefCell<Vec<Rc<Instance>>>,
    /// The requests that are held, whichever configuration holds them.
    queue: RefCell<Queue>,
    /// What rules that ended have left in shared data.
    remains: RefCell<Vec<Remains>>,
}

impl Worker {
    /// Builds an instance for the root that the host is calling about. It stays for as long as a root or a stream has
    /// it, or it has something to bring to an end.
    ///
    /// # Errors
    ///
    /// If a rule cannot be built.
    pub(crate) fn build(
        &self,
        namespace: Rc<str>,
        policy: Policy,
        way: Option<Endpoint>,
        host: &dyn Host,
    ) -> Result<Rc<Instance>, String> {
        let number = self.number.replace(self.number.get().wrapping_add(1));
        let built = {
            let tables = &mut self.tables.borrow_mut();
            let kept = Kept { tables, offset: self.offset.clone(), number };
            Rc::new(Instance::new(namespace, policy, way, kept, host)?)
        };
        self.all()
            .iter()
            .filter(|other| other.namespace() == built.namespace())
            .for_each(|other| other.age(host));
        built.tell_limits(true, host);
        self.instances.borrow_mut().push(built.clone());
        Ok(built)
    }

    /// Holds a request until its turn.
    pub(crate) fn hold(&self, stream: u32, instance: &Instance, held: Held) {
        self.queue.borrow_mut().join(stream, instance.number, held);
    }

    /// Forgets a request whose client left, if it still waits. Whether it did.
    pub(crate) fn leave(
        &self,
        stream: u32,
        instance: &Instance,
        late: Option<&Late>,
        host: &dyn Host,
    ) -> bool {
        let ticket = late.and_then(|late| instance.waiting().leave(late));
        let permit = self.queue.borrow_mut().leave(stream);
        let waited = ticket.is_some() || permit.is_some();
        if waited {
            permit.into_iter().for_each(|permit| permit.finish(End::Left));
            let now = instance.now(host);
            instance.with_engine(host, |engine| {
                ticket.into_iter().for_each(|ticket| engine.forget(ticket));
                engine.take_back(now);
            });
            instance.open(host);
        }
        waited
    }

    /// Lets go on whose turn has come, and does what is due, for all instances.
    pub(crate) fn tick(&self, host: &dyn Host) {
        let mut left = self.release(host, RELEASES);
        let sends = self.timers.is_latest(host.caller());
        for instance in self.all() {
            if sends {
                instance.work_for_fleet(host);
            }
            self.go_on(&instance, host, &mut left);
            instance.tell_news(host);
            instance.keep_up(host);
        }
        self.clear_away(host);
        self.sweep(host);
        self.timers.rest(host, |now| self.next(now));
    }

    /// Takes the answer to a call, if one of the instances made it. Whether it did.
    pub(crate) fn answer(&self, token: u32, answer: &Answer<'_>, host: &dyn Host) -> bool {
        let mut left = RELEASES;
        let sends = self.timers.is_latest(host.caller());
        let taken = self.all().iter().any(|instance| {
            let taken = instance.take_answer(token, answer, sends, host);
            if taken {
                self.go_on(instance, host, &mut left);
                instance.tell_news(host);
            }
            taken
        });
        self.sweep(host);
        taken
    }

    /// Sees to it that whatever waits has a clock. To be done at the end of each call of the host that may have made
    /// something wait.
    pub(crate) fn settle(&self, host: &dyn Host) {
        self.timers.settle(host, |now| self.next(now));
    }

    /// The root that the host is calling about has ended, and given up its instance.
    pub(crate) fn end(&self, host: &dyn Host) {
        self.all().iter().for_each(|instance| instance.lose_calls(host));
        self.sweep(host);
        if !self.timers.end(host, |now| self.next(now)) {
            // Nobody is going to be called who could bring anything to an end.
            self.let_go(&|_| true, host);
        }
    }

    /// When something is due the next time.
    fn next(&self, now: Micros) -> Option<Micros> {
        let held = self.queue.borrow().next();
        let instances = self.instances.borrow();
        let instances = instances.iter().filter_map(|instance| instance.next(now)).min();
        [held, instances, self.clearing()].into_iter().flatten().min()
    }

    /// Lets at most `left` requests go on that were held. How many more may go on in this call.
    fn release(&self, host: &dyn Host, mut left: usize) -> usize {
        let now = host.monotonic();
        while left > 0 {
            // The host may call again from within.
            let next = self.queue.borrow_mut().release(now);
            let Some((stream, permit)) = next else { break };
            permit.finish(End::Served);
            host.resume(stream);
            left -= 1;
        }
        left
    }

    /// Lets instances go that nobody has and that have nothing more to do.
    pub(crate) fn sweep(&self, host: &dyn Host) {
        self.hand_on(host);
        self.let_go(&|instance| instance.is_over(host), host);
    }

    /// Lets instances go that nobody has, if they may go.
    fn let_go(&self, may_go: &dyn Fn(&Instance) -> bool, host: &dyn Host) {
        let is_over =
            |instance: &mut Rc<Instance>| Rc::strong_count(instance) == 1 && may_go(instance);
        let over: Vec<Rc<Instance>> = self.instances.borrow_mut().extract_if(.., is_over).collect();
        over.iter().for_each(|instance| instance.tell_limits(false, host));
        if !over.is_empty() {
            // A rule that another one has, too, is as that says.
            self.all().iter().for_each(|instance| instance.tell_limits(true, host));
        }
        for instance in over {
            let in_force: Vec<Remains> =
                self.all().iter().flat_map(|instance| instance.remains(host)).collect();
            let goes_on = |left: &Remains| in_force.iter().any(|rule| rule.is_of(left));
            let left = instance.remains(host).into_iter().filter(|left| !goes_on(left));
            let mut remains = self.remains.borrow_mut();
            for left in left.filter_map(Remains::if_there) {
                remains.retain(|other| !other.is_of(&left));
                remains.push(left);
            }
            // Should rules come and go faster than what they leave runs out, the oldest stay as they are.
            let more = remains.len().saturating_sub(MOST_REMAINS);
            remains.drain(..more);
        }
    }

    /// Has what is to be settled by instances that nobody has settled by the latest that can, so that they need not stay for
    /// as long as Redis is away.
    fn hand_on(&self, host: &dyn Host) {
        let all = self.all();
        let mut rest = all.as_slice();
        while let [old, later @ ..] = rest {
            rest = later;
            // One more is held here.
            if Rc::strong_count(old) == 2 {
                let mut later = later.iter().rev().filter(|it| it.namespace() == old.namespace());
                later.any(|heir| heir.inherit(old, host));
            }
        }
    }

    /// When the next of the rules that ended may be emptied.
    fn clearing(&self) -> Option<Micros> {
        self.remains.borrow().iter().map(Remains::due).min()
    }

    /// Empties what rules left that ended, if it is time.
    fn clear_away(&self, host: &dyn Host) {
        let Some(due) = self.clearing() else { return };
        let Some(instance) = self.all().pop().filter(|_| due <= host.monotonic()) else { return };
        let now = instance.now(host);
        self.remains.borrow_mut().retain_mut(|left| left.work(now));
    }

    fn all(&self) -> Vec<Rc<Instance>> {
        self.instances.borrow().clone()
    }
}
