//! One rule in a store, and everything that happens to it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use diana_policy::Quota;
use diana_policy::Scope;
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::process::Process;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Reservation, Store};
use kit::choices::Choices;
use kit::fake::FakeSharedData;
use kit::oracle::Promise;
use kit::oracle::history::History;
use kit::store::gateway::key;
use kit::store::{Decided, Take, account, ended};

use super::case::{Case, Place};

/// A store of a worker.
pub type Opened = Rc<RefCell<Box<dyn Store>>>;

/// The callers and costs of requests.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    callers: usize,
    costs: &'static [u64],
}

/// Everything, and the smallest that has more than one decision.
pub const FULL: Scale = Scale { callers: 2, costs: &[0, 1, 2, 3] };
pub const NARROW: Scale = Scale { callers: 1, costs: &[0, 1] };

/// The cost of a request that another rule holds.
const HELD: u64 = 2;

/// For how long a worker remembers a refusal at most, by whether permits may return.
pub const REMEMBERED: [Micros; 2] = [SECOND, SECOND / 50];

/// Later than all usage of a trace.
pub const FAR: Now = Now { mono: 1 << 62, wall: 1 << 62 };

thread_local! {
    /// A process lasts until the program ends. Each trace has a rule of its own in it.
    static PROCESS: &'static Process = Box::leak(Box::default());
    static RULES: Cell<u64> = const { Cell::new(0) };
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Ask {
        caller: usize,
        cost: u64,
    },
    /// Another rule holds the request as long as this rule would, and time passes until it leaves.
    Hold {
        caller: usize,
        cost: u64,
    },
    /// A request of this instant does not proceed.
    Cancel {
        request: usize,
    },
    /// A request has ended, and used this.
    Settle {
        request: usize,
        used: u64,
    },
    /// The client of a held request leaves.
    Leave {
        request: usize,
    },
    /// The other configuration applies.
    Change,
    /// The rule is removed while requests are open, the same one of another namespace gets a request, and then it is there again.
    Return,
    /// Callers have the other plan.
    Plan,
    /// The wall clock steps back by a unit.
    Back,
    Wait(Micros),
}

/// A request that was admitted, and has not ended.
struct Open {
    caller: usize,
    worker: usize,
    /// The worker's store of its configuration, which stays until it has ended.
    store: Opened,
    reservation: Reservation,
    receipt: u64,
    reserved: u64,
    leaves: Micros,
    /// The number of its charge.
    charge: usize,
}

/// A refusal that a worker remembers.
#[derive(Clone, Copy)]
struct Remembered {
    cost: u64,
    retry: Micros,
    since: Micros,
    until: Micros,
    plan: usize,
    /// Whether permits of the caller have been returned since.
    is_old: bool,
}

#[derive(Default)]
struct Caller {
    history: History,
    has_asked: bool,
    /// By worker.
    remembered: [Option<Remembered>; 2],
}

pub struct World<'c> {
    case: &'c Case,
    place: Place,
    data: Rc<FakeSharedData>,
    tables: [Tables; 2],
    stores: Vec<Opened>,
    rule: u64,
    configuration: usize,
    plan: usize,
    now: Now,
    callers: [Caller; 2],
    open: Vec<Open>,
    events: usize,
    /// Whether there were only requests and time.
    is_plain: bool,
    /// Whether a charge came back as a whole.
    is_void: bool,
    /// Whether the rule was removed for a time.
    has_returned: bool,
    /// Whether another rule held a request.
    has_held: bool,
}

/// The number of a rule that had no trace.
pub fn new_rule() -> u64 {
    RULES.replace(RULES.get() + 1)
}

/// Opens the store of a worker.
pub fn open(
    place: Place,
    spec: &CounterSpec,
    namespace: &str,
    (data, tables): (&Rc<FakeSharedData>, &mut Tables),
    at: Now,
) -> Opened {
    let mut stores = Stores::new(namespace.into(), data.clone(), tables);
    if place == Place::Process {
        stores.process = Some((PROCESS.with(|process| *process), at));
    }
    let scope = if place == Place::Worker { Scope::Local } else { place.scope() };
    Rc::new(RefCell::new(stores.open(scope, spec.clone())))
}

