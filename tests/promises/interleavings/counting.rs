//! A rule in shared data. What its workers decide together is what the oracle requires of one after the other, in the order in
//! which they wrote.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_policy::Scope;
use diana_policy::decision::{Decision, Retry};
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::refusal::{Reason, Refused};
use diana_store::reservation::Memo;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::usage::Usage;
use diana_store::{Reservation, Store};
use kit::choices::Choices;
use kit::oracle::history::History;
use kit::oracle::{Admission, Promise};
use kit::store::gateway::key;
use kit::store::{Decided, Take, account, ended};

use super::stage::{Between, Stage};
use crate::traces::case::{Case, Place};
use crate::traces::world::REMEMBERED;

/// What a worker does with the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Act {
    /// A request of this cost.
    Take(u64),
    /// A request that another rule refuses after it was charged.
    Cancel,
    /// The latest request ends, and has used a permit more than it reserved, or none.
    Settle { is_more: bool },
    /// The client of the latest request leaves before its turn.
    Leave,
    /// The other configuration applies.
    Change,
    /// The timer of the worker, which returns leases that have ended.
    Maintain,
    /// A request of another caller, for which a worker would remember a lease in the same place.
    Other,
}

/// What a worker did to the rule by its latest access, in the order of these.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    now: Now,
    configuration: usize,
    pub what: What,
}

#[derive(Debug, Clone, Copy)]
pub enum What {
    /// A charge with this number, of a request that leaves after `wait`, the permits that remain, and whether it was leased.
    Charged {
        number: usize,
        cost: u64,
        wait: Micros,
        left: Option<u64>,
        is_leased: bool,
    },
    Refused {
        cost: u64,
        refused: Refused,
    },
    /// The charge with this number came back.
    Cancelled {
        number: usize,
    },
    /// The request with this charge has used `used`.
    Settled {
        number: usize,
        reserved: u64,
        used: u64,
    },
}

/// How often a commit checks a request again.
const ROUNDS: usize = 16;

/// Refused requests that make a caller busy in a worker.
const BUSY: usize = 20;

/// For how long leased permits are spent, and after how long they do not count any more.
const LIFE: Micros = SECOND / 20;
const EXPIRES: Micros = SECOND;

/// The most that a worker leases here.
const BLOCK: u64 = 2;

/// Callers for which a slot has room: twice as many as it is made for.
const CROWD: u64 = 32;

/// The cost of a request that fits after those before a world only if no worker has leased permits.
const ALL: u64 = 17;

type Opened = Rc<RefCell<Box<dyn Store>>>;

/// A request that has not ended.
struct Open {
    number: usize,
    reservation: Reservation,
    receipt: u64,
    store: Opened,
}

struct Worker {
    number: usize,
    case: Rc<Case>,
    scope: Scope,
    stage: Rc<Stage>,
    tables: RefCell<Tables>,
    store: RefCell<Opened>,
    configuration: Cell<usize>,
    open: RefCell<Vec<Open>>,
    charges: Cell<usize>,
    /// When it last read that a request was refused.
    refused_at: Cell<Micros>,
    done: Rc<RefCell<Vec<Done>>>,
}

