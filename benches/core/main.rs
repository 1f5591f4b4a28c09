//! The cost of a decision without a host: time, allocations, and memory per caller, for every algorithm of the registry.

// A bench may panic, and it is the one place that measures real time.
#![allow(clippy::panic, clippy::indexing_slicing, clippy::disallowed_methods)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use diana_algorithm::{REGISTRY, fixed_window};
use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::time::Now;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
#[global_allocator]
static COUNTING: Counting = Counting;

/// The system's allocator, with counts of allocations so far and of bytes in use.
struct Counting;

// SAFETY: the system's allocator does the work.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as u64, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as u64, Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Callers that take turns, where there is more than one.
const KEYS: usize = 100_000;
/// Batches are so short that most of them run without an interruption.
const BATCH: usize = 1_000;
const BATCHES: usize = 1_001;

/// The limits of a case, for an algorithm.
type Limits = fn(&str) -> String;

/// Names, numbers of callers, limits.
const CASES: &[(&str, usize, Limits)] = &[
    ("1 rule, all", 1, |algo| entry("/", &[rule("all", algo, "")])),
    ("1 rule, header", 1, |algo| entry("/", &[rule("account", algo, "")])),
    ("1 rule, address", 1, |algo| entry("/", &[rule("address", algo, "")])),
    ("all, twice a header", 1, |algo| {
        let minute = rule("account", algo, "").replace("second", "minute");
        entry("/", &[rule("all", algo, ""), rule("account", algo, ""), minute])
    }),
    ("3 rules", 1, |algo| {
        let entries = [("/", "all"), ("/", "account"), ("/svc", "address")];
        entries.map(|(url, actor)| entry(url, &[rule(actor, algo, "")])).join(", ")
    }),
    ("50 entries", 1, |algo| {
        let entries = (0..50).map(|n| entry(&format!("/svc/{n}"), &[rule("all", algo, "")]));
        entries.collect::<Vec<_>>().join(", ")
    }),
    ("1 rule, header, hot", 1, |algo| {
        entry("/", &[rule("account", algo, ", hot: {over: 1000000000, per: 10s}")])
    }),
    ("100,000 keys", KEYS, |algo| entry("/", &[rule("account", algo, "")])),
];

/// Daily quotas in fixed memory.
const QUOTA: (&str, usize, Limits) = ("100,000 quotas", KEYS, |algo| {
    let daily = rule("account", algo, ", quota: {accounts: 100000}");
    entry("/", &[daily.replace("second, rpu: 1000000000", "day, rpu: 200")])
});

fn entry(url: &str, rules: &[String]) -> String {
    format!("{{Url: {url}, rules: [{}]}}", rules.join(", "))
}

/// A limit that the bench does not reach.
fn rule(actor: &str, algo: &str, more: &str) -> String {
    format!("{{actor: {actor}, unit: second, rpu: 1000000000, algo: {algo}, scope: local{more}}}")
}

fn main() {
    println!("| algorithm | case | ns, best (median) | allocations | bytes of a caller |");
    println!("| --- | --- | ---: | ---: | ---: |");
    for entry in REGISTRY {
        CASES.iter().for_each(|case| measure(entry.short, case));
    }
    measure(fixed_window::ENTRY.short, &QUOTA);
}

/// Prints a row.
fn measure(algo: &str, (name, keys, limits): &(&str, usize, Limits)) {
    let mut bench = Bench::new(&limits(algo), *keys);
    let empty = BYTES.load(Relaxed);
    bench.decide(BATCH.max(*keys));
    let bytes = (BYTES.load(Relaxed) - empty) / *keys as u64;
    let before = ALLOCATIONS.load(Relaxed);
    let mut times = [0.0; BATCHES];
    for time in &mut times {
        let start = Instant::now();
        bench.decide(BATCH);
        *time = start.elapsed().as_nanos() as f64 / BATCH as f64;
    }
    let allocations = (ALLOCATIONS.load(Relaxed) - before) as f64 / (BATCHES * BATCH) as f64;
    times.sort_by(f64::total_cmp);
    // Interruptions only lengthen a batch, so the fastest one is the truth.
    let [best, .., _] = times;
    let bytes = if *keys == KEYS { bytes.to_string() } else { String::new() };
    println!(
        "| {algo} | {name} | {best:.0} ({:.0}) | {allocations} | {bytes} |",
        times[BATCHES / 2]
    );
}

/// A limiter, and clients that call it once in every tick.
struct Bench {
    limiter: Limiter,
    request: FakeRequest,
    clock: FakeClock,
    keys: usize,
    calls: usize,
}

impl Bench {
    fn new(limits: &str, keys: usize) -> Bench {
        let text = format!(
            "{{limits: [{limits}], actors: {{account: [{{header: x-account-id}}], \
             address: [{{client_address: {{v4: 32, v6: 64}}}}]}}}}"
        );
        let policy = diana_config::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{why}"));
        let (seed, data) = (Seed { k0: 1, k1: 2 }, Rc::new(FakeSharedData::default()));
        let limiter = Limiter::alone(policy, seed, data).unwrap_or_else(|why| panic!("{why}"));
        let request = FakeRequest::get("/svc/25/items/7?page=2")
            .header("x-account-id", "account-000000")
            .from("192.0.2.1:40000");
        let clock = FakeClock::default();
        clock.0.set(Now { mono: 1_000_000_000, wall: 1_800_000_000_000_000 });
        Bench { limiter, request, clock, keys, calls: 0 }
    }

    /// Decides about the next requests.
    fn decide(&mut self, requests: usize) {
        for _ in 0..requests {
            if self.keys > 1 {
                self.next_account();
            }
            let Now { mono, wall } = self.clock.0.get();
            self.clock.0.set(Now { mono: mono + 1, wall: wall + 1 });
            let verdict = black_box(self.limiter.decide(&self.request, &self.clock));
            assert!(matches!(verdict, Verdict::Admit(..)), "refused: {verdict:?}");
        }
    }

    /// Writes the account's number into the header in place, without an allocation.
    fn next_account(&mut self) {
        self.calls = (self.calls + 1) % self.keys;
        let mut number = self.calls;
        for digit in self.request.headers[0].1["account-".len()..].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}
