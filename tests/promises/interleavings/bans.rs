//! Bans: enough refusals begin exactly one, and every worker enforces it, also beside that of another caller.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_policy::key::Key;
use diana_policy::time::{DAY, Now, SECOND};
use diana_policy::{Ban, Scope};
use diana_store::bans::Bans;
use diana_store::replies::Replies;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::usage::Order;
use kit::bans::BAN;
use kit::choices::Choices;
use kit::store::gateway::key;

use super::stage::{Between, Stage, Work};

const START: Now = Now { mono: DAY, wall: DAY };

/// How long a worker may enforce what it read.
const STALE: u64 = SECOND / 20;

/// The ban by an operator's order, of another caller.
const SHORT: u64 = BAN.period / 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Act {
    /// The rule refuses this number of requests.
    Refuse(u64),
    /// A request asks whether its caller is banned.
    Look,
    /// The timer, which counts gathered refusals.
    Count,
    /// An operator bans another caller for a shorter time.
    Order,
    /// The rule refuses a request of a caller with the same line in the memory of a worker.
    Beside,
}

/// The first ones alone are tried in larger worlds.
const ACTS: [Act; 6] =
    [Act::Refuse(1), Act::Refuse(2), Act::Look, Act::Count, Act::Order, Act::Beside];

const FEW: usize = 4;

/// Lines in the memory of a worker.
const LINES: usize = 8;

struct Worker {
    bans: RefCell<Bans>,
    /// Refusals in it, of the caller and of the other one.
    refused: RefCell<u64>,
    beside: Cell<u64>,
    begun: RefCell<u64>,
    has_ordered: Cell<bool>,
}

/// A world of workers, each with this number of acts.
pub fn world(workers: usize, acts: usize, choices: &mut Choices) {
    let ban = Ban { after: 2 + choices.pick(2) as u64, ..BAN };
    let stage = Rc::new(Stage::new(workers, START, false));
    let workers: Vec<_> = (0..workers)
        .map(|_| {
            let mut tables = Tables::default();
            let mut stores = Stores::new("promises".into(), stage.data.clone(), &mut tables);
            let bans = Bans::new(ban, Scope::Gateway, 7, LINES, None, &mut stores);
            let (refused, beside, begun, has_ordered) = Default::default();
            Rc::new(Worker { bans: RefCell::new(bans), refused, beside, begun, has_ordered })
        })
        .collect();
    // A worker has gathered a refusal before.
    let has_before = acts == 1 && choices.pick(2) == 1;
    if has_before {
        workers[0].act(Act::Refuse(1));
    }
    let mut programs = vec![Vec::new(); workers.len()];
    let kinds = if workers.len() > 2 || acts > 1 { FEW } else { ACTS.len() };
    for program in &mut programs {
        (0..acts).for_each(|_| program.push(ACTS[choices.pick(kinds)]));
    }
    let mut hasher = DefaultHasher::new();
    (ban.after, has_before, &programs).hash(&mut hasher);
    let work = |(worker, acts): (&Rc<Worker>, Vec<Act>)| {
        let worker = worker.clone();
        let work: Work = Box::new(move || acts.into_iter().for_each(|act| worker.act(act)));
        work
    };
    let works = workers.iter().zip(programs).map(work).collect();
    let between = Between { ends: 1, ..Between::default() };
    let Some(dead) = stage.run(works, between, choices, hasher.finish()) else { return };
    let living = || (0..workers.len()).filter(|it| !dead.contains(it)).map(|it| &workers[it]);
    living().for_each(|worker| worker.act(Act::Count));
    let refused: u64 = living().map(|worker| *worker.refused.borrow()).sum();
    let beside: u64 = workers.iter().map(|worker| worker.beside.get()).sum();
    let of_others = u64::from(beside >= ban.after);
    let begun = || living().map(|worker| *worker.begun.borrow()).sum::<u64>();
    if dead.is_empty() {
        assert_eq!(begun(), u64::from(refused >= ban.after) + of_others, "bans that began");
    }
    assert!(begun() <= 1 + of_others, "a ban begins twice");
    // A worker that ends may not have told the others of its ban. The next refusals do.
    if !dead.is_empty() {
        living().take(1).for_each(|worker| worker.act(Act::Refuse(ban.after)));
    }
    let is_banned = refused >= ban.after || !dead.is_empty();
    let has_ordered = living().any(|worker| worker.has_ordered.get());
    // Soon, and when the shorter ban is over.
    for passed in [STALE, SHORT + STALE] {
        for worker in living() {
            let left = |caller| worker.bans.borrow_mut().left(key(caller), START.mono + passed);
            let expected = if is_banned { ban.period - passed } else { 0 };
            assert_eq!(left(0), expected, "after {refused}");
            if has_ordered || dead.is_empty() {
                let expected = if has_ordered { SHORT.saturating_sub(passed) } else { 0 };
                assert_eq!(left(1), expected, "by order");
            }
        }
    }
}

impl Worker {
    fn act(&self, act: Act) {
        let mut bans = self.bans.borrow_mut();
        match act {
            Act::Refuse(refusals) => {
                *self.refused.borrow_mut() += refusals;
                bans.count(key(0), refusals, START.mono);
            }
            Act::Beside => {
                let line = |key: Key| key.hash % LINES as u64;
                let other = (2..).map(key).find(|other| line(*other) == line(key(0)));
                self.beside.set(self.beside.get() + 1);
                bans.count(other.expect("one of some"), 1, START.mono);
            }
            Act::Look => _ = bans.left(key(0), START.mono),
            Act::Count => *self.begun.borrow_mut() += bans.maintain(START.mono),
            Act::Order => {
                let order = Order::Ban(SHORT);
                let left = bans.inquire(key(1), order, Replies::none(), START.mono);
                assert_eq!(left, Ok(SHORT), "a ban by order");
                self.has_ordered.set(true);
            }
        }
    }
}
