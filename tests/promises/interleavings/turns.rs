//! Workers that are threads of one process, with the limiter of the module: their decisions are those that they would make
//! one after the other, in some order of the requests, and none waits for another for ever.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_config::Reader;
use diana_limiter::{Limiter, Verdict};
use diana_policy::Policy;
use diana_policy::headers::Headers;
use diana_policy::key::Seed;
use diana_policy::time::{DAY, Now};
use diana_store::permit::{End, Permit};
use diana_store::process::Process;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::choices::Choices;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};

use super::stage::{Between, Stage, Work};

const START: Now = Now { mono: DAY, wall: 20_000 * DAY };

/// Later than all usage of a world, so that the tables of earlier ones are dropped.
const FAR: Now = Now { mono: 1 << 62, wall: 1 << 62 };

thread_local! {
    static PROCESS: &'static Process = Box::leak(Box::default());
}

/// Rules, and the requests that come: a path, an account, a device and a user.
pub struct Case {
    policy: Policy,
    requests: Vec<[String; 4]>,
    /// The costs with which requests end, under a rule that settles.
    used: &'static [u64],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    Ask(usize),
    /// The earliest request ends, and has used this.
    End(u64),
}

/// The decisions of each worker, as its clients see them.
type Outcomes = Vec<Vec<String>>;

/// The outcomes of programs without interruption, in each order of their acts.
pub type Known = RefCell<HashMap<(usize, Vec<Vec<Act>>), BTreeSet<Outcomes>>>;

struct Worker {
    limiter: RefCell<Limiter>,
    clock: FakeClock,
    permits: RefCell<Vec<Permit>>,
    outcomes: RefCell<Vec<String>>,
}

pub fn cases() -> Vec<Case> {
    let case = |rules: &str, requests: &[[&str; 4]], used| Case {
        policy: policy(&format!("{{Url: /, rules: [{rules}]}}")),
        requests: requests.iter().map(|it| it.map(String::from)).collect(),
        used,
    };
    let one = [["/", "ann", "", ""], ["/", "bob", "", ""]];
    let rule = |rest: &str| format!("{{name: r, actor: account, scope: gateway, {rest}}}");
    let tenant = "{Url: /, rules: [{name: tenant, actor: account, unit: day, rpu: 2, algo: W, scope: gateway}]}, \
                  {Url: /own, rules: [{name: own, actor: device, unit: day, rpu: 1, algo: W, scope: gateway}]}";
    let settled = "cost: {response: {header: x-used}, reserve: 1, max: 2}";
    let crossed = policy(CROSSED);
    let [crossing, opposite, twice, apart] = crossing(&crossed);
    vec![
        case(&rule("unit: day, rpu: 2, algo: W"), &one, &[]),
        case(&rule("unit: minute, rpu: 2, algo: SW"), &one, &[]),
        case(&rule("unit: minute, rpu: 3, algo: TB, cost: 2"), &one[..1], &[]),
        case(&rule("unit: second, rpu: 2, algo: LB, max_queue: 1"), &one[..1], &[]),
        case(&rule(&format!("unit: day, rpu: 2, algo: W, {settled}")), &one[..1], &[0, 2]),
        Case {
            policy: policy(tenant),
            requests: [["/own", "ann", "pad", ""], ["/", "ann", "", ""]]
                .map(|it| it.map(String::from))
                .into(),
            used: &[],
        },
        Case { requests: vec![twice], policy: crossed.clone(), used: &[] },
        Case { requests: vec![apart], policy: crossed.clone(), used: &[] },
        Case { requests: vec![crossing, opposite], policy: crossed, used: &[] },
    ]
}

/// Three rules of one request.
const CROSSED: &str = "{Url: /, rules: [\
    {name: a, actor: account, unit: day, rpu: 1, algo: W, scope: gateway}, \
    {name: b, actor: device, unit: day, rpu: 1, algo: W, scope: gateway}, \
    {name: c, actor: user, unit: day, rpu: 1, algo: W, scope: gateway}]}";

