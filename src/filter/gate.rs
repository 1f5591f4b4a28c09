//! One configuration in one VM: what its root and its streams have in common.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use proxy_wasm::types::LogLevel;

use super::abi;
use super::clock::VmClock;
use super::fleet::{self, Late, Waiting};
use super::host::{self, HostRequest, HostSharedData};
use super::stats::HostMetrics;
use super::timer::Timer;
use crate::config::policy::Policy;
use crate::engine::{Engine, Resumed};
use crate::fleet::desk::{Desk, Way};
use crate::fleet::link::Link;
use crate::hold::Queue;
use crate::port::Clock;
use crate::store::Stores;
use crate::store::tables::Tables;
use crate::time::{Micros, Now};
use crate::verdict::{Held, Verdict};

/// Requests that go on in one call of the host at most: some hundreds would exhaust its stack.
pub(super) const RELEASES: usize = 32;

thread_local! {
    /// The requests that wait in this VM, whichever configuration holds them: a root that is being
    /// replaced may no longer be called.
    static QUEUE: RefCell<Queue> = RefCell::default();
    static TABLES: RefCell<Tables> = RefCell::default();
    static GATES: Cell<u32> = const { Cell::new(0) };
}

/// See the module.
pub(super) struct Gate {
    /// The host's number of the root.
    root: u32,
    /// Tells the engine from all others of the VM.
    number: u32,
    engine: RefCell<Engine>,
    reads_headers: bool,
    /// Headers that mark requests.
    marks: Vec<Rc<str>>,
    /// How often upkeep is due, in ticks.
    pace: Micros,
    namespace: Rc<str>,
    /// What its stores want to ask Redis, if there is one.
    link: Option<Rc<Link>>,
    waiting: Waiting,
    retired: Cell<bool>,
    /// The root's, with which its gates follow each other.
    timer: Rc<Timer>,
}

impl Drop for Gate {
    /// Streams may have asked it after another gate had followed.
    fn drop(&mut self) {
        self.retire();
    }
}

impl Gate {
    pub(super) fn new(
        root: u32,
        namespace: Rc<str>,
        policy: Policy,
        way: Option<Way>,
        timer: Rc<Timer>,
    ) -> Gate {
        let seed = host::seed(&namespace);
        let link = policy.redis.as_ref().map(|redis| Rc::new(Link::new(redis.on_failure)));
        let desk = way.zip(link.clone()).map(|(way, link)| {
            let random = u128::from_le_bytes(abi::random().unwrap_or_default()) as u64;
            Desk::new(way, namespace.clone(), Rc::new(HostSharedData), link, seed, random)
        });
        let mut engine = TABLES.with_borrow_mut(|tables| {
            let stores = Stores::new(namespace.clone(), Rc::new(HostSharedData), tables);
            Engine::new(policy, seed, stores, desk)
        });
        Gate {
            root,
            number: GATES.replace(GATES.get().wrapping_add(1)),
            reads_headers: engine.reads_headers(),
            marks: std::mem::take(&mut engine.markers),
            pace: engine.pace(),
            engine: RefCell::new(engine),
            link,
            waiting: Waiting::default(),
            retired: Cell::new(false),
            namespace,
            timer,
        }
    }

    /// The request that the host is calling about.
    pub(super) fn request(&self) -> HostRequest {
        HostRequest::new(self.reads_headers)
    }

    /// Headers that nobody but this filter may set.
    pub(super) fn marks(&self) -> &[Rc<str>] {
        &self.marks
    }

    /// Whether the request goes on, and nothing else is to be done about it.
    #[inline]
    pub(super) fn pass(&self, request: &HostRequest) -> bool {
        self.timer.start(self.pace, abi::monotonic);
        let engine = self.engine.try_borrow_mut();
        let passed = engine.is_ok_and(|mut engine| engine.pass(request, &self.clock()));
        self.run_errands();
        passed
    }

    /// Sees to it that what the stores want to ask Redis is asked soon.
    fn run_errands(&self) {
        if self.link.as_ref().is_some_and(|link| link.has_errands()) {
            let now = abi::monotonic();
            self.timer.wake(now, now);
        }
    }