impl World<'_> {
    pub fn new(case: &Case, place: Place) -> World<'_> {
        let mut world = World {
            case,
            place,
            data: Rc::default(),
            tables: Default::default(),
            stores: Vec::new(),
            rule: new_rule(),
            configuration: 0,
            plan: 0,
            now: case.start,
            callers: Default::default(),
            open: Vec::new(),
            events: 0,
            is_plain: true,
            is_void: false,
            has_returned: false,
            has_held: false,
        };
        // The tables of earlier traces are dropped.
        world.configure(FAR);
        world
    }

    /// Opens the stores of the current configuration. Those of the previous one are used until then.
    fn configure(&mut self, at: Now) {
        self.open_in("promises", at);
    }

    fn open_in(&mut self, namespace: &str, at: Now) {
        let World { case, place, data, tables, configuration, rule, .. } = self;
        let spec = CounterSpec { fingerprint: *rule, ..case.specs[*configuration].clone() };
        let tables = tables.iter_mut().take(place.workers());
        let open = |tables| open(*place, &spec, namespace, (data, tables), at);
        self.stores = tables.map(open).collect();
    }

    fn quota(&self) -> &Quota {
        &self.case.quotas[self.configuration][self.plan]
    }

    /// The next event.
    pub fn step(&mut self, scale: Scale, choices: &mut Choices) {
        let events = self.possible(scale);
        let event = events[choices.pick(events.len())];
        self.is_plain &= matches!(event, Event::Ask { .. } | Event::Hold { .. } | Event::Wait(_));
        match event {
            Event::Ask { caller, cost } => self.ask(caller, cost, false),
            Event::Hold { caller, cost } => self.ask(caller, cost, true),
            Event::Cancel { request } => self.cancel(request),
            Event::Settle { request, used } => self.settle(request, used),
            Event::Leave { request } => self.leave(request),
            Event::Change => {
                let quota = *self.quota();
                for Caller { history, remembered, .. } in &mut self.callers {
                    history.change(self.case.oracle, &quota, self.now);
                    *remembered = [None; 2];
                }
                self.configuration = 1 - self.configuration;
                self.configure(self.now);
            }
            Event::Return => {
                self.has_returned = true;
                self.open.clear();
                self.stores.clear();
                self.open_in("others", self.now);
                _ = self.stores[0].borrow_mut().take(account(key(0), self.plan), 1, self.now);
                self.stores.clear();
                self.configure(self.now);
            }
            Event::Plan => self.plan = 1 - self.plan,
            Event::Back => self.now.wall -= self.quota().period(),
            Event::Wait(ticks) => self.now = self.now.later(ticks),
        }
        self.events += 1;
    }

    /// Everything that can happen now.
    fn possible(&self, scale: Scale) -> Vec<Event> {
        let mut events = Vec::with_capacity(32);
        let known = self.callers.iter().filter(|caller| caller.has_asked).count();
        // Callers are equal, so the first one asks first.
        for caller in 0..scale.callers.min(known + 1) {
            // Only a rule that settles may reserve nothing. Then a permit is charged and returned at once.
            let costs = scale.costs.iter().filter(|cost| **cost > 0 || self.case.settles());
            events.extend(costs.map(|&cost| Event::Ask { caller, cost }));
        }
        let is_held = self.case.oracle.longest_wait(self.quota()) > 0;
        events.extend(is_held.then_some(Event::Hold { caller: 0, cost: HELD }));
        // The first request that can end so, and the latest one.
        let can_end = |number: &usize| {
            self.case.settles() || self.case.leaves && self.open[*number].leaves > self.now.mono
        };
        let mut ends = (0..self.open.len()).filter(can_end);
        for request in [ends.next(), ends.next_back()].into_iter().flatten() {
            let Open { reserved, .. } = self.open[request];
            if self.case.leaves {
                events.push(Event::Leave { request });
            }
            if self.case.settles() {
                let used = [reserved + 1, 0].into_iter().filter(|used| *used != reserved);
                events.extend(used.map(|used| Event::Settle { request, used }));
            }
        }
        let is_of_now = |open: &Open| open.reserved > 0 && open.reservation.now == self.now;
        let mut cancels = (0..self.open.len()).filter(|number| is_of_now(&self.open[*number]));
        let cancels = [cancels.next(), cancels.next_back()];
        events.extend(cancels.into_iter().flatten().map(|request| Event::Cancel { request }));
        // How much of the usage until a held request drains under another rate is no promise.
        if !self.has_held {
            events.extend([Event::Change, Event::Plan]);
        }
        if self.place == Place::Process && known > 0 && !self.has_returned {
            events.push(Event::Return);
        }
        // A charge that came back may have begun a window or not, which the oracle cannot know, and a removed rule forgets windows that
        // are over. On a clock that steps back later, that is a difference.
        if !self.is_void && !self.has_returned {
            events.push(Event::Back);
        }
        let oracle = self.case.oracle;
        let edges =
            |caller: &Caller| caller.history.edges(oracle, self.quota(), self.now, scale.costs);
        let edges = self.callers.iter().take(known.max(1)).flat_map(edges);
        let mut waits: Vec<_> = edges.flat_map(|edge| [edge - 1, edge, edge + 1]).collect();
        waits.sort_unstable();
        waits.dedup();
        events.extend(waits.into_iter().filter(|ticks| *ticks > 0).map(Event::Wait));
        events
    }

    /// A request. If it `is_held`, it leaves as late as the rule permits.
    fn ask(&mut self, caller: usize, reserved: u64, is_held: bool) {
        let cost = reserved.max(1);
        let World { case, place, now, plan, .. } = *self;
        let (oracle, quota) = (case.oracle, *self.quota());
        let worker = self.events % place.workers();
        let opened = self.stores[worker].clone();
        let mut store = opened.borrow_mut();
        let Caller { history, has_asked, remembered } = &mut self.callers[caller];
        *has_asked = true;
        let promise = history.promise(oracle, &quota, now, cost);
        if self.is_plain {
            let known = oracle.promise(&quota, &history.admissions(), now, cost);
            assert!(known == Promise::Either || known == promise, "the oracle contradicts itself");
        }
        let mut reservation = store.checked(account(key(caller as u64), plan), cost, now);
        assert!(!reservation.is_overflow, "there is room for everybody");
        let decision = reservation.decision();
        remembered[worker] = remembered[worker].filter(|it| it.plan == plan);
        let unused = History::default().promise(oracle, &quota, now, cost);
        if let Some(it) = remembered[worker]
            && unused != Promise::Refused
            && cost >= it.cost
            && now.mono < it.until
        {
            let retry = it.retry.saturating_sub(now.mono - it.since).max(1);
            assert_eq!(decision, Decision::retry(retry), "a refusal is forgotten");
            assert!(it.is_old || !matches!(promise, Promise::Admitted { .. }), "refused in error");
            return;
        }
        if let Some(turn) = history.warm_turn(&quota, now) {
            let told = match decision {
                Decision::Admit { wait } => wait,
                Decision::Refuse { retry: Retry::After(ticks) } => {
                    ticks + oracle.longest_wait(&quota)
                }
                Decision::Refuse { .. } => panic!("{decision:?} while a bucket warms up"),
            };
            // The turn of each request is rounded up.
            let most = turn + 1.0 + history.admissions().len() as f64;
            assert!((turn..=most).contains(&(told as f64)), "{told} instead of {turn}");
        }
        let left = history.left(oracle, &quota, now);
        match decision {
            Decision::Admit { wait } => {
                let fits =
                    matches!(promise, Promise::Either) || promise == Promise::Admitted { wait };
                assert!(fits, "admitted after {wait}, but {promise:?}");
                // A request that another rule holds is charged when it leaves.
                let longest = oracle.longest_wait(&quota);
                let is_held = is_held && longest > wait;
                let held = if is_held { longest } else { 0 };
                let (wait, now) = if is_held { (held, now.later(held)) } else { (wait, now) };
                let decision = Decision::Admit { wait };
                assert_eq!(store.charged(&mut reservation, wait), decision, "nobody was faster");
                let charge = history.charge(&quota, now, wait - held, cost);
                (self.now, self.has_held) = (now, self.has_held || is_held);
                if let Some(left) = history.left(oracle, &quota, now).filter(|_| !is_held) {
                    let told = store.remaining(&reservation).expect("a charge was made");
                    assert_eq!(told.permits, left, "permits that remain");
                    let later = |ticks| history.left(oracle, &quota, now.later(ticks));
                    if let Some(ticks) = told.renewal.filter(|ticks| *ticks < 1 << 60) {
                        let (then, before) = (later(ticks), later(ticks - 1));
                        assert!(then.is_none_or(|it| it > left), "{ticks} until {then:?}");
                        assert!(before.is_none_or(|it| it <= left), "{ticks}, but {before:?}");
                    }
                }
                let receipt = reservation.receipt.expect("an admitted request is charged");
                if reserved == 0 {
                    store.cancel(&mut reservation);
                    history.cancel(charge);
                }
                drop(store);
                let (store, leaves) = (opened, now.mono + wait - held);
                let open =
                    Open { caller, worker, store, reservation, receipt, reserved, leaves, charge };
                if reserved == 0 {
                    self.is_void = true;
                    self.returned(&open);
                }
                self.open.push(open);
            }
            Decision::Refuse { retry } => {
                assert!(!matches!(promise, Promise::Admitted { .. }), "refused, but {promise:?}");
                let told = reservation.refused().and_then(|refused| refused.remaining);
                assert!(told.is_none() || left.is_none() || told == left, "{told:?} of {left:?}");
                let promised = |ticks| history.promise(oracle, &quota, now.later(ticks), cost);
                // Only permits that are reserved for open requests are missing.
                let is_soon = history.settled().promise(oracle, &quota, now, cost)
                    == Promise::Admitted { wait: 0 };
                match retry {
                    Retry::After(ticks) if ticks < 1 << 60 => {
                        assert!(
                            !is_soon || !case.specs[0].keeps_used,
                            "only reservations are missing"
                        );
                        assert_ne!(promised(ticks), Promise::Refused, "{ticks} is too early");
                        let is_early = matches!(promised(ticks - 1), Promise::Admitted { .. });
                        assert!(!is_early, "{ticks} is too late");
                        if place.remembers() {
                            let longest = REMEMBERED[usize::from(case.settles())];
                            let (since, until) = (now.mono, now.mono + ticks.min(longest));
                            let is_old = false;
                            remembered[worker] =
                                Some(Remembered { cost, retry: ticks, since, until, plan, is_old });
                        }
                    }
                    // Beyond the range of the clock.
                    Retry::After(_) => {}
                    Retry::Never => {
                        assert!(!matches!(unused, Promise::Admitted { .. }), "never is too late");
                    }
                    Retry::Soon => {
                        assert!(is_soon && case.specs[0].keeps_used, "only usage is missing");
                    }
                }
            }
        }
    }

    fn cancel(&mut self, request: usize) {
        let mut open = self.open.remove(request);
        self.is_void = true;
        open.store.borrow_mut().cancel(&mut open.reservation);
        let history = &mut self.callers[open.caller].history;
        if !self.case.is_queue || history.is_latest(open.charge) {
            history.cancel(open.charge);
        }
        self.returned(&open);
    }

    /// The worker that returned permits has forgotten its refusal, the other one has not.
    fn returned(&mut self, open: &Open) {
        let remembered = &mut self.callers[open.caller].remembered;
        if Rc::ptr_eq(&open.store, &self.stores[open.worker]) {
            remembered[open.worker] = None;
        }
        remembered.iter_mut().flatten().for_each(|it| it.is_old = true);
    }

    fn settle(&mut self, request: usize, used: u64) {
        let open = self.open.remove(request);
        let reserved = open.reserved;
        self.is_void |= used == 0;
        self.end_charge(&open, used);
        let quota = *self.quota();
        let history = &mut self.callers[open.caller].history;
        history.settle(open.charge, used.min(reserved));
        if used > reserved {
            let debt = history.charge(&quota, self.now, 0, used - reserved);
            history.settle(debt, used - reserved);
        }
        self.returned(&open);
    }

    fn leave(&mut self, request: usize) {
        let open = self.open.remove(request);
        self.end_charge(&open, 0);
        let history = &mut self.callers[open.caller].history;
        if history.is_latest(open.charge) {
            history.cancel(open.charge);
        }
        self.returned(&open);
    }

    fn end_charge(&mut self, open: &Open, used: u64) {
        let Open { receipt, reserved, ref reservation, .. } = *open;
        let Reservation { account, now, .. } = *reservation;
        let settlement = Settlement { receipt, since: now.mono, reserved, used };
        let ended = ended(account, &settlement);
        assert!(open.store.borrow_mut().settle(&ended, self.now), "nobody was faster");
    }

    /// Checks all departures of a trace of requests. Returns true if these reach the bound.
    pub fn end(self) -> bool {
        let (oracle, quota) = (self.case.oracle, self.quota());
        if !self.is_plain {
            return false;
        }
        let mut is_reached = false;
        for caller in &self.callers {
            let past = caller.history.admissions();
            is_reached |= oracle.reaches_bound(quota, &past);
            oracle.check_departures(quota, past);
        }
        is_reached
    }
}