/// A world of workers, each with this number of acts. Returns what happened, unless another world came to the same state.
pub fn world(
    case: &Rc<Case>,
    place: Place,
    (workers, acts): (usize, usize),
    choices: &mut Choices,
) -> Option<Rc<RefCell<Vec<Done>>>> {
    // In small worlds time passes, or one of the workers may end.
    let is_small = workers == 2 && acts < 3;
    let is_timed = case.is_crowded || is_small && choices.pick(2) == 1;
    let ends = usize::from(is_small && !is_timed);
    let stage = Rc::new(Stage::new(workers, case.start, is_timed));
    let happened = Rc::<RefCell<Vec<Done>>>::default();
    let workers: Vec<_> = (0..workers)
        .map(|number| Rc::new(Worker::new(number, case.clone(), place, stage.clone(), &happened)))
        .collect();
    if case.is_crowded {
        crowd(case, &workers[0], &stage);
    }
    let is_fresh = choices.pick(2) == 0;
    if !is_fresh || case.is_busy {
        workers.iter().take(2).for_each(|worker| worker.act(Act::Take(1)));
    }
    if case.is_busy {
        workers.iter().for_each(|worker| worker.keep_busy());
        if !is_fresh {
            workers[0].act(Act::Take(1));
            workers[1].act(Act::Take(ALL));
        }
    }
    let all = all_acts(case, (workers.len(), acts), is_timed);
    let mut programs = vec![Vec::new(); workers.len()];
    // Workers are equal, so programs are tried in one order.
    let mut first = 0;
    for program in &mut programs {
        let number = first + choices.pick(all.len().pow(acts as u32) - first);
        first = if is_fresh { number } else { 0 };
        program.extend((0..acts as u32).map(|at| all[number / all.len().pow(at) % all.len()]));
    }
    let (history, _) = check_all(case, &happened.borrow());
    let edge = history.edges(case.oracle, &case.quotas[0][0], stage.now(), &[1])[0];
    let mut edges: Vec<_> = if case.is_crowded {
        vec![[1; 2]]
    } else if case.is_busy {
        let ticks = [edge.min(LIFE) - 1, edge.min(LIFE), EXPIRES, EXPIRES * 3 / 2];
        ticks.map(|ticks| [ticks; 2]).into()
    } else {
        [edge - 1, edge].map(|ticks| [ticks; 2]).into()
    };
    // The wall clock steps forward, over the end of a window.
    edges.extend((case.specs[0].entry.short == "W").then_some([1, edge]));
    let waits = if is_timed { vec![edges[choices.pick(edges.len())]] } else { Vec::new() };
    let mut hasher = DefaultHasher::new();
    (Rc::as_ptr(case), &programs, &waits).hash(&mut hasher);
    let works = workers.iter().zip(programs).map(|(worker, acts)| {
        let worker = worker.clone();
        let work = move || acts.into_iter().for_each(|act| worker.act(act));
        Box::new(work) as Box<dyn FnOnce()>
    });
    let between = Between { waits: &waits, ends };
    let dead = stage.run(works.collect(), between, choices, hasher.finish())?;
    for worker in workers.iter().filter(|worker| !dead.contains(&worker.number)) {
        worker.store.borrow().borrow_mut().close(stage.now());
    }
    let done = happened.borrow();
    let (history, has_gap) =
        if is_timed { (check_bound(case, &done), true) } else { check_all(case, &done) };
    let quota = &case.quotas[0][0];
    let [first, last] = history.edges(case.oracle, quota, stage.now(), &[1]);
    // Then, at the next edge, and just before the last charge ends.
    for (later, is_now) in [(0, true), (first, false), (last - 1, false)] {
        let now = stage.now().later(later);
        let Some(left) = history.left(case.oracle, quota, now) else { continue };
        let told = observe(case, place, &stage, now).remaining;
        // Those of a worker that ends may be lost, and under a clock that was read earlier a charge may drain later.
        let is_lost = (case.is_busy || case.is_crowded) && !dead.is_empty();
        let lost = if is_lost { BLOCK.min(left) } else { 0 };
        let least = if has_gap || !is_now { 0 } else { left - lost };
        assert!((least..=left).contains(&told), "{told} remain instead of {left}: {done:?}");
    }
    if case.is_busy {
        let later = stage.now().later(if dead.is_empty() { 0 } else { EXPIRES });
        let leased = observe(case, place, &stage, later).leased;
        assert_eq!(leased, 0, "a lease is never returned: {done:?}");
    }
    drop(done);
    Some(happened)
}

/// Others fill the slot of the caller until a tick later.
fn crowd(case: &Case, worker: &Worker, stage: &Stage) {
    let (algorithm, now) = (&case.specs[0].algorithm, stage.now());
    let store = worker.store.borrow();
    for other in 1..=CROWD {
        _ = store.borrow_mut().take(account(key(other), 0), 1, now);
    }
    let unused = vec![0; algorithm.properties().words];
    let mut state = unused.clone();
    algorithm.step(&unused, now, 0, 1, &mut state);
    stage.wait(algorithm.expires(&state, now) - now.mono - 1);
}

/// What each of these workers can do: in small worlds everything, in others a charge and what returns it.
fn all_acts(case: &Case, (workers, acts): (usize, usize), is_timed: bool) -> Vec<Act> {
    let mut all = vec![Act::Take(1)];
    if case.is_busy {
        all.extend([Act::Maintain, Act::Other].into_iter().take(if acts == 1 { 2 } else { 1 }));
    }
    if is_timed {
        all.push(Act::Take(2));
        all.extend((case.is_busy && acts == 1).then_some(Act::Take(ALL)));
        return all;
    }
    let is_small = workers == 2 && acts == 1;
    let settles = case.settles();
    all.extend(case.leaves.then_some(Act::Leave));
    all.extend(settles.then_some(Act::Settle { is_more: false }));
    if is_small || acts == 1 || all.len() == 1 {
        all.push(Act::Cancel);
    }
    if !case.is_crowded && (is_small || acts > 1 && !case.is_busy) {
        all.push(Act::Change);
    }
    if is_small {
        all.push(Act::Take(2));
        all.extend(settles.then_some(Act::Settle { is_more: true }));
    }
    all
}

