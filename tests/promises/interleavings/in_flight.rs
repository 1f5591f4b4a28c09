//! Requests in flight: at every instant at most the limit, but for those of a worker that stood still, and in the end each slot
//! is free again.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_policy::Scope;
use diana_policy::settlement::Settlement;
use diana_policy::time::{DAY, Micros, Now, SECOND};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{Reservation, Store};
use kit::choices::Choices;
use kit::store::gateway::key;
use kit::store::{Take, account, ended};

use super::stage::{Between, Stage, Work};
use crate::traces::case::in_flight;

const START: Now = Now { mono: DAY, wall: DAY };

/// The interval of heartbeats, and after how long without any a worker is dead.
const BEAT: Micros = SECOND / 2;
const LIFE: Micros = 3 * SECOND / 2;

/// For how long a worker may stand still.
const STILL: Micros = 9 * SECOND / 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Act {
    Enter,
    /// A request that another rule refuses after it has its slot.
    Cancel,
    /// The latest request ends.
    Leave,
    /// The timer, which sends a heartbeat.
    Beat,
}

/// The first ones alone are tried in larger worlds.
const ACTS: [Act; 4] = [Act::Enter, Act::Leave, Act::Cancel, Act::Beat];
const FEW: usize = 2;

struct Worker {
    stage: Rc<Stage>,
    store: RefCell<Box<dyn Store>>,
    open: RefCell<Vec<Reservation>>,
    /// The number of open requests after each change, of all workers.
    counts: Rc<RefCell<Vec<u64>>>,
    /// Whether requests of a worker did not count for a time.
    was_still: bool,
}

/// A world of workers, each with this number of acts.
pub fn world(workers: usize, acts: usize, choices: &mut Choices) {
    let limit = 1 + choices.pick(2) as u64;
    // One of the workers may end, or time passes, or one has stood still for so long that the others take it for dead.
    let (is_timed, was_still) = [(false, false), (true, false), (false, true)][choices.pick(3)];
    let stage = Rc::new(Stage::new(workers, START, is_timed));
    let counts = Rc::new(RefCell::new(vec![0]));
    let workers: Vec<_> = (0..workers)
        .map(|_| {
            let store = RefCell::new(open(limit, &stage));
            let (stage, counts) = (stage.clone(), counts.clone());
            Rc::new(Worker { stage, store, open: RefCell::default(), counts, was_still })
        })
        .collect();
    if was_still {
        workers[0].enter(limit);
    }
    if choices.pick(2) == 1 {
        workers[1].enter(limit);
    }
    if was_still {
        for _ in 0..2 * LIFE / BEAT {
            stage.wait(BEAT);
            _ = workers[1].store.borrow_mut().checked(account(key(0), 0), 1, stage.now());
            workers[1].act(Act::Beat, limit);
        }
    }
    let mut programs = vec![Vec::new(); workers.len()];
    let kinds = if workers.len() > 2 || acts > 1 { FEW } else { ACTS.len() };
    for program in &mut programs {
        (0..acts).for_each(|_| program.push(ACTS[choices.pick(kinds)]));
    }
    // The last one is a time in which all stand still.
    let ticks = [BEAT, STILL, 2 * LIFE];
    let waits = if is_timed { vec![[ticks[choices.pick(ticks.len())]; 2]] } else { Vec::new() };
    let ends = usize::from(!is_timed && !was_still);
    let mut hasher = DefaultHasher::new();
    (limit, was_still, &programs, &waits).hash(&mut hasher);
    let work = |(worker, acts): (&Rc<Worker>, Vec<Act>)| {
        let worker = worker.clone();
        let work: Work = Box::new(move || acts.into_iter().for_each(|act| worker.act(act, limit)));
        work
    };
    let works = workers.iter().zip(programs).map(work).collect();
    let between = Between { waits: &waits, ends };
    let Some(dead) = stage.run(works, between, choices, hasher.finish()) else { return };
    if was_still {
        workers[0].act(Act::Beat, limit);
    }
    if dead.is_empty() && !is_timed {
        let usage = workers[0].store.borrow_mut().usage(account(key(0), 0), false, stage.now());
        let told = usage.ok().and_then(|usage| usage.in_flight);
        let open = workers[0].counts.borrow().last().map(|count| limit.min(*count));
        assert_eq!(told, open, "slots in use");
    }
    let living = workers.iter().enumerate().filter(|(number, _)| !dead.contains(number));
    let worker = living.clone().next().expect("a worker that lives").1;
    living.for_each(|(_, worker)| while worker.leave() {});
    // The next request finds those without heartbeats, and a second later their slots are free.
    stage.wait(LIFE);
    let mut first = worker.store.borrow_mut().checked(account(key(0), 0), 1, stage.now());
    worker.store.borrow_mut().charge(&mut first, 0);
    worker.store.borrow_mut().cancel(&mut first);
    for _ in 0..SECOND / BEAT {
        stage.wait(BEAT);
        worker.act(Act::Beat, limit);
    }
    worker.counts.replace(vec![0]);
    (0..limit).for_each(|_| assert!(worker.take(limit), "a slot is lost"));
    assert!(!worker.take(limit), "there is a slot too many");
}

fn open(limit: u64, stage: &Stage) -> Box<dyn Store> {
    let mut tables = Tables::default();
    let mut stores = Stores::new("promises".into(), stage.data.clone(), &mut tables);
    stores.open(Scope::Gateway, in_flight(limit))
}

impl Worker {
    fn act(&self, act: Act, limit: u64) {
        match act {
            Act::Enter => self.enter(limit),
            Act::Cancel => {
                let Some(mut request) = self.charge(limit) else { return };
                self.store.borrow_mut().cancel(&mut request);
                self.count(false);
            }
            Act::Leave => _ = self.leave(),
            Act::Beat => _ = self.store.borrow_mut().maintain(self.stage.read_clock()),
        }
    }

    /// Returns true if a request may proceed.
    fn take(&self, limit: u64) -> bool {
        let before = self.open.borrow().len();
        self.enter(limit);
        self.open.borrow().len() > before
    }

    fn enter(&self, limit: u64) {
        let request = self.charge(limit);
        self.open.borrow_mut().extend(request);
    }

    fn charge(&self, limit: u64) -> Option<Reservation> {
        let now = self.stage.read_clock();
        let began = self.counts.borrow().len() - 1;
        let mut store = self.store.borrow_mut();
        let mut request = store.checked(account(key(0), 0), 1, now);
        if !request.is_admitted() || !store.charged(&mut request, 0).is_admitted() {
            let counts = self.counts.borrow();
            let is_full = counts[began..].iter().any(|count| *count >= limit);
            assert!(is_full, "refused while a slot was free");
            return None;
        }
        self.count(true);
        let most = limit + u64::from(self.was_still);
        assert!(self.counts.borrow().last() <= Some(&most), "more than {most} in flight");
        Some(request)
    }

    fn leave(&self) -> bool {
        let Some(request) = self.open.borrow_mut().pop() else { return false };
        let now = self.stage.read_clock();
        let settlement = Settlement { receipt: 0, since: request.now.mono, reserved: 1, used: 0 };
        let charge = ended(request.account, &settlement);
        assert!(self.store.borrow_mut().settle(&charge, now), "too many races");
        self.count(false);
        true
    }

    fn count(&self, is_more: bool) {
        let mut counts = self.counts.borrow_mut();
        let last = *counts.last().expect("a count");
        counts.push(if is_more { last + 1 } else { last - 1 });
    }
}
