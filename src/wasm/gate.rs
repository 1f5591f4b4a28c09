//! One configuration in one VM: what its root and its streams have in common.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use proxy_wasm::types::LogLevel;

use super::clock::VmClock;
use super::fleet::{Late, Waiting};
use super::host::{self, HostRequest, HostSharedData};
use super::stats::HostMetrics;
use super::{abi, gates};
use diana_core::engine::{Engine, Resumed};
use diana_core::fleet::desk::{Desk, Way};
use diana_core::fleet::link::Link;
use diana_core::policy::Policy;
use diana_core::port::{Clock, SharedData};
use diana_core::store::Stores;
use diana_core::store::remains::Remains;
use diana_core::store::tables::Tables;
use diana_core::time::{Micros, Now, SECOND};
use diana_core::verdict::{Held, Verdict};

thread_local! {
    static TABLES: RefCell<Tables> = RefCell::default();
    static NUMBERS: Cell<u32> = const { Cell::new(0) };
}

/// How long no request may have come before a gate is closed that may have been replaced: a listener may
/// drain for many minutes. What a worker knows without asking is older than any use by then.
const QUIET: Micros = 2 * SECOND;

/// An engine and what waits for it, with their way to the host.
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
    /// When upkeep is due; nothing while there is nothing to keep up.
    upkeep: Cell<Option<Micros>>,
    /// Whether it has handed in what it held, since it last judged.
    closed: Cell<bool>,
    /// Whether another one of its namespace came later.
    is_old: Cell<bool>,
    /// Whether it has judged since it was last kept up, and when it was found that it had.
    busy: Cell<bool>,
    used: Cell<Micros>,
}

impl Gate {
    pub(super) fn new(
        root: u32,
        namespace: Rc<str>,
        policy: Policy,
        way: Option<Way>,
    ) -> Result<Gate, String> {
        let seed = host::seed(&namespace);
        let link = policy.redis.as_ref().map(|redis| Rc::new(Link::new(redis.on_failure)));
        let desk = way.zip(link.clone()).map(|(way, link)| {
            let random = u128::from_le_bytes(abi::random().unwrap_or_default()) as u64;
            Desk::new(way, namespace.clone(), Rc::new(HostSharedData), link, seed, random)
        });
        let engine = TABLES.with_borrow_mut(|tables| {
            let stores = Stores::new(namespace.clone(), Rc::new(HostSharedData), tables);
            Engine::new(policy, seed, stores, desk)
        });
        let mut engine = engine.map_err(|unbuildable| unbuildable.to_string())?;
        Ok(Gate {
            root,
            number: NUMBERS.replace(NUMBERS.get().wrapping_add(1)),
            reads_headers: engine.reads_headers(),
            marks: std::mem::take(&mut engine.markers),
            pace: engine.pace(),
            engine: RefCell::new(engine),
            link,
            waiting: Waiting::default(),
            upkeep: Cell::new(None),
            closed: Cell::new(false),
            is_old: Cell::new(false),
            busy: Cell::new(false),
            used: Cell::new(0),
            namespace,
        })
    }

    /// The request that the host is calling about.
    pub(super) fn request(&self) -> HostRequest {
        HostRequest::new(self.reads_headers)
    }

    /// Headers that nobody but this filter may set.
    pub(super) fn marks(&self) -> &[Rc<str>] {
        &self.marks
    }