    /// Decides about the request that the host is calling about, and marks it if its caller is hot and it
    /// may go on. Envoy chooses its route after that.
    pub(super) fn decide(&self, request: &HostRequest) -> Verdict {
        self.judge(|engine| {
            let verdict = engine.decide(request, &self.clock());
            if !matches!(verdict, Verdict::Refuse(_)) {
                for (header, rule) in engine.marks() {
                    abi::set_header(abi::REQUEST_HEADERS, header, rule);
                }
            }
            verdict
        })
    }

    /// The same, about one that has waited for an answer that was of no use.
    pub(super) fn decide_again(&self, resumed: &Resumed, request: &HostRequest) -> Verdict {
        self.judge(|engine| engine.decide_again(resumed, request, &self.clock()))
    }

    fn judge(&self, judge: impl FnOnce(&mut Engine) -> Verdict) -> Verdict {
        // The host never calls about one stream while it is in a call about another.
        let Ok(mut engine) = self.engine.try_borrow_mut() else {
            abi::log(LogLevel::Error as u32, "a request was not judged: another one still is");
            return Verdict::PASS;
        };
        let verdict = judge(&mut engine);
        self.run_errands();
        verdict
    }

    /// Lets a request wait for an answer.
    pub(super) fn wait(&self, ticket: u64, stream: u32, late: Rc<Late>) {
        self.waiting.join(ticket, stream, late);
        let now = abi::monotonic();
        self.timer.wake(now, now);
    }

    pub(super) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    pub(super) fn with_engine<T>(&self, act: impl FnOnce(&mut Engine) -> T) -> Option<T> {
        let is_alone = || self.link.as_ref().is_some_and(|link| link.alone.get());
        let was_alone = is_alone();
        let done = self.engine.try_borrow_mut().ok().map(|mut engine| act(&mut engine));
        if is_alone() != was_alone {
            // The metrics tell it, even if no request comes.
            self.timer.start(self.pace, abi::monotonic);
        }
        done
    }

    pub(super) fn now(&self) -> Now {
        self.clock().now()
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.get()
    }

    /// Lets a request wait.
    pub(super) fn hold(&self, stream: u32, held: Held) {
        let next = QUEUE.with_borrow_mut(|queue| {
            queue.join(stream, self.number, held);
            queue.next()
        });
        // Whoever is next may have been held by a root that is not called any more.
        next.into_iter().for_each(|next| self.timer.wake(next, abi::monotonic()));
    }

    /// Forgets a request that was held, if it still waits.
    pub(super) fn leave(&self, stream: u32, late: Option<&Late>) {
        let ticket = late.and_then(|late| self.waiting.leave(late));
        ticket.and_then(|ticket| self.with_engine(|engine| engine.forget(ticket)));
        let seats = QUEUE.with_borrow_mut(|queue| queue.leave(stream));
        if let (Some(seats), Ok(mut engine)) = (seats, self.engine.try_borrow_mut()) {
            engine.leave(&seats, self.clock().now());
        }
    }

    /// Lets go on whose turn has come, and does what has to be done from time to time.
    pub(super) fn tick(&self) {
        let now = self.clock().now();
        let mut left = RELEASES;
        while left > 0
            && let Some(stream) = QUEUE.with_borrow_mut(|queue| queue.release(now.mono))
        {
            abi::resume(stream, self.root);
            left -= 1;
        }
        fleet::tick(self.root, left);
        if self.timer.is_due(now.mono) {
            self.work(now);
        }
        let held = QUEUE.with_borrow(Queue::next);
        let next = [held, fleet::next(now.mono)].into_iter().flatten().min();
        self.timer.rest(next, now.mono);
    }

    fn work(&self, now: Now) {
        let Ok(mut engine) = self.engine.try_borrow_mut() else { return };
        let more = engine.tidy(now);
        engine.flush(&self.namespace, &mut HostMetrics);
        while let Some(line) = engine.hot_line() {
            abi::log(LogLevel::Info as u32, &line);
        }
        if more {
            self.timer.start(self.pace, || now.mono);
        }
    }

    /// Ends this configuration: hardly any request comes any more.
    pub(super) fn retire(&self) {
        self.retired.set(true);
        if let Ok(mut engine) = self.engine.try_borrow_mut() {
            engine.retire(&self.namespace, self.clock().now(), &mut HostMetrics);
        }
    }

    fn clock(&self) -> VmClock<'_> {
        VmClock { namespace: &self.namespace }
    }
}
