//! The measured configurations, which never refuse, and their requests.

use std::rc::Rc;

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::time::Now;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};

/// Number of accounts in turn, if there is more than one.
pub const KEYS: usize = 100_000;

/// A kind of configuration, the same for every algorithm.
pub struct Case {
    /// Its name in the table.
    pub name: &'static str,
    /// Whether the time budget of one rule applies.
    pub budget: bool,
    /// Number of accounts.
    pub keys: usize,
    limits: fn(&str) -> String,
}

/// All cases.
pub const CASES: &[Case] = &[
    Case { name: "1 rule, all", budget: true, keys: 1, limits: |algo| entry("/", "all", algo) },
    Case {
        name: "1 rule, header",
        budget: true,
        keys: 1,
        limits: |algo| entry("/", "account", algo),
    },
    Case {
        name: "1 rule, address",
        budget: true,
        keys: 1,
        limits: |algo| entry("/", "address", algo),
    },
    Case { name: "all, twice a header", budget: false, keys: 1, limits: together },
    Case { name: "3 rules", budget: false, keys: 1, limits: three },
    Case { name: "50 entries", budget: false, keys: 1, limits: fifty },
    Case {
        name: "100,000 keys",
        budget: false,
        keys: KEYS,
        limits: |algo| entry("/", "account", algo),
    },
];

/// Accounts with daily quotas in fixed memory.
pub const QUOTA: Case = Case {
    name: "100,000 quotas",
    budget: true,
    keys: KEYS,
    limits: |algo| {
        format!(
            "{{Url: /, rules: [{{actor: account, unit: day, rpu: 200, algo: {algo}, scope: local, \
             quota: {{accounts: {KEYS}}}}}]}}"
        )
    },
};

/// Accounts with detection of hot callers.
pub const HOT: Case = Case {
    name: "1 rule, header, hot",
    budget: true,
    keys: 1,
    limits: |algo| {
        entry("/", "account", algo).replace("}]}", ", hot: {over: 1000000000, per: 10s}}]}")
    },
};

/// Three rules that read at most one header.
fn together(algo: &str) -> String {
    let of = |actor: &str, unit: &str| {
        format!("{{actor: {actor}, unit: {unit}, rpu: 1000000000, algo: {algo}, scope: local}}")
    };
    let rules = [of("all", "second"), of("account", "second"), of("account", "minute")];
    format!("{{Url: /, rules: [{}]}}", rules.join(", "))
}

fn three(algo: &str) -> String {
    let entries = [("/", "all"), ("/", "account"), ("/svc", "address")];
    entries.map(|(url, actor)| entry(url, actor, algo)).join(", ")
}

fn fifty(algo: &str) -> String {
    let entries: Vec<_> = (0..50).map(|n| entry(&format!("/svc/{n}"), "all", algo)).collect();
    entries.join(", ")
}

/// A rate far above that of one request per tick.
fn entry(url: &str, actor: &str, algo: &str) -> String {
    format!(
        "{{Url: {url}, rules: [{{actor: {actor}, unit: second, rpu: 1000000000, algo: {algo}, \
         scope: local}}]}}"
    )
}

/// A limiter, and a client with one request per tick.
pub struct Bench {
    limiter: Limiter,
    request: FakeRequest,
    clock: FakeClock,
    keys: usize,
    calls: usize,
}

impl Bench {
    /// A case with one algorithm.
    pub fn new(case: &Case, algo: &str) -> Bench {
        let limits = (case.limits)(algo);
        let text = format!(
            "{{limits: [{limits}], actors: {{account: [{{header: x-account-id}}], \
             address: [{{client_address: {{v4: 32, v6: 64}}}}]}}}}"
        );
        let policy = diana_config::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{why}"));
        let clock = FakeClock::default();
        clock.0.set(Now { mono: 1_000_000_000, wall: 1_800_000_000_000_000 });
        Bench {
            limiter: Limiter::alone(
                policy,
                Seed { k0: 1, k1: 2 },
                Rc::new(FakeSharedData::default()),
            )
            .unwrap_or_else(|why| panic!("{why}")),
            request: FakeRequest::get("/svc/25/items/7?page=2")
                .header("x-account-id", "account-000000")
                .from("192.0.2.1:40000"),
            clock,
            keys: case.keys,
            calls: 0,
        }
    }

    /// Decides about the next request.
    pub fn decide(&mut self) -> Verdict {
        if self.keys > 1 {
            self.next_account();
        }
        let Now { mono, wall } = self.clock.0.get();
        self.clock.0.set(Now { mono: mono + 1, wall: wall + 1 });
        self.limiter.decide(&self.request, &self.clock)
    }

    /// Increments the account number in place.
    fn next_account(&mut self) {
        self.calls += 1;
        let digits = &mut self.request.headers[0].1["account-".len()..];
        if self.calls.is_multiple_of(self.keys) {
            digits.fill(b'0');
            return;
        }
        for digit in digits.iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
    }
}