/// Compares what happened at one instant with the oracle. Returns true if a turn passes unused.
fn check_all(case: &Case, done: &[Done]) -> (History, bool) {
    let (mut history, mut charges) = (History::default(), Vec::new());
    // A request keeps the turn of its check, also if one before it came back since.
    let mut has_gap = false;
    let is_kept = done.iter().any(|done| matches!(done.what, What::Cancelled { .. }));
    let find = |charges: &[(usize, usize)], number| {
        charges.iter().find(|(other, _)| *other == number).expect("a charge").1
    };
    for Done { now, configuration, what, .. } in done {
        let quota = &case.quotas[*configuration][0];
        let promise = |history: &History, cost| history.promise(case.oracle, quota, *now, cost);
        match *what {
            What::Charged { number, cost, wait, left, .. } => {
                let promise = promise(&history, cost);
                let fits = match promise {
                    Promise::Admitted { wait: least } => {
                        has_gap |= is_kept && wait > least;
                        wait == least || has_gap
                    }
                    Promise::Refused => false,
                    Promise::Either => true,
                };
                assert!(fits, "admitted after {wait}, but {promise:?}: {done:?}");
                charges.push((number, history.charge(quota, *now, wait, cost)));
                let expected = history.left(case.oracle, quota, *now);
                let is_exact = left == expected || has_gap && left < expected;
                let is_exact = case.is_busy || expected.is_none() || is_exact;
                assert!(is_exact, "{left:?} of {expected:?} permits remain: {done:?}");
            }
            What::Refused { refused, .. } if refused.reason == Reason::Outstanding => {
                assert!(case.is_busy, "no permits are leased: {done:?}");
            }
            // The turn that came back passes unused.
            What::Refused { .. } if has_gap => {}
            What::Refused { cost, refused } => {
                let is_wrong = matches!(promise(&history, cost), Promise::Admitted { .. });
                assert!(!is_wrong, "refused in error: {done:?}");
                if let Retry::After(ticks) = refused.retry {
                    let later = now.later(ticks);
                    let promise = history.promise(case.oracle, quota, later, cost);
                    assert_ne!(promise, Promise::Refused, "{ticks} is too early: {done:?}");
                }
            }
            What::Cancelled { number } => {
                let charge = find(&charges, number);
                if !case.is_queue || history.is_latest(charge) {
                    history.cancel(charge);
                }
            }
            What::Settled { number, reserved, used } => {
                history.settle(find(&charges, number), used.min(reserved));
                if used > reserved {
                    let debt = history.charge(quota, *now, 0, used - reserved);
                    history.settle(debt, used - reserved);
                }
            }
        }
    }
    (history, has_gap)
}

/// Checks requests while time passes. A worker that read its clock before another one wrote is charged after it; leased permits
/// were charged before.
fn check_bound(case: &Case, done: &[Done]) -> History {
    let (oracle, quota) = (case.oracle, &case.quotas[0][0]);
    let (mut past, mut latest) = (Vec::new(), case.start);
    for Done { now, what, .. } in done {
        let What::Charged { cost, wait, is_leased, .. } = *what else { continue };
        let at = if is_leased || now.mono > latest.mono { *now } else { latest };
        latest = if is_leased { latest } else { at };
        past.push(Admission { at, leaves: at.mono.max(now.mono + wait), cost });
    }
    past.sort_by_key(|one| one.at.mono);
    let mut history = History::default();
    for Admission { at, leaves, cost } in &past {
        let promise = history.promise(oracle, quota, *at, *cost);
        assert!(case.is_queue || promise != Promise::Refused, "too much: {done:?}");
        history.charge(quota, *at, leaves - at.mono, *cost);
    }
    oracle.check_departures(quota, past);
    history
}

impl Worker {
    fn new(
        number: usize,
        case: Rc<Case>,
        place: Place,
        stage: Rc<Stage>,
        done: &Rc<RefCell<Vec<Done>>>,
    ) -> Worker {
        let scope = place.scope();
        let mut tables = Tables::default();
        let store = open(&case, 0, scope, &stage, &mut tables);
        Worker {
            number,
            case,
            scope,
            stage,
            tables: RefCell::new(tables),
            store: RefCell::new(store),
            configuration: Cell::default(),
            open: RefCell::default(),
            charges: Cell::default(),
            refused_at: Cell::default(),
            done: done.clone(),
        }
    }