/// Two requests that take the same two turns in opposite orders, one that needs the same turn twice, and one that needs another one
/// between.
fn crossing(policy: &Policy) -> [[String; 4]; 4] {
    let turn = |account: &str, device: &str, user: &str| {
        let taken = Rc::new(Cell::new(None));
        let first = taken.clone();
        let worker = Worker::new(policy);
        diana_store::explored::set(Some(Rc::new(move |lock, _| {
            first.set(first.get().or(Some(lock)));
        })));
        worker.ask(&["/", account, device, user].map(String::from));
        diana_store::explored::set(None);
        taken.get().expect("a turn")
    };
    let names: Vec<String> = (0..100).map(|number| format!("name-{number}")).collect();
    let turns: Vec<_> = names.iter().map(|name| (turn(name, "", ""), turn("", name, ""))).collect();
    let find = |is_it: &dyn Fn(usize, usize) -> bool| {
        let pairs = (0..names.len()).flat_map(|one| (0..names.len()).map(move |two| (one, two)));
        pairs.into_iter().find(|(account, device)| is_it(*account, *device)).expect("such turns")
    };
    let taken = |account: usize, device: usize| [turns[account].0, turns[device].1];
    let one = find(&|account, device| {
        let [first, second] = taken(account, device);
        let (accounts, devices) = (|| turns.iter().map(|it| it.0), || turns.iter().map(|it| it.1));
        first != second && accounts().any(|it| it == second) && devices().any(|it| it == first)
    });
    let [first, second] = taken(one.0, one.1);
    let other = find(&|account, device| taken(account, device) == [second, first]);
    let twice = find(&|account, device| turns[account].0 == turns[device].1);
    let users: Vec<_> = names.iter().map(|name| turn("", "", name)).collect();
    let apart = find(&|account, user| turns[account].0 == users[user]);
    let between = (0..names.len()).find(|device| turns[*device].1 != users[apart.1]);
    let between = between.expect("another turn");
    let request = |account: usize, device: usize, user: &str| {
        ["/", &names[account], &names[device], user].map(String::from)
    };
    let [one, other, twice] =
        [one, other, twice].map(|(account, device)| request(account, device, ""));
    [one, other, twice, request(apart.0, between, &names[apart.1])]
}

fn policy(limits: &str) -> Policy {
    let text = format!(
        "namespace: promises\nkeys: 16\naccepted: {{headers: true}}\n\
         actors: {{account: [{{header: x-account-id}}], device: [{{header: x-device-id}}], user: [{{header: x-user-id}}]}}\nlimits: [{limits}]"
    );
    Reader::default().policy(text.as_bytes()).expect("a document")
}

impl Worker {
    fn new(policy: &Policy) -> Worker {
        let mut tables = Tables::default();
        let data = Rc::<FakeSharedData>::default();
        let mut stores = Stores::new("promises".into(), data, &mut tables);
        stores.process = Some((PROCESS.with(|process| *process), FAR));
        let limiter = Limiter::new(policy.clone(), Seed { k0: 7, k1: 9 }, stores, None);
        let clock = FakeClock::at(START);
        let limiter = RefCell::new(limiter.expect("rules that mean something"));
        Worker { limiter, clock, permits: RefCell::default(), outcomes: RefCell::default() }
    }

    fn act(&self, case: &Case, act: Act) {
        match act {
            Act::Ask(request) => self.ask(&case.requests[request]),
            Act::End(used) => self.end(used),
        }
    }

