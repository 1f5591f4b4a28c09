//! Requests under two rules of a gateway, in workers that run at once: each is charged to both rules or to none, whoever wins the
//! races, and also if a worker ends in between.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_config::Reader;
use diana_limiter::{Limiter, Verdict};
use diana_policy::Policy;
use diana_policy::key::Seed;
use diana_policy::time::{DAY, Now};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::choices::Choices;
use kit::fake::{FakeClock, FakeRequest};

use super::stage::{Between, Stage, Work};

const START: Now = Now { mono: DAY, wall: 20_000 * DAY };

/// A path under both rules, and one under the first alone.
const BOTH: &str = "/all";
const OWN: &str = "/";

const ACCOUNTS: [&str; 2] = ["ann", "bob"];

struct Worker {
    limiter: RefCell<Limiter>,
    /// The requests that passed, by account.
    passed: RefCell<[u64; 2]>,
}

/// Rules for each account, and for all.
pub fn policies() -> Vec<Policy> {
    let of = |algo: &str| {
        let rule = |name: &str, actor: &str| {
            format!("{{name: {name}, actor: {actor}, unit: day, rpu: 1, scope: gateway, {algo}}}")
        };
        let text = format!(
            "namespace: promises\nkeys: 16\nactors: {{account: [{{header: x-account-id}}]}}\n\
             limits: [{{Url: {OWN}, rules: [{}]}}, {{Url: {BOTH}, rules: [{}]}}]",
            rule("own", "account"),
            rule("all", "all")
        );
        Reader::default().policy(text.as_bytes()).expect("a document")
    };
    ["algo: W", "algo: SW, slices: 2", "algo: TB"].map(of).into()
}

/// A world of workers, each with this number of requests.
pub fn world(
    (number, policy): (usize, &Policy),
    workers: usize,
    acts: usize,
    choices: &mut Choices,
) {
    let stage = Rc::new(Stage::new(workers, START, false));
    let workers: Vec<_> = (0..workers).map(|_| Rc::new(Worker::new(policy, &stage))).collect();
    let mut programs = vec![Vec::new(); workers.len()];
    for program in &mut programs {
        (0..acts).for_each(|_| program.push(choices.pick(ACCOUNTS.len())));
    }
    let mut hasher = DefaultHasher::new();
    (number, &programs).hash(&mut hasher);
    let work = |(worker, accounts): (&Rc<Worker>, Vec<usize>)| {
        let worker = worker.clone();
        Box::new(move || accounts.into_iter().for_each(|it| _ = worker.ask(BOTH, it))) as Work
    };
    let works = workers.iter().zip(programs).map(work).collect();
    let between = Between { ends: 1, ..Between::default() };
    let Some(dead) = stage.run(works, between, choices, hasher.finish()) else { return };
    let passed = |account: usize| -> u64 {
        workers.iter().map(|worker| worker.passed.borrow()[account]).sum()
    };
    let all: u64 = (0..ACCOUNTS.len()).map(passed).sum();
    assert!(all <= 1, "{all} requests under a limit of one");
    if !dead.is_empty() {
        return;
    }
    // A worker without earlier questions.
    let new = Worker::new(policy, &stage);
    for (account, name) in ACCOUNTS.iter().enumerate() {
        assert_eq!(new.ask(OWN, account), passed(account) == 0, "{name}");
    }
}

impl Worker {
    fn new(policy: &Policy, stage: &Stage) -> Worker {
        let mut tables = Tables::default();
        let stores = Stores::new("promises".into(), stage.data.clone(), &mut tables);
        let limiter = Limiter::new(policy.clone(), Seed { k0: 7, k1: 9 }, stores, None);
        let limiter = RefCell::new(limiter.expect("rules that mean something"));
        Worker { limiter, passed: RefCell::default() }
    }

    /// Returns true if a request passes.
    fn ask(&self, path: &str, account: usize) -> bool {
        let request = FakeRequest::get(path).header("x-account-id", ACCOUNTS[account]);
        let verdict = self.limiter.borrow_mut().decide(&request, 0, &FakeClock::at(START));
        let passes = matches!(verdict, Verdict::Admit(..));
        self.passed.borrow_mut()[account] += u64::from(passes);
        passes
    }
}
