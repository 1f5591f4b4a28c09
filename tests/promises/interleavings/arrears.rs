//! Permits that a gateway admits without Redis: Redis charges each of them once, however its questions and replies are lost,
//! late, and overtake each other.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_algorithm::calendar::Windows;
use diana_policy::time::Now;
use diana_policy::words;
use diana_store::shared::Shared;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store as _};
use kit::choices::Choices;
use kit::store::gateway::key;
use kit::store::{Take, account};

use super::stage::{Between, Stage, Work};
use crate::traces::case::Case;

/// What Redis has charged: the start and the total of the latest arrears, all permits, and those since time has passed.
const REDIS: &str = "redis";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Act {
    /// A request, without Redis.
    Take,
    /// The same, and another rule refuses it.
    Cancel,
    /// A question with the arrears, which never arrives.
    Lost,
    /// A question whose reply is lost.
    Unanswered,
    /// A question with a reply.
    Ask,
}

/// The first ones alone are tried in larger worlds.
const ACTS: [Act; 5] = [Act::Take, Act::Ask, Act::Unanswered, Act::Lost, Act::Cancel];
const FEW: usize = 3;

struct Worker {
    stage: Rc<Stage>,
    store: RefCell<Shared>,
    admitted: Cell<u64>,
    cancelled: Cell<u64>,
    /// Admitted since time has passed.
    lately: Cell<u64>,
    start: Now,
}

/// A world of workers, each with this number of acts.
pub fn world(case: &Case, workers: usize, acts: usize, choices: &mut Choices) {
    // Time passes until one of the permits has drained, or all of them have expired.
    let is_timed = choices.pick(2) == 1;
    let stage = Rc::new(Stage::new(workers, case.start, is_timed));
    let workers: Vec<_> = (0..workers).map(|_| Rc::new(Worker::new(case, stage.clone()))).collect();
    let before = [&[][..], &[Act::Take], &[Act::Take, Act::Take, Act::Unanswered]];
    let before = before[choices.pick(before.len())];
    before.iter().for_each(|act| workers[0].act(*act));
    let quota = &case.quotas[0][0];
    let drains = quota.period() / quota.rpu;
    let ends = Windows::of(quota).at(case.start.wall).ends - case.start.wall;
    let edge = if case.oracle.drains() { drains } else { ends };
    let waits = if is_timed { vec![[edge; 2]] } else { Vec::new() };
    let mut programs = vec![Vec::new(); workers.len()];
    let kinds = if workers.len() > 2 || acts > 1 { FEW } else { ACTS.len() };
    for program in &mut programs {
        (0..acts).for_each(|_| program.push(ACTS[choices.pick(kinds)]));
    }
    let mut hasher = DefaultHasher::new();
    (case.specs[0].entry.short, before.len(), &programs, &waits).hash(&mut hasher);
    let work = |(worker, acts): (&Rc<Worker>, Vec<Act>)| {
        let worker = worker.clone();
        let work: Work = Box::new(move || acts.into_iter().for_each(|act| worker.act(act)));
        work
    };
    let works = workers.iter().zip(programs).map(work).collect();
    let between = Between { waits: &waits, ends: usize::from(!is_timed) };
    let Some(dead) = stage.run(works, between, choices, hasher.finish()) else { return };
    let last = (0..workers.len()).find(|it| !dead.contains(it)).expect("a worker that lives");
    workers[last].act(Act::Ask);
    let ([_, _, charged, lately], _) = words::read::<4>(&*stage.data, REDIS);
    let sum = |of: fn(&Worker) -> u64| workers.iter().map(|worker| of(worker)).sum::<u64>();
    let (admitted, cancelled) = (sum(|it| it.admitted.get()), sum(|it| it.cancelled.get()));
    // A charge that comes back after Redis has it stays there. A worker that ends may not return its last one.
    let most = admitted + cancelled + if dead.is_empty() { 0 } else { 1 };
    // Those that have drained or expired are not charged.
    let (least, of) =
        if is_timed { (sum(|it| it.lately.get()), lately) } else { (admitted, charged) };
    assert!(charged <= most && least <= of, "{of} of {least} were charged, {charged} of {most}");
}

impl Worker {
    fn new(case: &Case, stage: Rc<Stage>) -> Worker {
        let mut tables = Tables::default();
        let stores = Stores::new("promises".into(), stage.data.clone(), &mut tables);
        // Where costs are settled, arrears are known later.
        let spec = CounterSpec { settles: false, ..case.specs[0].clone() };
        let store = RefCell::new(stores.shared_opener()(spec));
        let (admitted, cancelled, lately) = Default::default();
        Worker { stage, store, admitted, cancelled, lately, start: case.start }
    }

    fn act(&self, act: Act) {
        let (account, mut store) = (account(key(0), 0), self.store.borrow_mut());
        let now = self.stage.read_clock();
        if let Act::Take | Act::Cancel = act {
            let mut request = store.checked(account, 1, now);
            if !request.is_admitted() || !store.charged(&mut request, 0).is_admitted() {
                return;
            }
            if act == Act::Take {
                self.lately.set(self.lately.get() + u64::from(now.mono > self.start.mono));
                return self.admitted.set(self.admitted.get() + 1);
            }
            self.cancelled.set(self.cancelled.get() + 1);
            return store.cancel(&mut request);
        }
        let Some(arrears) = store.send_arrears(account, now) else { return };
        if act == Act::Lost {
            return;
        }
        // As `arrears` in `decide.lua`, in a step of its own.
        let ([since, total, sum, lately], _) = words::read::<4>(&*self.stage.data, REDIS);
        let new = match arrears.since.cmp(&since) {
            Ordering::Greater => arrears.total,
            Ordering::Equal => arrears.total.saturating_sub(total),
            Ordering::Less => 0,
        };
        if new > 0 {
            let is_late = self.stage.now().mono > self.start.mono;
            let lately = if is_late { lately + new } else { 0 };
            let words = [arrears.since, arrears.total, sum + new, lately].map(u64::to_le_bytes);
            self.stage.data.set(REDIS, words.as_flattened());
        }
        if act == Act::Ask {
            store.confirm_arrears(account, arrears, now);
        }
    }
}
