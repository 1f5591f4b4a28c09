//! Requests under two rules: each is admitted if both admit it, at the first instant that is free in both, and then it is charged
//! to both; otherwise to none.

use diana_config::Reader;
use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::time::{DAY, Micros, Now};
use diana_policy::{Policy, Quota};
use diana_store::permit::End;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::choices::Choices;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::oracle::history::History;
use kit::oracle::{Oracle, Promise, oracle};
use std::rc::Rc;

const START: Now = Now { mono: DAY, wall: 20_000 * DAY };

const CALLERS: usize = 2;

/// Two rules, the first for each account, the second for all.
pub struct Pair {
    policy: Policy,
}

/// A rule, and the usage of those that it counts apart.
struct Book {
    oracle: &'static Oracle,
    quota: Quota,
    usage: Vec<History>,
}

pub fn pairs() -> Vec<Pair> {
    let bucket = "unit: second, rpu: 2, burst: 1, algo: TB, max_delay: 5s, max_queue: 10";
    let slots = "unit: second, rpu: 1, algo: LB, max_delay: 2s";
    let of = |[own, all]: [&str; 2]| {
        let scopes = ["local", "gateway"].into_iter();
        let pair = |scope| Pair { policy: policy(own, all, scope) };
        scopes.map(pair).collect::<Vec<_>>()
    };
    let pairs = [
        ["unit: day, rpu: 1, algo: W", "unit: day, rpu: 2, algo: W"],
        ["unit: minute, rpu: 2, algo: SW, slices: 2", "unit: second, rpu: 2, algo: TB"],
        ["unit: second, rpu: 2, algo: TB", "unit: day, rpu: 3, algo: W, cost: 2"],
        [slots, bucket],
        [bucket, "unit: second, rpu: 3, algo: LB, max_queue: 2"],
        [slots, "unit: minute, rpu: 2, algo: W"],
    ];
    pairs.into_iter().flat_map(of).collect()
}

fn policy(own: &str, all: &str, scope: &str) -> Policy {
    let text = format!(
        "namespace: promises\nkeys: 16\nactors: {{account: [{{header: x-account-id}}]}}\n\
         limits: [{{Url: /, rules: [{{name: own, actor: account, scope: {scope}, {own}}}, \
         {{name: all, actor: all, scope: {scope}, {all}}}]}}]"
    );
    Reader::default().policy(text.as_bytes()).expect("a document")
}

/// A trace with this number of events.
pub fn world(pair: &Pair, events: usize, choices: &mut Choices) {
    let (data, mut tables) = (Rc::<FakeSharedData>::default(), Tables::default());
    let stores = Stores::new("promises".into(), data, &mut tables);
    let limiter = Limiter::new(pair.policy.clone(), Seed { k0: 7, k1: 9 }, stores, None);
    let mut limiter = limiter.expect("rules that mean something");
    let rules = &pair.policy.limits[0].rules;
    let book = |(number, rule): (usize, &diana_policy::Rule)| Book {
        oracle: oracle(rule.algo),
        quota: rule.quota,
        usage: vec![History::default(); if number == 0 { CALLERS } else { 1 }],
    };
    let mut books: Vec<Book> = rules.iter().enumerate().map(book).collect();
    let clock = FakeClock::at(START);
    let mut known = 0;
    for _ in 0..events {
        let now = clock.0.get();
        let edges = books.iter().flat_map(|book| book.edges(now));
        let mut waits: Vec<_> = edges.flat_map(|edge| [edge - 1, edge]).collect();
        waits.retain(|ticks| *ticks > 0);
        waits.sort_unstable();
        waits.dedup();
        // Callers are equal, so the first one asks first.
        let callers = CALLERS.min(known + 1);
        match choices.pick(callers + waits.len()) {
            caller if caller < callers => {
                known = known.max(caller + 1);
                ask(&mut limiter, &mut books, &clock, caller);
            }
            wait => clock.0.set(now.later(waits[wait - callers])),
        }
    }
}

/// A request. A held one leaves before anything else happens.
fn ask(limiter: &mut Limiter, books: &mut [Book], clock: &FakeClock, caller: usize) {
    let now = clock.0.get();
    let turns: Option<Vec<Micros>> = books.iter().map(|book| book.turn(caller, now)).collect();
    let leaves = turns.as_ref().and_then(|turns| turns.iter().copied().max());
    let leaves = leaves.filter(|leaves| books.iter().all(|book| book.holds_for(*leaves)));
    let request = FakeRequest::get("/").header("x-account-id", format!("account-{caller}"));
    let waits = match limiter.decide(&request, 0, clock) {
        Verdict::Admit(..) => Some(0),
        Verdict::Hold(held) => {
            held.position.finish(End::Served);
            Some(held.until - now.mono)
        }
        Verdict::Refuse(_) => None,
        Verdict::Pending { .. } => panic!("nothing is asked"),
    };
    assert_eq!(waits, leaves, "by the turns {turns:?}");
    let (Some(leaves), Some(turns)) = (leaves, turns) else { return };
    for (book, turn) in books.iter_mut().zip(turns) {
        book.charge(caller, now, turn, leaves);
    }
    clock.0.set(now.later(leaves));
}

impl Book {
    fn of(&self, caller: usize) -> usize {
        caller % self.usage.len()
    }

    /// When a request would leave under this rule alone. `None` if it is refused.
    fn turn(&self, caller: usize, now: Now) -> Option<Micros> {
        let Book { oracle, quota, .. } = self;
        match self.usage[self.of(caller)].promise(oracle, quota, now, quota.cost) {
            Promise::Admitted { wait } => Some(wait),
            Promise::Refused => None,
            Promise::Either => panic!("no rule changes"),
        }
    }

    /// Whether it can hold a request for this time, or has none to hold.
    fn holds_for(&self, leaves: Micros) -> bool {
        let longest = self.oracle.longest_wait(&self.quota);
        longest == 0 || leaves <= longest
    }

    /// A rule that holds requests counts one when it leaves.
    fn charge(&mut self, caller: usize, now: Now, turn: Micros, leaves: Micros) {
        let is_later = leaves > turn && self.oracle.longest_wait(&self.quota) > 0;
        let (at, wait) = if is_later { (now.later(leaves), 0) } else { (now, turn) };
        let (number, quota) = (self.of(caller), self.quota);
        self.usage[number].charge(&quota, at, wait, quota.cost);
    }

    fn edges(&self, now: Now) -> impl Iterator<Item = Micros> {
        let Book { oracle, quota, usage } = self;
        usage.iter().flat_map(move |it| it.edges(oracle, quota, now, &[quota.cost]))
    }
}