    fn ask(&self, [path, account, device, user]: &[String; 4]) {
        let mut request = FakeRequest::get(path);
        let named = [("x-account-id", account), ("x-device-id", device), ("x-user-id", user)];
        for (name, value) in named {
            if !value.is_empty() {
                request = request.header(name, value.as_str());
            }
        }
        let verdict = self.limiter.borrow_mut().decide(&request, 0, &self.clock);
        let outcome = match verdict {
            Verdict::Admit(permit, report) => {
                self.permits.borrow_mut().push(permit);
                format!("admitted {}", report.map_or(String::new(), |it| told(&it.headers())))
            }
            Verdict::Hold(held) => {
                held.position.finish(End::Served);
                format!("held until {}", held.until)
            }
            Verdict::Refuse(refusal) => format!("refused {}", told(&refusal.headers())),
            Verdict::Pending { .. } => panic!("nothing is asked"),
        };
        self.outcomes.borrow_mut().push(outcome);
    }

    fn end(&self, used: u64) {
        if self.permits.borrow().is_empty() {
            return;
        }
        let mut permit = self.permits.borrow_mut().remove(0);
        let ending = FakeEnding::answered(200).header("x-used", used.to_string());
        let mut limiter = self.limiter.borrow_mut();
        limiter.on_response(&mut permit, &ending);
        limiter.finish(permit, &ending, START);
    }
}

fn told(headers: &Headers) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value}; ")).collect()
}

/// A world of workers, each with this number of acts.
pub fn world(
    (number, case): (usize, &Rc<Case>),
    known: &Known,
    (workers, acts): (usize, usize),
    choices: &mut Choices,
) {
    let asks = (0..case.requests.len()).map(Act::Ask);
    let all: Vec<Act> = asks.chain(case.used.iter().map(|used| Act::End(*used))).collect();
    let programs: Vec<Vec<Act>> =
        (0..workers).map(|_| (0..acts).map(|_| all[choices.pick(all.len())]).collect()).collect();
    let mut known = known.borrow_mut();
    let possible = known
        .entry((number, programs.clone()))
        .or_insert_with(|| in_all_orders(case, &programs, vec![0; workers], &mut Vec::new()));
    let mut hasher = DefaultHasher::new();
    (number, &programs).hash(&mut hasher);
    // Opened before: a table may have the address of one that another world left, and so its locks.
    let opened = open(case, workers);
    let stage = Stage::new(workers, START, false);
    let works = opened.iter().zip(programs).map(|(worker, acts)| {
        let (worker, case) = (worker.clone(), case.clone());
        Box::new(move || acts.into_iter().for_each(|act| worker.act(&case, act))) as Work
    });
    if stage.run(works.collect(), Between::default(), choices, hasher.finish()).is_some() {
        let outcomes = outcomes(&opened);
        assert!(possible.contains(&outcomes), "{outcomes:?}, but one after the other {possible:?}");
    }
}

fn open(case: &Case, workers: usize) -> Vec<Rc<Worker>> {
    (0..workers).map(|_| Rc::new(Worker::new(&case.policy))).collect()
}

fn outcomes(workers: &[Rc<Worker>]) -> Outcomes {
    workers.iter().map(|worker| worker.outcomes.borrow().clone()).collect()
}

/// The outcomes of all orders of the acts that are left. `done` has the workers of the acts before.
fn in_all_orders(
    case: &Case,
    programs: &[Vec<Act>],
    at: Vec<usize>,
    done: &mut Vec<usize>,
) -> BTreeSet<Outcomes> {
    let mut all = BTreeSet::new();
    for worker in (0..programs.len()).filter(|worker| at[*worker] < programs[*worker].len()) {
        let mut next = at.clone();
        next[worker] += 1;
        done.push(worker);
        all.extend(in_all_orders(case, programs, next, done));
        done.pop();
    }
    if all.is_empty() {
        let workers = open(case, programs.len());
        // No other worker has a lock.
        let alone = |_: usize, is_free: &dyn Fn() -> bool| {
            assert!(is_free(), "a worker waits for itself");
        };
        diana_store::explored::set(Some(Rc::new(alone)));
        let mut acts: Vec<_> = programs.iter().map(|program| program.iter()).collect();
        for worker in done {
            workers[*worker].act(case, *acts[*worker].next().expect("its next act"));
        }
        diana_store::explored::set(None);
        all.insert(outcomes(&workers));
    }
    all
}
