//! The cost of settling a request or releasing its in-flight slot: reading the response and
//! charging the usage.

use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_store::permit::Permit;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};

use crate::{BATCH, BATCHES};

/// Budget in a worker in nanoseconds.
const NANOSECONDS: f64 = 1_000.0;

const TOLD: &str = "cost: {response: {header: x-used}, reserve: 5, max: 9}";

/// Prints the table: one caller, in scopes `local` and `gateway`.
pub fn print() {
    println!("| settled | case | ns, best (median) | budget |");
    println!("| --- | --- | ---: | --- |");
    for scope in ["local", "gateway"] {
        for (name, rule, used) in [
            ("W, less than was reserved", quota("W", TOLD), "2"),
            ("W, more than was reserved", quota("W", TOLD), "8"),
            ("SW, less", quota("SW", TOLD), "2"),
            ("W, an outcome that does not count", quota("W", "count: {status: [401]}"), "0"),
            ("a place in flight", "in_flight: 1000000".into(), "0"),
        ] {
            let (best, median) = measure(&rule, scope, used);
            let budget = match scope {
                "local" if best <= NANOSECONDS => format!("≤ {NANOSECONDS} ns met"),
                "local" => format!("≤ {NANOSECONDS} ns MISSED"),
                _ => String::new(),
            };
            println!("| {scope} | {name} | {best:.0} ({median:.0}) | {budget} |");
        }
    }
}

fn quota(algo: &str, more: &str) -> String {
    format!("unit: day, rpu: 1000000000, algo: {algo}, {more}")
}

fn measure(rule: &str, scope: &str, used: &str) -> (f64, f64) {
    let text = format!("limits: [{{Url: /, rules: [{{actor: account, scope: {scope}, {rule}}}]}}]");
    let policy = diana_config::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{why}"));
    let (seed, data) = (Seed { k0: 1, k1: 2 }, Rc::new(FakeSharedData::default()));
    let mut limiter = Limiter::alone(policy, seed, data).unwrap_or_else(|why| panic!("{why}"));
    let clock = FakeClock::default();
    clock.0.set(kit::store::gateway::START);
    let request = FakeRequest::get("/").header("x-account-id", "ann");
    let ending = FakeEnding::answered(200).header("x-used", used);
    let mut times = [0.0; BATCHES];
    for time in &mut times {
        let admitted = |_| match limiter.decide(&request, &clock) {
            Verdict::Admit(permit, _) => permit,
            other => panic!("{other:?}"),
        };
        let open: Vec<Permit> = (0..BATCH).map(admitted).collect();
        let start = Instant::now();
        for mut permit in open {
            limiter.hear_response(&mut permit, &ending);
            limiter.settle(black_box(permit), &ending, clock.0.get());
        }
        *time = start.elapsed().as_nanos() as f64 / BATCH as f64;
    }
    times.sort_by(f64::total_cmp);
    (times[0], times[BATCHES / 2])
}
