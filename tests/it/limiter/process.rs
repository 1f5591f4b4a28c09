//! Workers that are threads of one process: they count `gateway` rules together in one table, so
//! that they never admit more than the limit, and without other rules never fewer.

use std::rc::Rc;
use std::sync::Barrier;
use std::thread;

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::time::Now;
use diana_store::permit::End;
use diana_store::process::Process;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use fastrand::Rng;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::seed;

use super::{from, limiter};

const START: Now = Now { mono: 1_000_000_000, wall: 1_700_000_040_000_000 };

fn process() -> &'static Process {
    Box::leak(Box::default())
}

/// A worker's limiter in a process.
fn worker(text: &str, process: &'static Process) -> Limiter {
    let mut tables = Tables::default();
    let data = Rc::new(FakeSharedData::default());
    let mut stores = Stores::new("test".into(), data, &mut tables);
    stores.process = Some((process, START));
    let policy = crate::config::policy(text);
    Limiter::new(policy, Seed { k0: 7, k1: 9 }, stores, None).unwrap()
}

fn clock() -> FakeClock {
    let clock = FakeClock::default();
    clock.0.set(START);
    clock
}

fn admits(limiter: &mut Limiter, request: &FakeRequest, clock: &FakeClock) -> bool {
    match limiter.decide(request, 0, clock) {
        Verdict::Hold(held) => {
            held.position.finish(End::Served);
            true
        }
        Verdict::Admit(..) => true,
        Verdict::Refuse(_) => false,
        Verdict::Pending { .. } => panic!("nothing is asked"),
    }
}

#[test]
fn workers_together_admit_exactly_the_limit() {
    const EACH: u32 = 5_000;
    let algos = [
        "W",
        "SW",
        "TB",
        "W, cost: 3",
        "LB, max_delay: 20s, max_queue: 1000000",
        "TB, max_delay: 9s",
    ];
    for algo in algos {
        let text = |scope| {
            format!(
                "limits: [{{Url: /, rules: [{{actor: account, unit: minute, scope: {scope}, rpu: 9999, algo: {algo}}}]}}]"
            )
        };
        let mut alone = limiter(&text("local"), Rc::new(FakeSharedData::default()));
        let expected = (0..4 * EACH).filter(|_| admits(&mut alone, &from("ada"), &clock())).count();
        assert!(expected > 3_000, "{algo}: {expected}");
        let text = text("gateway");
        let process = process();
        let count = |_| {
            let text = &text;
            move || {
                let (mut limiter, clock) = (worker(text, process), clock());
                let admitted = (0..EACH).filter(|_| admits(&mut limiter, &from("ada"), &clock));
                admitted.count()
            }
        };
        let admitted: usize = thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|number| scope.spawn(count(number))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(admitted, expected, "{algo}");
    }
}

/// In each round two of three workers want the only permit of an account, and the loser must take no
/// permit of the tenant, not even for a moment: the tenant has one for the winner and one for the
/// third worker.
#[test]
fn request_that_is_refused_never_takes_a_permit_from_another() {
    const ROUNDS: usize = 20_000;
    let text = "
actors: {tenant: [{header: x-tenant}]}
limits:
- Url: /
  rules: [{name: tenant, actor: tenant, unit: day, rpu: 2, algo: W, scope: gateway}]
- Url: /own
  rules: [{name: own, actor: account, unit: day, rpu: 1, algo: W, scope: gateway}]
";
    let (process, barrier) = (process(), Barrier::new(3));
    let run = |path: &'static str| {
        let barrier = &barrier;
        move || -> Vec<bool> {
            let (mut limiter, clock) = (worker(text, process), clock());
            let decide = |round: usize| {
                let name = round.to_string();
                let request = FakeRequest::get(path).header("x-tenant", &name);
                let request = request.header("x-account-id", &name);
                barrier.wait();
                admits(&mut limiter, &request, &clock)
            };
            (0..ROUNDS).map(decide).collect()
        }
    };
    let [one, other, third] = thread::scope(|scope| {
        ["/own", "/own", "/"].map(|path| scope.spawn(run(path))).map(|it| it.join().unwrap())
    });
    for round in 0..ROUNDS {
        let admitted = (one[round] != other[round], third[round]);
        assert_eq!(admitted, (true, true), "round {round}: {} {}", one[round], other[round]);
    }
}

/// Without leases, a worker of a process decides as by a table of its own.
#[test]
fn worker_alone_decides_as_by_its_own_table() {
    for _ in 0..60 {
        let seed = seed::next();
        let mut rng = Rng::with_seed(seed);
        let rule = |number: usize, rng: &mut Rng| {
            let algo =
                ["W", "SW", "TB", "LB, max_delay: 900ms", "TB, max_delay: 300ms"][rng.usize(0..5)];
            let (cost, rpu) = (rng.u64(1..4), rng.u64(5..40));
            format!(
                "{{name: r{number}, actor: account, unit: second, scope: SCOPE, cost: {cost}, rpu: {}, algo: {algo}}}",
                cost * rpu
            )
        };
        let rules: Vec<String> =
            (0..rng.usize(1..4)).map(|number| rule(number, &mut rng)).collect();
        let text = format!("limits: [{{Url: /, rules: [{}]}}]", rules.join(", "));
        let mut shared = worker(&text.replace("SCOPE", "gateway"), process());
        let mut own = limiter(&text.replace("SCOPE", "local"), Rc::new(FakeSharedData::default()));
        let clock = clock();
        for _ in 0..2_000 {
            let Now { mono, wall } = clock.0.get();
            let step = rng.u64(0..90_000);
            clock.0.set(Now { mono: mono + step, wall: wall + step });
            let request = from(["ada", "bob", "eve"][rng.usize(0..3)]);
            let [shared, own] = [&mut shared, &mut own].map(|it| admits(it, &request, &clock));
            assert_eq!(shared, own, "seed {seed} after {step}: {text}");
        }
    }
}

#[test]
fn usage_stays_through_an_update_and_after_a_rule_was_removed() {
    let process = process();
    let text = |rpu: u32| {
        format!(
            "limits: [{{Url: /, rules: [{{name: counted, actor: account, unit: day, rpu: {rpu}, algo: W, scope: gateway}}]}}]"
        )
    };
    let clock = clock();
    let mut first = worker(&text(2), process);
    assert!(admits(&mut first, &from("ada"), &clock));
    assert!(admits(&mut first, &from("ada"), &clock));
    assert!(!admits(&mut first, &from("ada"), &clock));
    let mut second = worker(&text(3), process);
    drop(first);
    assert!(admits(&mut second, &from("ada"), &clock));
    drop(second);
    let mut without = worker("limits: []", process);
    assert!(admits(&mut without, &from("ada"), &clock));
    let mut third = worker(&text(3), process);
    assert!(!admits(&mut third, &from("ada"), &clock));
    assert!(admits(&mut third, &from("bob"), &clock));
}
