//! Rules of each scope, alone and in pairs, by the whole module and a real Redis: all answers to clients and operators
//! are those of the oracle, and a request is charged to all of its rules or to none.
//!
//! `DIANA_DEPTH` is the number of events.

use std::cell::Cell;
use std::rc::Rc;

use diana_algorithm::entry;
use diana_config::Reader;
use diana_policy::ban::WORDS;
use diana_policy::time::{DAY, Micros, Now, SECOND};
use diana_policy::{Ban, Policy, Quota, Rule, Scope};
use diana_store::process::Process;
use kit::choices::{Choices, try_all};
use kit::fake::{FakeEnvironment, FakeRequest, FakeSharedData};
use kit::host::{FakeHost, StreamOutcome};
use kit::model::TERM;
use kit::module::Gateway;
use kit::oracle::history::History;
use kit::oracle::{Oracle, Promise, oracle};
use kit::rules::START;
use kit::server::Server;
use serde_json::Value as Json;

use super::small::depth;

const TOKEN: &str = "a token of 24 characters";

/// Where rules count: their scopes, gateways, the workers of each, and whether these are threads of one process.
#[derive(Debug)]
struct Place {
    scopes: [&'static str; 2],
    gateways: usize,
    workers: usize,
    is_process: bool,
    /// Shards of Redis, behind a proxy.
    parts: u64,
    /// Whether each gateway has a half of each limit, without Redis.
    is_half: bool,
}

const fn place(scopes: [&'static str; 2], gateways: usize, workers: usize) -> Place {
    Place { scopes, gateways, workers, is_process: false, parts: 1, is_half: false }
}

const LOCAL: &[Place] = &[
    place(["local", "local"], 1, 1),
    place(["gateway", "gateway"], 1, 2),
    Place { is_process: true, ..place(["gateway", "gateway"], 1, 2) },
];
const HALF: &[Place] = &[Place { is_half: true, ..place(["global", "global"], 1, 2) }];
const GLOBAL: &[Place] = &[
    place(["global", "global"], 1, 2),
    place(["global", "global"], 2, 1),
    Place { parts: 3, ..place(["global", "global"], 2, 1) },
];
const MIXED: &[Place] = &[place(["global", "gateway"], 1, 2), place(["local", "global"], 1, 1)];

/// Two rules, of an account and of all. Their scopes are added.
struct Case {
    rules: [&'static str; 2],
    /// What requests use in the end, where that is settled.
    used: &'static [u64],
    /// Whether the client of a held request may leave.
    leaves: bool,
    /// Whether operators reset usage, and end bans.
    orders: &'static [&'static str],
    /// Whether an operator has banned the first caller, as all workers know.
    is_banned: bool,
    /// Whether the first caller has used up its limit, and the worker that was asked last gets the orders and the next request.
    is_spent: bool,
    /// Plans of the accounts.
    plans: &'static [&'static str],
    /// The time between events at least. Then all gateways know the one before.
    pace: Micros,
}

const PLAIN: Case = Case {
    rules: ["", ""],
    used: &[],
    leaves: false,
    orders: &[],
    is_banned: false,
    is_spent: false,
    plans: &[""],
    pace: 60_000,
};

const CASES: &[Case] = &[
    Case {
        rules: ["unit: second, rpu: 2, algo: W", "unit: second, rpu: 3, algo: SW, slices: 2"],
        orders: &["reset"],
        ..PLAIN
    },
    Case {
        rules: ["unit: second, rpu: 2, algo: TB", "unit: minute, rpu: 1, algo: W, shadow: true"],
        orders: &["reset"],
        ..PLAIN
    },
    Case {
        rules: [
            "unit: second, rpu: 3, algo: TB",
            "unit: second, rpu: 1, algo: LB, max_delay: 2s, shadow: true",
        ],
        ..PLAIN
    },
    Case {
        rules: [
            "unit: second, rpu: 1, algo: LB, max_delay: 2s",
            "unit: second, rpu: 2, burst: 1, algo: TB, max_delay: 5s, max_queue: 10",
        ],
        ..PLAIN
    },
    Case {
        rules: ["unit: second, rpu: 1, algo: LB, max_delay: 2s", "unit: minute, rpu: 9, algo: W"],
        leaves: true,
        ..PLAIN
    },
    Case {
        rules: [
            "unit: second, rpu: 3, algo: W, cost: {response: {header: x-used}, reserve: 1, max: 3}",
            "in_flight: 2",
        ],
        used: &[0, 2],
        ..PLAIN
    },
    Case {
        rules: [
            "unit: second, rpu: 3, algo: SW, slices: 2, cost: {response: {header: x-used}, reserve: 1, max: 3}",
            "unit: minute, rpu: 4, algo: W",
        ],
        used: &[1, 2],
        orders: &["reset"],
        ..PLAIN
    },
    // After an event or two the next window has begun.
    Case {
        rules: [
            "unit: second, rpu: 3, algo: W, cost: {response: {header: x-used}, reserve: 1, max: 2}",
            "unit: minute, rpu: 9, algo: W",
        ],
        used: &[2],
        orders: &["reset"],
        pace: 3 * SECOND / 10,
        ..PLAIN
    },
    Case { rules: ["in_flight: 1", "unit: second, rpu: 3, algo: TB"], used: &[1], ..PLAIN },
    Case {
        rules: [
            "unit: second, rpu: 2, algo: W, cost: {response: {header: x-used}, reserve: 0, max: 3}",
            "unit: second, rpu: 2, algo: SW, slices: 1, cost: {response: {header: x-used}, reserve: 0, max: 3}",
        ],
        used: &[0, 1, 3],
        orders: &["reset"],
        ..PLAIN
    },
    Case {
        rules: [
            "unit: minute, rpu: 2, algo: W, plans: {by: [{header: x-plan}], of: {large: {rpu: 3}, none: {rpu: 0}}}",
            "unit: second, rpu: 4, algo: TB",
        ],
        plans: &["", "large", "none"],
        ..PLAIN
    },
];

/// Refusals lead to bans, with slices of a second.
const BANS: &[Case] = &[
    Case {
        rules: [
            "unit: minute, rpu: 0, algo: W, ban: {after: 2, within: 7s, for: 2500ms, max: 4s}",
            "unit: minute, rpu: 9, algo: W, shadow: true",
        ],
        orders: &["unban", "ban"],
        pace: SECOND,
        ..PLAIN
    },
    Case {
        rules: [
            "unit: minute, rpu: 1, algo: W, shadow: true, ban: {after: 2, within: 7s, for: 3500ms}",
            "unit: minute, rpu: 2, algo: W",
        ],
        pace: SECOND,
        ..PLAIN
    },
];

/// Rules without a state for each caller.
const QUOTAS: &[Case] = &[Case {
    rules: ["unit: day, rpu: 2, algo: W, quota: {accounts: 1000}", "unit: day, rpu: 3, algo: W"],
    ..PLAIN
}];

/// Rules that ask after they have decided.
const AFTER: &[Case] = &[
    Case {
        rules: [
            "unit: second, rpu: 2, algo: SW, slices: 2, ask: after",
            "unit: second, rpu: 3, algo: W, ask: after",
        ],
        orders: &["reset"],
        pace: 50_000,
        ..PLAIN
    },
    Case {
        rules: [
            "unit: day, rpu: 2, algo: W, ask: after",
            "unit: second, rpu: 2, algo: SW, slices: 1, ask: after",
        ],
        orders: &["reset"],
        pace: 50_000,
        ..PLAIN
    },
];

/// A ban that an operator ends.
const BANNED: &[Case] = &[Case {
    rules: [
        "unit: minute, rpu: 9, algo: W, ban: {after: 2, within: 7s, for: 30s}",
        "unit: minute, rpu: 9, algo: W",
    ],
    orders: &["unban"],
    is_banned: true,
    pace: SECOND,
    ..PLAIN
}];

/// A refusal that its worker remembers, until an operator resets the usage. Charges are final before the next event.
const SPENT: &[Case] = &[Case {
    rules: ["unit: hour, rpu: 1, algo: W", "unit: hour, rpu: 9, algo: W"],
    orders: &["reset"],
    is_spent: true,
    pace: 3 * TERM,
    ..PLAIN
}];

/// Bans of requests that do not ask Redis.
const BANS_AFTER: &[Case] = &[Case {
    rules: [
        "unit: minute, rpu: 9, algo: W, ask: after, ban: {after: 2, within: 7s, for: 2500ms}",
        "unit: minute, rpu: 9, algo: W, ask: after",
    ],
    orders: &["ban", "unban"],
    pace: SECOND,
    ..PLAIN
}];

/// The time between events of bans.
const WAITS: [Micros; 3] = [2 * SECOND, 6 * SECOND, 7 * SECOND];

/// The callers, of which one has a rule to itself.
const CALLERS: [&str; 2] = ["ann", "bob"];

/// For how long a worker may not know of a ban, and how much longer this may last that was counted later.
const LATE: Micros = SECOND / 4;

/// After which the values of a removed rule without usage are gone.
const REMOVED: Micros = 5 * SECOND;

/// After which a worker asks Redis.
const ASKS: Micros = SECOND / 1000;

#[derive(Debug, Clone, Copy)]
enum Event {
    Ask {
        caller: usize,
        plan: usize,
        leaves: bool,
    },
    End {
        request: usize,
        used: u64,
    },
    Order {
        order: usize,
        caller: usize,
    },
    /// The same configuration applies again.
    Configure,
    /// Another configuration applies for a while, without these rules.
    Remove,
    Wait(Micros),
}

/// A rule, and all that it has counted.
struct Book {
    rule: Rule,
    counts: Counts,
    usage: Vec<Usage>,
}

enum Counts {
    InFlight(u64),
    Permits(&'static Oracle),
}

#[derive(Clone, Default)]
struct Usage {
    history: History,
    in_flight: u64,
    ban: [u64; WORDS],
}

/// An admitted request, its charge under each rule, and the permits that remained.
struct Open {
    caller: usize,
    worker: usize,
    stream: u32,
    charges: Vec<Option<usize>>,
    left: Vec<Option<u64>>,
}

struct World<'c> {
    server: &'c Server,
    case: &'c Case,
    place: &'c Place,
    policy: &'c Policy,
    now: Rc<Cell<Now>>,
    workers: Vec<Gateway>,
    books: Vec<Book>,
    open: Vec<Open>,
    known: usize,
    asked: usize,
    /// Whether only the next worker to be asked knows of the latest order.
    has_ordered: bool,
}

impl Place {
    fn has_redis(&self) -> bool {
        self.scopes.contains(&"global") && !self.is_half
    }
}

fn policy(case: &Case, place: &Place) -> Policy {
    let half = if place.is_half { ", share: 2" } else { "" };
    let rule = |(number, rule): (usize, &&str)| {
        let actor = ["account", "all"][number];
        format!(
            "{{name: r{number}, actor: {actor}, scope: {}, {rule}{half}}}",
            place.scopes[number]
        )
    };
    let rules: Vec<_> = case.rules.iter().enumerate().map(rule).collect();
    let redis = if place.has_redis() {
        let proxied = if place.parts > 1 {
            format!(", proxied: true, parts: {}", place.parts)
        } else {
            String::new()
        };
        format!("redis: {{cluster: redis, timeout: 20ms, gateways: {}{proxied}}}\n", place.gateways)
    } else {
        String::new()
    };
    let text = format!(
        "namespace: scopes\nkeys: 16\n{redis}accepted: {{headers: true, filter_state: true}}\n\
         admin: {{path: /.diana, token_env: DIANA_TOKEN}}\nactors: {{account: [{{header: x-account-id}}]}}\n\
         limits: [{{Url: /, rules: [{}]}}]",
        rules.join(", ")
    );
    Reader::default().policy(text.as_bytes()).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn hold(cases: &[Case], places: &[Place], depth: usize) {
    let server = Server::start();
    let process = Cell::<&'static Process>::new(Box::leak(Box::default()));
    let worlds = Cell::new(0);
    let all = places.iter().flat_map(|it| cases.iter().map(move |case| (case, it)));
    // A position in the queue of one shard does not move when a request waits for that of another.
    let is_possible =
        |case: &Case, place: &Place| place.parts == 1 || !case.rules[1].contains("max_delay");
    let all: Vec<_> = all.filter(|(case, place)| is_possible(case, place)).collect();
    let policies: Vec<_> = all.iter().map(|(case, place)| policy(case, place)).collect();
    let tried = try_all(1..=depth, |events, choices| {
        let number = choices.pick(all.len());
        let (case, place) = all[number];
        // No process runs for a thousand years.
        worlds.set((worlds.get() + 1) % 500);
        if worlds.get() == 0 {
            process.set(Box::leak(Box::default()));
        }
        let mut world =
            World::new(&server, (process.get(), worlds.get()), case, place, &policies[number]);
        (0..events).for_each(|_| world.step(choices));
        world.close();
    });
    println!("tried: {} visits", tried.worlds);
}

#[test]
fn of_a_gateway() {
    hold(CASES, LOCAL, depth() + 1);
}

#[test]
fn of_a_share() {
    hold(&CASES[..5], HALF, depth() + 1);
}

#[test]
fn of_a_fleet() {
    hold(CASES, GLOBAL, depth());
    hold(SPENT, &GLOBAL[..2], depth());
    hold(QUOTAS, GLOBAL, depth());
    hold(QUOTAS, &LOCAL[..1], depth());
}

#[test]
fn of_a_fleet_that_asks_after() {
    hold(AFTER, &GLOBAL[..1], depth() + 1);
}

#[test]
fn of_both() {
    hold(CASES, MIXED, depth());
}

#[test]
fn with_bans() {
    hold(BANS, LOCAL, depth() + 1);
    hold(BANS_AFTER, &GLOBAL[..1], depth());
    hold(BANNED, &LOCAL[1..], depth() + 1);
    hold(BANNED, &GLOBAL[..2], depth() + 1);
    hold(BANS, &GLOBAL[..2], depth());
}

impl<'c> World<'c> {
    fn new(
        server: &'c Server,
        (process, number): (&'static Process, u64),
        case: &'c Case,
        place: &'c Place,
        policy: &'c Policy,
    ) -> World<'c> {
        if place.has_redis() {
            server.rewind();
        }
        // Near the end of a day.
        let start = (START / DAY + 1) * DAY - 17 * SECOND / 10;
        let start = if case.pace < SECOND { start } else { start + SECOND };
        // A process lasts until the program ends, so this is later than all usage of earlier worlds.
        let day = if place.is_process { 1 + 4 * number } else { 1 };
        let now = Rc::new(Cell::new(Now { mono: day * DAY + start % DAY, wall: start }));
        let mut workers = Vec::new();
        for _ in 0..place.gateways {
            let data = Rc::<FakeSharedData>::default();
            for _ in 0..place.workers {
                let number = workers.len() as u128 + 1;
                let environment = FakeEnvironment([("DIANA_TOKEN".into(), TOKEN.into())].into());
                let host = FakeHost {
                    now: now.clone(),
                    data: data.clone(),
                    random: number << 64 | number,
                    environment,
                    process: place.is_process.then_some(process),
                    ..FakeHost::default()
                };
                workers.push(Gateway::on(host, policy, number as u64));
            }
        }
        let parts = if place.is_half { 2 } else { 1 };
        let books = policy.limits[0].rules.iter().map(|rule| Book::new(rule, parts)).collect();
        let (open, known, asked, has_ordered) = (Vec::new(), 0, 0, false);
        let mut world = World {
            server,
            case,
            place,
            policy,
            now,
            workers,
            books,
            open,
            known,
            asked,
            has_ordered,
        };
        // Each gets the secret of the fleet.
        for worker in 0..world.workers.len() {
            let other = FakeRequest::get("/.diana/usage?rule=r0&actor.account=other");
            world.operate(worker, other);
        }
        world.rest();
        if case.is_banned && place.scopes[0] != "local" {
            world.order("ban", 0);
            world.has_ordered = false;
            for _ in 0..world.workers.len() {
                world.pass(2 * SECOND);
                world.ask(0, 0, false);
            }
            world.rest();
        }
        if case.is_spent {
            world.pass(case.pace);
            world.ask(0, 0, false);
        }
        world
    }

    fn mono(&self) -> Micros {
        self.now.get().mono
    }

    /// Whether Redis has one of the rules only.
    fn is_mixed(&self) -> bool {
        self.place.scopes[0] != self.place.scopes[1]
    }

    /// Whether Redis learns later than a request is decided, or ends, or another rule has decided.
    fn is_late(&self) -> bool {
        let asks_after = self.case.rules[0].contains("after");
        !self.case.used.is_empty() || asks_after || self.is_mixed() || self.place.parts > 1
    }

    /// Redis answers all calls at once.
    fn serve(&mut self) {
        let wall = self.now.get().wall;
        let mut is_done = false;
        while !is_done {
            is_done = true;
            for worker in &mut self.workers {
                for call in worker.take_calls() {
                    is_done = false;
                    if wall > self.server.now() {
                        self.server.advance(wall - self.server.now());
                    }
                    let reply = self.server.exchange(&call.body);
                    worker.answer(call.token, 200, &reply);
                }
            }
        }
    }

    fn pass(&mut self, ticks: Micros) {
        let until = self.mono() + ticks;
        self.serve();
        loop {
            let due = self.workers.iter().filter_map(Gateway::due).min();
            let at = due.unwrap_or(until).clamp(self.mono(), until);
            self.now.set(self.now.get().later(at - self.mono()));
            if due.is_none_or(|due| due > until) {
                break;
            }
            self.workers
                .iter_mut()
                .filter(|it| it.due().is_some_and(|due| due <= at))
                .for_each(Gateway::tick);
            self.serve();
        }
    }

    /// Time passes until all know of the latest event.
    fn rest(&mut self) {
        let is_tentative = self.is_mixed() || self.place.parts > 1;
        let pace = if is_tentative { self.case.pace.max(LATE) } else { self.case.pace };
        let into = if pace == SECOND { (self.mono() - SECOND / 10 * 3) % SECOND } else { 0 };
        self.pass(pace - into);
    }

    fn step(&mut self, choices: &mut Choices) {
        let mut events = Vec::new();
        let is_banned = self.case.is_banned;
        let callers = if is_banned { 1 } else { CALLERS.len().min(self.known + 1) };
        for caller in 0..callers {
            for plan in 0..self.case.plans.len() {
                events.push(Event::Ask { caller, plan, leaves: false });
            }
            if self.case.leaves {
                events.push(Event::Ask { caller, plan: 0, leaves: true });
            }
        }
        let ends = [0, self.open.len().wrapping_sub(1)];
        let ends = &ends[..self.open.len().min(2)];
        for request in ends {
            let used = self.case.used.iter();
            events.extend(used.map(|used| Event::End { request: *request, used: *used }));
        }
        if self.known > 0 && self.place.scopes[0] != "local" {
            let orders = 0..self.case.orders.len();
            events.extend(orders.map(|order| Event::Order { order, caller: 0 }));
        }
        events.extend((!is_banned).then_some(Event::Configure));
        // The usage of a local rule ends with it.
        if !self.place.scopes.contains(&"local") && self.known > 0 && !is_banned {
            events.push(Event::Remove);
        }
        events.extend(self.waits().into_iter().map(Event::Wait));
        match events[choices.pick(events.len())] {
            Event::Ask { caller, plan, leaves } => {
                self.ask(caller, plan, leaves);
                if std::mem::take(&mut self.has_ordered) {
                    self.pass(SECOND);
                }
            }
            Event::End { request, used } => self.end(request, used),
            Event::Order { order, caller } => self.order(self.case.orders[order], caller),
            Event::Configure => self.configure(self.policy),
            Event::Remove => {
                let without = Policy { limits: Vec::new(), ..self.policy.clone() };
                self.configure(&without);
                self.pass(REMOVED);
                self.configure(self.policy);
            }
            Event::Wait(ticks) => return self.pass(ticks),
        }
        self.rest();
    }

    fn configure(&mut self, policy: &Policy) {
        self.workers.iter_mut().for_each(|worker| worker.configure(policy));
    }

    /// Time until a tick before the next decision may change, and until then.
    fn waits(&self) -> Vec<Micros> {
        if self.case.is_banned {
            return vec![SECOND];
        }
        if self.case.pace == SECOND {
            return WAITS.into();
        }
        let edges = self.books.iter().flat_map(|book| book.edges(self.now.get()));
        let mut waits: Vec<_> = match self.place.has_redis() {
            false => edges.flat_map(|edge| [edge - 1, edge]).collect(),
            true if self.is_late() => edges.collect(),
            true => edges
                .map(|edge| edge.saturating_sub(ASKS))
                .flat_map(|at| [at.saturating_sub(1), at])
                .collect(),
        };
        waits.retain(|ticks| (1..3 * SECOND).contains(ticks));
        waits.sort_unstable();
        waits.dedup();
        waits
    }

    fn ask(&mut self, caller: usize, plan: usize, leaves: bool) {
        self.known = self.known.max(caller + 1);
        let worker = self.asked % self.workers.len();
        self.asked += 1;
        let request = FakeRequest::get("/")
            .header("x-account-id", CALLERS[caller])
            .header("x-plan", self.case.plans[plan]);
        let gateway = &mut self.workers[worker];
        gateway.take_outcomes();
        let stream = gateway.begin(request);
        let mut outcome = None;
        while let Some(decided) = self.workers[worker].take_outcomes().pop() {
            outcome = Some(decided.outcome);
            // A timer of the worker sends its questions.
            if let StreamOutcome::Asks(_) = decided.outcome {
                self.pass(ASKS);
            }
        }
        // Redis has decided now, and other rules have again.
        let now = self.now.get();
        let plan = self.case.plans[plan];
        // A ban refuses before anything is counted.
        let is_local = |book: &&Book| book.rule.scope == Scope::Local;
        let late = if self.books.iter().all(|book| is_local(&book)) { 0 } else { LATE };
        let banned = |book: &Book| book.left_of_ban(caller, now);
        let enforced = |book: &&Book| !book.rule.shadow;
        if let Some(left) =
            self.books.iter().filter(enforced).map(banned).max().filter(|it| *it > 0)
        {
            assert_eq!(outcome, Some(StreamOutcome::Refused), "banned for {left}");
            let (told, wait) = self.told(worker, stream);
            // A gateway learns of another one's ban by a reply, and may refuse a request without one.
            if told.starts_with("refused") && self.place.gateways > 1 {
                assert!(
                    self.books.iter().any(|book| book.turn(caller, plan, now).is_none()),
                    "{told}"
                );
                return;
            }
            assert!(told.starts_with("banned"), "{told}, but banned for {left}");
            let wait = wait.expect("a ban ends");
            assert!((left..=left + late).contains(&wait), "{told}, but banned for {left}");
            return;
        }
        let turns: Vec<_> = self.books.iter().map(|book| book.turn(caller, plan, now)).collect();
        let refuses = |(book, turn): (&Book, &Option<Micros>)| !book.rule.shadow && turn.is_none();
        let of_all = || self.books.iter().zip(&turns);
        let refusing: Vec<bool> = of_all().map(refuses).collect();
        let together = of_all().filter(|(book, _)| !book.rule.shadow).map(|(_, turn)| *turn);
        let leaves_at = together.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        let mut leaves_at = leaves_at
            .filter(|at| self.books.iter().all(|book| book.rule.shadow || book.holds_for(*at)));
        match leaves_at {
            Some(0) => assert_eq!(outcome, Some(StreamOutcome::Goes), "by {turns:?}"),
            Some(wait) => {
                // The other rules have decided before Redis was asked.
                let late = if self.is_mixed() { ASKS } else { 0 };
                let Some(StreamOutcome::Held(until)) = outcome else {
                    panic!("{outcome:?} by {turns:?}")
                };
                assert!(
                    (wait..=wait + late).contains(&(until - now.mono)),
                    "until {until} by {turns:?} at {now:?}"
                );
                leaves_at = Some(until - now.mono);
            }
            None => assert_eq!(outcome, Some(StreamOutcome::Refused), "by {turns:?}"),
        }
        let Some(wait) = leaves_at else {
            self.refused((worker, stream), (caller, plan), &refusing);
            return;
        };
        // A rule in shadow counts those that it would refuse.
        let refused = self.books.iter_mut().zip(&turns).filter(|(_, turn)| turn.is_none());
        refused.for_each(|(book, _)| book.count_refusal(caller, now));
        let charges: Vec<_> = self
            .books
            .iter_mut()
            .zip(&turns)
            .map(|(book, turn)| book.charge(caller, plan, now, *turn, wait))
            .collect();
        let left = |book: &Book| if wait == 0 { book.left(caller, plan, now) } else { None };
        let left = self.books.iter().map(left).collect();
        if wait > 0 && leaves {
            self.workers[worker].leave(stream);
            for (book, charge) in self.books.iter_mut().zip(charges) {
                book.leave(caller, charge);
            }
            return;
        }
        if wait > 0 {
            self.workers[worker].take_resumed();
            self.pass(wait - 1);
            assert!(!self.workers[worker].take_resumed().contains(&stream), "it goes too early");
            // A timer has whole milliseconds.
            self.pass(1 + SECOND / 500);
            assert!(self.workers[worker].take_resumed().contains(&stream), "it does not go");
        }
        self.open.push(Open { caller, worker, stream, charges, left });
        if self.case.used.is_empty() {
            self.end(self.open.len() - 1, 1);
        }
    }

    /// The rule that refused a request, and for how long; `None` if for ever.
    fn told(&mut self, worker: usize, stream: u32) -> (String, Option<Micros>) {
        let state = self.workers[worker].state(stream).expect("a report");
        let wait = state.split_once(" wait=").expect("a time").1.split(' ').next().unwrap_or("");
        let ticks = wait.strip_suffix('s').map(|text| {
            let (seconds, rest) = text.split_once('.').expect("a part of a second");
            seconds.parse::<Micros>().unwrap() * SECOND + rest.parse::<Micros>().unwrap()
        });
        (state, ticks)
    }

    /// The state of a refused request, its headers, and whether it bans its caller.
    fn refused(
        &mut self,
        (worker, stream): (usize, u32),
        (caller, plan): (usize, &str),
        refusing: &[bool],
    ) {
        let now = self.now.get();
        let (told, wait) = self.told(worker, stream);
        assert!(told.starts_with("refused"), "{told}");
        let by = |(number, _): &(usize, &Book)| told.contains(&format!(" rule=r{number} "));
        let (number, book) =
            self.books.iter().enumerate().find(by).expect("a rule of the document");
        let is_only_held = !refusing.contains(&true);
        assert!(refusing[number] || is_only_held, "{told}, but {refusing:?}");
        let mixes = self.is_mixed() || self.place.parts > 1;
        if !is_only_held {
            let is_tentative = mixes && book.rule.scope == Scope::Global && wait == Some(SECOND);
            assert!(is_tentative || book.may_tell(caller, plan, now, wait), "{told}");
        }
        let replies = self.workers[worker].take_replies();
        let reply = replies.into_iter().find(|(it, _)| *it == stream).expect("a reply").1;
        let limits = reply.headers.get("ratelimit").unwrap_or("").to_owned();
        for (number, book) in self.books.iter().enumerate() {
            let left = book.left(caller, plan, now);
            // Another shard has charged it, and is about to return that.
            if self.place.parts > 1 && !refusing[number] {
                continue;
            }
            assert!(
                remaining(&limits, number).is_none_or(|it| Some(it) == left),
                "{limits}, but {left:?} of r{number}"
            );
        }
        // Redis is asked only if no other rule refuses.
        let others = self.books.iter().zip(refusing);
        let is_refused_here =
            others.clone().any(|(book, refuses)| *refuses && book.rule.scope != Scope::Global);
        for book in &mut self.books {
            let is_asked = !(is_refused_here && book.rule.scope == Scope::Global);
            if is_asked && book.turn(caller, plan, now).is_none() {
                book.count_refusal(caller, now);
            }
        }
    }

    fn end(&mut self, request: usize, used: u64) {
        let Open { caller, worker, stream, charges, left } = self.open.remove(request);
        let now = self.now.get();
        let fields = self.workers[worker].end(stream, used).expect("headers of the module");
        let limits = fields.get("ratelimit").unwrap_or("");
        for (number, (book, charge)) in self.books.iter_mut().zip(charges).enumerate() {
            let told = remaining(limits, number);
            if let (Some(told), Some(left)) = (told, left[number]) {
                assert_eq!(told, left, "{limits}, of r{number}");
            }
            book.end(caller, charge, used, now);
        }
    }

    fn operate(&mut self, worker: usize, request: FakeRequest) -> Option<Json> {
        let request = request.header("authorization", format!("Bearer {TOKEN}"));
        let gateway = &mut self.workers[worker];
        gateway.take_replies();
        let stream = gateway.begin(request);
        let mut replies = gateway.take_replies();
        if replies.is_empty() {
            self.pass(ASKS);
            replies = self.workers[worker].take_replies();
        }
        let gateway = &mut self.workers[worker];
        gateway.finish(stream, 0);
        let (_, reply) = replies.into_iter().find(|(it, _)| *it == stream)?;
        (reply.status == 200).then(|| serde_json::from_slice(&reply.body).expect("JSON"))
    }

    /// An order about the first rule.
    fn order(&mut self, order: &str, caller: usize) {
        let length = if self.case.is_banned { 30 * SECOND } else { 5 * SECOND / 2 };
        let more = if order == "ban" { format!("&for={}ms", length / 1000) } else { String::new() };
        let path = format!("/.diana/{order}?rule=r0&actor.account={}{more}", CALLERS[caller]);
        let request = FakeRequest { method: Some("POST".into()), ..FakeRequest::get(&path) };
        self.asked = self.asked.saturating_sub(usize::from(self.case.is_spent));
        let worker = self.asked % self.workers.len();
        assert!(self.operate(worker, request).is_some(), "{order} is obeyed");
        let now = self.now.get();
        let usage = &mut self.books[0].usage[caller];
        match order {
            "reset" => usage.history.reset(),
            "unban" => Ban::reset(&mut usage.ban, now.mono),
            _ => Ban::begin(&mut usage.ban, now.mono + length),
        }
        // Others may remember a refusal, or that there was a ban.
        self.has_ordered = true;
    }

    /// Operators see the charged permits.
    fn close(mut self) {
        for (number, caller) in [(0, 0), (0, 1), (1, 0)] {
            let name = if number == 0 {
                format!("&actor.account={}", CALLERS[caller])
            } else {
                String::new()
            };
            let request = FakeRequest::get(&format!("/.diana/usage?rule=r{number}{name}"));
            let worker = (self.asked + 1) % self.workers.len();
            if self.books[number].rule.scope == Scope::Local {
                continue;
            }
            let told = self.operate(worker, request).expect("a reply");
            let (now, book) = (self.now.get(), &self.books[number]);
            let (left, banned) = (book.left(caller, "", now), book.left_of_ban(caller, now));
            let in_flight = book.of(caller).in_flight;
            let told = &told["callers"][0];
            let number = |key: &str| told[key].as_u64();
            assert!(left.is_none() || number("remaining") == left, "{told}, but {left:?}");
            if let (Some(used), Some(reserved), Some(left)) =
                (number("used"), number("reserved"), left)
                && book.is_window()
                && left > 0
            {
                assert_eq!(used + reserved, book.rule.quota.rpu - left, "{told}");
                assert!(reserved <= self.open.len() as u64, "{told}");
            }
            if let Some(told) = number("in_flight") {
                assert_eq!(told, in_flight, "requests in flight");
            }
            let until = told["banned_until"].as_f64().map(|at| (at * 1e6).round() as Micros);
            let most = now.wall + banned + LATE;
            assert_eq!(until.is_some(), banned > 0, "{told}, but banned for {banned}");
            assert!(
                until.is_none_or(|it| (now.wall + banned..=most).contains(&it)),
                "{told}, but banned for {banned}"
            );
        }
    }
}

/// The permits that remain under a rule, by the header.
fn remaining(limits: &str, number: usize) -> Option<u64> {
    let rest = limits.split_once(&format!("\"r{number}\";r="))?.1;
    let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

impl Book {
    /// The book of a gateway with one of some equal parts of the limit.
    fn new(rule: &Rule, parts: u64) -> Book {
        let quota = match entry(rule.algo) {
            Some(entry) if parts > 1 => (entry.share)(&rule.quota, parts),
            _ => rule.quota,
        };
        let rule = &Rule { quota, ..rule.clone() };
        let is_slot = rule.settling.as_ref().is_some_and(|it| it.is_slot);
        let counts = match is_slot {
            true => Counts::InFlight(rule.quota.rpu),
            false => Counts::Permits(oracle(rule.algo)),
        };
        let callers = if rule.actor.is_empty() { 1 } else { CALLERS.len() };
        Book { rule: rule.clone(), counts, usage: vec![Usage::default(); callers] }
    }

    fn place(&self, caller: usize) -> usize {
        caller % self.usage.len()
    }

    fn of(&self, caller: usize) -> &Usage {
        &self.usage[self.place(caller)]
    }

    fn quota(&self, plan: &str) -> Quota {
        let plans = self.rule.plans.iter().flat_map(|plans| plans.listed());
        let named = plans.filter(|it| it.name == plan).find_map(|it| it.quota);
        named.unwrap_or(self.rule.quota)
    }

    /// Whether the rule counts usage apart from reservations.
    fn is_settled(&self) -> bool {
        self.rule.settling.is_some()
    }

    fn is_window(&self) -> bool {
        matches!(self.counts, Counts::Permits(oracle) if !oracle.drains())
    }

    fn turn(&self, caller: usize, plan: &str, now: Now) -> Option<Micros> {
        let (usage, quota) = (self.of(caller), self.quota(plan));
        match self.counts {
            Counts::InFlight(limit) => (usage.in_flight < limit).then_some(0),
            Counts::Permits(oracle) => match usage.history.promise(oracle, &quota, now, 1) {
                Promise::Admitted { wait } => Some(wait),
                Promise::Refused => None,
                Promise::Either => panic!("no rate changes"),
            },
        }
    }

    fn holds_for(&self, leaves: Micros) -> bool {
        let longest = match self.counts {
            Counts::InFlight(_) => 0,
            Counts::Permits(oracle) => oracle.longest_wait(&self.rule.quota),
        };
        longest == 0 || leaves <= longest
    }

    /// Charges a request that this rule admits. Returns the number of the charge.
    fn charge(
        &mut self,
        caller: usize,
        plan: &str,
        now: Now,
        turn: Option<Micros>,
        leaves: Micros,
    ) -> Option<usize> {
        let turn = turn?;
        let (place, quota) = (self.place(caller), self.quota(plan));
        let leaves = if self.rule.shadow { turn } else { leaves };
        let is_later = leaves > turn && self.holds_for(leaves) && !self.holds_for(Micros::MAX);
        let (at, wait) = if is_later { (now.later(leaves), 0) } else { (now, turn) };
        match self.counts {
            Counts::InFlight(_) => {
                self.usage[place].in_flight += 1;
                Some(0)
            }
            Counts::Permits(_) => {
                let reserved = self.rule.settling.as_ref().map_or(1, |it| it.reserve);
                Some(self.usage[place].history.charge(&quota, at, wait, reserved))
            }
        }
    }

    /// A client has left before its turn.
    fn leave(&mut self, caller: usize, charge: Option<usize>) {
        let place = self.place(caller);
        let holds = !self.holds_for(Micros::MAX);
        let Usage { history, .. } = &mut self.usage[place];
        if let Some(charge) = charge
            && holds
            && history.is_latest(charge)
        {
            history.cancel(charge);
        }
    }

    fn end(&mut self, caller: usize, charge: Option<usize>, used: u64, now: Now) {
        let Some(charge) = charge else { return };
        let (place, quota) = (self.place(caller), self.rule.quota);
        let is_settled = self.is_settled();
        let usage = &mut self.usage[place];
        match self.counts {
            Counts::InFlight(_) => usage.in_flight -= 1,
            Counts::Permits(_) => {
                let reserved = self.rule.settling.as_ref().map_or(1, |it| it.reserve);
                let used = if is_settled { used } else { reserved };
                usage.history.settle(charge, used.min(reserved));
                if used > reserved {
                    let debt = usage.history.charge(&quota, now, 0, used - reserved);
                    usage.history.settle(debt, used - reserved);
                }
            }
        }
    }

    fn left(&self, caller: usize, plan: &str, now: Now) -> Option<u64> {
        let usage = self.of(caller);
        match self.counts {
            Counts::InFlight(limit) => Some(limit - usage.in_flight),
            Counts::Permits(oracle) => usage.history.left(oracle, &self.quota(plan), now),
        }
    }

    /// Whether a refusal may last so long.
    fn may_tell(&self, caller: usize, plan: &str, now: Now, wait: Option<Micros>) -> bool {
        let (usage, quota) = (self.of(caller), self.quota(plan));
        let Counts::Permits(oracle) = self.counts else { return wait == Some(SECOND) };
        let Some(wait) = wait else { return quota.rpu == 0 };
        let promise = |history: &History, now| history.promise(oracle, &quota, now, 1);
        if self.is_settled() && promise(&usage.history.settled(), now) != Promise::Refused {
            return wait == SECOND;
        }
        quota.rpu > 0
            && promise(&usage.history, now.later(wait)) != Promise::Refused
            && promise(&usage.history, now.later(wait - 1)) == Promise::Refused
    }

    fn left_of_ban(&self, caller: usize, now: Now) -> Micros {
        let left = |ban: Ban| ban.left(Ban::until(&self.of(caller).ban), now.mono);
        self.rule.ban.map_or(0, left)
    }

    fn count_refusal(&mut self, caller: usize, now: Now) {
        let place = self.place(caller);
        if let Some(ban) = self.rule.ban {
            ban.count(&mut self.usage[place].ban, now.mono, 1);
        }
    }

    fn edges(&self, now: Now) -> Vec<Micros> {
        let Counts::Permits(oracle) = self.counts else { return Vec::new() };
        let edges = |usage: &Usage| usage.history.edges(oracle, &self.rule.quota, now, &[1]);
        self.usage.iter().flat_map(edges).collect()
    }
}
