//! The time and the allocations of a decision without a host, for every algorithm of the registry.

// A bench may panic.
#![allow(clippy::panic, clippy::indexing_slicing)]

use std::fmt::{self, Display, Formatter};
use std::rc::Rc;

use diana_algorithm::{REGISTRY, fixed_window};
use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::time::Now;
use divan::{AllocProfiler, Bencher, black_box};
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};

#[global_allocator]
static COUNTED: AllocProfiler = AllocProfiler::system();

/// Callers that take turns, where there is more than one.
const CALLERS: usize = 100_000;

/// A name, the number of callers, and rules in which `RATE` stands for a limit that the bench does not reach.
const CASES: [(&str, usize, &str); 7] = [
    ("1 rule, all", 1, "{Url: /, rules: [{actor: all, RATE}]}"),
    ("1 rule, header", 1, "{Url: /, rules: [{actor: account, RATE}]}"),
    (
        "1 rule, header, hot",
        1,
        "{Url: /, rules: [{actor: account, hot: {over: 1000000000, per: 10s}, RATE}]}",
    ),
    ("1 rule, address", 1, "{Url: /, rules: [{actor: address, RATE}]}"),
    (
        "3 rules, two by header",
        1,
        "{Url: /, rules: [{actor: all, RATE}, {actor: account, RATE}, {actor: account, name: other, RATE}]}",
    ),
    (
        "3 entries",
        1,
        "{Url: /, rules: [{actor: all, RATE}]}, {Url: /, rules: [{actor: account, RATE}]}, \
         {Url: /svc, rules: [{actor: address, RATE}]}",
    ),
    ("100,000 callers", CALLERS, "{Url: /, rules: [{actor: account, RATE}]}"),
];

struct Case {
    name: String,
    callers: usize,
    limits: String,
}

impl Display for Case {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(&self.name)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[..] {
        // For callgrind, which counts the instructions of `Bench::verdict` (`benches/cost.py`).
        [_, count, name, requests] if count == "count" => {
            let case = cases().into_iter().find(|case| case.name == *name);
            let mut bench = Bench::new(&case.unwrap_or_else(|| panic!("no case {name:?}")));
            let requests: usize = requests.parse().unwrap_or_else(|why| panic!("{why}"));
            (0..requests).for_each(|_| bench.decide());
        }
        _ => divan::main(),
    }
}

#[divan::bench(args = cases())]
fn decide(bencher: Bencher<'_, '_>, case: &Case) {
    let mut bench = Bench::new(case);
    (0..case.callers).for_each(|_| bench.decide());
    bencher.bench_local(|| bench.decide());
}

fn cases() -> Vec<Case> {
    let fifty = |n| format!("{{Url: /svc/{n}, rules: [{{actor: all, RATE}}]}}");
    let fifty = (0..50).map(fifty).collect::<Vec<_>>().join(", ");
    let mut cases = Vec::new();
    for entry in REGISTRY {
        let rate = format!("unit: second, rpu: 1000000000, algo: {}, scope: local", entry.short);
        for (name, callers, limits) in CASES.into_iter().chain([("50 entries", 1, &*fifty)]) {
            let (name, limits) =
                (format!("{}: {name}", entry.short), limits.replace("RATE", &rate));
            cases.push(Case { name, callers, limits });
        }
    }
    // In fixed memory.
    let (short, callers) = (fixed_window::ENTRY.short, CALLERS);
    let rule = "actor: account, unit: day, rpu: 200, scope: local, quota: {accounts: 100000}";
    let limits = format!("{{Url: /, rules: [{{{rule}, algo: {short}}}]}}");
    cases.push(Case { name: format!("{short}: 100,000 daily quotas"), callers, limits });
    cases
}

/// A limiter, and callers that take turns, one in every tick.
struct Bench {
    limiter: Limiter,
    request: FakeRequest,
    clock: FakeClock,
    callers: usize,
    requests: usize,
}

impl Bench {
    fn new(Case { limits, callers, .. }: &Case) -> Bench {
        let text = format!(
            "{{limits: [{limits}], actors: {{account: [{{header: x-account-id}}], \
             address: [{{client_address: {{v4: 32, v6: 64}}}}]}}}}"
        );
        let policy = diana_config::Reader::default()
            .policy(text.as_bytes())
            .unwrap_or_else(|why| panic!("{why}"));
        let (seed, data) = (Seed { k0: 1, k1: 2 }, Rc::new(FakeSharedData::default()));
        let limiter = Limiter::standalone(policy, seed, data).unwrap_or_else(|why| panic!("{why}"));
        let request = FakeRequest::get("/svc/25/items/7?page=2")
            .header("x-account-id", "account-000000")
            .from("192.0.2.1:40000");
        let clock = FakeClock::default();
        clock.0.set(Now { mono: 1_000_000_000, wall: 1_800_000_000_000_000 });
        Bench { limiter, request, clock, callers: *callers, requests: 0 }
    }

    fn decide(&mut self) {
        self.requests += 1;
        if self.callers > 1 {
            self.write_account(self.requests % self.callers);
        }
        let Now { mono, wall } = self.clock.0.get();
        self.clock.0.set(Now { mono: mono + 1, wall: wall + 1 });
        let verdict = black_box(self.verdict());
        assert!(matches!(verdict, Verdict::Admit(..)), "refused: {verdict:?}");
    }

    /// The decision alone. Callgrind counts the instructions of this function.
    #[inline(never)]
    fn verdict(&mut self) -> Verdict {
        self.limiter.decide(&self.request, 0, &self.clock)
    }

    /// Writes the number of an account into the header in place, without an allocation.
    fn write_account(&mut self, mut number: usize) {
        for digit in self.request.headers[0].1["account-".len()..].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}