    /// Whether there is something to do for the fleet, of which its clock may not know yet.
    pub(super) fn is_pressed(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.has_errands() || link.alone.get())
    }

    /// Sees to it that whatever waits has a clock. To be done at the end of each call about one of its
    /// streams that may have made something wait.
    pub(super) fn settle(&self) {
        gates::settle(self.root);
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
        judge(&mut engine)
    }

    /// Lets a request wait for an answer.
    pub(super) fn wait(&self, ticket: u64, stream: u32, late: Rc<Late>) {
        self.waiting.join(ticket, stream, late);
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
            self.begin_upkeep();
        }
        done
    }

    pub(super) fn now(&self) -> Now {
        self.clock().now()
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Lets a request wait.
    pub(super) fn hold(&self, stream: u32, held: Held) {
        gates::hold(stream, self.number, held);
    }

    /// Forgets a request that was held, if it still waits.
    pub(super) fn leave(&self, stream: u32, late: Option<&Late>) {
        let ticket = late.and_then(|late| self.waiting.leave(late));
        ticket.and_then(|ticket| self.with_engine(|engine| engine.forget(ticket)));
        if let (Some(seats), Ok(mut engine)) = (gates::leave(stream), self.engine.try_borrow_mut())
        {
            engine.leave(&seats, self.clock().now());
        }
        self.settle();
    }

    /// When there is something to do the next time.
    pub(super) fn next(&self, now: Micros) -> Option<Micros> {
        if self.waiting.has_answers() {
            return Some(now);
        }
        let engine = self.engine.try_borrow().ok().and_then(|engine| engine.next(now));
        [engine, self.upkeep.get()].into_iter().flatten().min()
    }

    /// It judges, and has to be kept up from now on. Whether that is new.
    #[inline]
    pub(super) fn open(&self) -> bool {
        self.closed.set(false);
        self.busy.set(true);
        self.upkeep.get().is_none() && self.begin_upkeep()
    }

    /// Sees to it that upkeep is due, unless everything has been handed in. Whether that is new.
    pub(super) fn begin_upkeep(&self) -> bool {
        let is_new = self.upkeep.get().is_none() && !self.closed.get();
        if is_new {
            self.upkeep.set(Some(abi::monotonic().saturating_add(self.pace)));
        }
        is_new
    }

    /// Does what has to be done from time to time, if it is due.
    pub(super) fn keep_up(&self) {
        let Some(due) = self.upkeep.get() else { return };
        let now = self.now();
        if now.mono < due {
            return;
        }
        if self.busy.replace(false) {
            self.used.set(now.mono);
        }
        let Ok(mut engine) = self.engine.try_borrow_mut() else { return };
        let more = engine.tidy(now);
        engine.flush(&self.namespace, &mut HostMetrics);
        while let Some(line) = engine.hot_line() {
            abi::log(LogLevel::Info as u32, &line);
        }
        drop(engine);
        let quiet_at = self.used.get().saturating_add(QUIET);
        if self.is_old.get() && !more && now.mono >= quiet_at && self.waiting.is_empty() {
            return self.close();
        }
        let goes_on = more || self.is_old.get();
        self.upkeep.set(goes_on.then(|| now.mono.saturating_add(self.pace)));
    }

    /// Another one of its namespace has come: it may be that one that gets the requests from now on.
    pub(super) fn age(&self) {
        self.is_old.set(true);
        self.begin_upkeep();
    }

    /// Hands in what it holds and what it counted: hardly any request comes any more.
    pub(super) fn close(&self) {
        if let Ok(mut engine) = self.engine.try_borrow_mut() {
            engine.retire(&self.namespace, self.now(), &mut HostMetrics);
            self.upkeep.set(None);
            self.closed.set(true);
        }
        // It waits for nothing that a Redis would be good for which is away.
        self.link.iter().for_each(|link| link.in_use.set(false));
    }

    /// What its rules have in shared data.
    pub(super) fn remains(&self) -> Vec<Remains> {
        let data: Rc<dyn SharedData> = Rc::new(HostSharedData);
        let remains = |engine: &Engine| engine.remains(&self.namespace, &data, abi::monotonic());
        self.engine.try_borrow().map(|engine| remains(&engine)).unwrap_or_default()
    }

    /// Whether a gate that nobody has any more has brought everything to an end.
    pub(super) fn is_over(&self) -> bool {
        if !self.closed.get() {
            self.close();
        }
        self.link.iter().for_each(|link| link.in_use.set(false));
        self.next(Micros::MAX).is_none()
    }

    fn clock(&self) -> VmClock<'_> {
        VmClock { namespace: &self.namespace }
    }
}