    fn act(&self, act: Act) {
        let now = self.stage.read_clock();
        match act {
            Act::Take(cost) => {
                let request = self.take(cost, now);
                self.open.borrow_mut().extend(request);
            }
            Act::Cancel => {
                let Some(mut open) = self.take(1, now) else { return };
                open.store.borrow_mut().cancel(&mut open.reservation);
                self.done(now, What::Cancelled { number: open.number });
            }
            Act::Settle { is_more } => {
                let Some(open) = self.open.borrow_mut().pop() else { return };
                let reserved = open.reservation.cost;
                let used = if is_more { reserved + 1 } else { 0 };
                self.end(&open, used, now);
                self.done(now, What::Settled { number: open.number, reserved, used });
            }
            Act::Leave => {
                let Some(open) = self.open.borrow_mut().pop() else { return };
                self.end(&open, 0, now);
                self.done(now, What::Cancelled { number: open.number });
            }
            Act::Other => {
                let store = self.store.borrow().clone();
                let lines = self.case.specs[0].keys as u64;
                let is_beside = |it: &Key| it.hash % lines == key(0).hash % lines;
                let other = (1..).map(key).find(is_beside).expect("one of some");
                _ = store.borrow_mut().take(account(other, 0), 1, now);
            }
            Act::Maintain => _ = self.store.borrow().borrow_mut().maintain(now),
            Act::Change => {
                self.configuration.set(1 - self.configuration.get());
                let Worker { case, scope, stage, .. } = self;
                let mut tables = self.tables.borrow_mut();
                let store = open(case, self.configuration.get(), *scope, stage, &mut tables);
                self.store.replace(store).borrow_mut().close(now);
            }
        }
    }

    /// Requests that are refused, until the worker leases permits of the caller.
    fn keep_busy(&self) {
        let cost = self.case.quotas[0][0].rpu;
        for _ in 0..BUSY {
            assert!(self.take(cost, self.stage.now()).is_none(), "others have used a permit");
        }
    }

    fn take(&self, cost: u64, now: Now) -> Option<Open> {
        let store = self.store.borrow().clone();
        let began = self.stage.accesses();
        let check = || store.borrow_mut().checked(account(key(0), 0), cost, now);
        // As a commit does: a charge that fails is checked again.
        let mut reservation = check();
        for _ in 0..ROUNDS {
            let Decision::Admit { wait } = reservation.decision() else { break };
            if store.borrow_mut().charged(&mut reservation, wait) == (Decision::Admit { wait })
                && let Some(receipt) = reservation.receipt
            {
                let number = self.number * 100 + self.charges.get();
                self.charges.set(self.charges.get() + 1);
                let left = store.borrow_mut().remaining(&reservation).map(|it| it.permits);
                let is_leased = reservation.memo == Memo::Lease;
                self.done(now, What::Charged { number, cost, wait, left, is_leased });
                return Some(Open { number, reservation, receipt, store });
            }
            reservation = check();
        }
        let refused = reservation.refused().expect("other workers won every race");
        if self.stage.accesses() > began {
            self.refused_at.set(now.mono);
            self.done(now, What::Refused { cost, refused });
            return None;
        }
        // A refusal that it remembers was right when it read it, and permits return soon.
        let may_end = refused.reason == Reason::Outstanding || self.case.settles();
        let age = now.mono - self.refused_at.get();
        assert!(age < REMEMBERED[usize::from(may_end)], "refused by what was read {age} ticks ago");
        None
    }

    fn end(&self, open: &Open, used: u64, now: Now) {
        let Reservation { account, cost, now: since, .. } = open.reservation;
        let Open { receipt, ref store, .. } = *open;
        let settlement = Settlement { receipt, since: since.mono, reserved: cost, used };
        assert!(store.borrow_mut().settle(&ended(account, &settlement), now), "too many races");
    }

    fn done(&self, now: Now, what: What) {
        let configuration = self.configuration.get();
        self.done.borrow_mut().push(Done { now, configuration, what });
    }
}

/// The usage as a new worker reads it at `now`.
fn observe(case: &Case, place: Place, stage: &Rc<Stage>, now: Now) -> Usage {
    let store = open(case, 0, place.scope(), stage, &mut Tables::default());
    let usage = store.borrow_mut().usage(account(key(0), 0), false, now);
    usage.expect("a caller with a state of its own")
}

fn open(
    case: &Case,
    configuration: usize,
    scope: Scope,
    stage: &Stage,
    tables: &mut Tables,
) -> Opened {
    let mut stores = Stores::new("promises".into(), stage.data.clone(), tables);
    Rc::new(RefCell::new(stores.open(scope, case.specs[configuration].clone())))
}
