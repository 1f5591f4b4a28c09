//! One fault under load: what it did to requests, to the limit, and how long the fleet took to count
//! together again.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::{Fleet, GATEWAYS, SECOND, admitted, assert_none_failed, changes, counts_alone};
use crate::algorithms::{bound, expected};
use crate::harness::{Clock, Histogram, Hit, OpenLoad, eventually, request};

/// What everybody together may per second, and what each gateway may if it is alone.
pub const LIMIT: u32 = 30;
pub const SHARE: u32 = LIMIT / GATEWAYS as u32;

/// Requests per second at all gateways: a third of each kind.
pub const RATE: u32 = 300;

/// Longer than the default, which other work on the machine can exceed: then a gateway would count
/// alone although nothing is wrong with Redis.
pub const TIMEOUT: &str = "90ms";

/// No wait may be longer, in microseconds: the timeout and 10 ms.
pub const LONGEST_WAIT: f64 = 100_000.0;

const RECOVERY: Duration = Duration::from_secs(2);

/// How long a fault lasts. A whole second of the clock lies in it.
const LASTING: Duration = Duration::from_millis(2_200);

/// A rule for all together, one that has to ask about each of its callers, and nothing at all.
pub const RULES: &str = "
except: {paths: [/free]}
limits:
  - {Url: /hot, rules: [{name: hot, actor: all, unit: second, rpu: 30, algo: W, scope: global}]}
  - {Url: /each, rules: [{name: each, actor: account, unit: minute, rpu: 100, algo: SW, scope: global}]}
";

/// Something that goes wrong.
pub struct Fault<'f> {
    pub name: &'static str,
    /// Gateways that cannot reach Redis meanwhile: so many, from the first one on.
    pub cut_off: usize,
    /// How often Redis forgets everything.
    pub emptied: u32,
    pub begin: &'f dyn Fn(&mut Fleet),
    pub end: &'f dyn Fn(&mut Fleet),
    /// The failure that is counted.
    pub failure: Option<&'static str>,
}

/// What was seen, with times in microseconds of Unix time.
struct Seen {
    hits: Vec<Hit>,
    /// From when on all gateways that were cut off counted alone, to the end of the fault.
    alone: Range<u64>,
    recovery: Duration,
    waits: Vec<Histogram>,
    /// Gateways that counted alone at any time.
    were_alone: usize,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Hot,
    Each,
    Free,
}

impl Kind {
    /// Each gateway gets all of them in turn.
    pub fn of(number: usize) -> Kind {
        [Kind::Hot, Kind::Each, Kind::Free][number / GATEWAYS % 3]
    }
}

/// So many requests, each of those that are asked about from another caller.
pub fn requests(count: usize) -> Vec<Vec<u8>> {
    static LOADS: AtomicU32 = AtomicU32::new(0);
    let load = LOADS.fetch_add(1, Ordering::Relaxed);
    let request = |number: usize| match Kind::of(number) {
        Kind::Hot => request("GET", "/hot", &[]),
        Kind::Each => request("GET", "/each", &[("x-account-id", &format!("{load}-{number}"))]),
        Kind::Free => request("GET", "/free", &[]),
    };
    (0..count).map(request).collect()
}

/// Tries a fault out until the machine leaves no doubt.
#[track_caller]
pub fn try_out(fleet: &mut Fleet, fault: &Fault<'_>) {
    let mut wrong = 0;
    for _ in 0..4 {
        let seen = Seen::of(fleet, fault);
        seen.assert_kept(fault);
        println!("{}", seen.row(fault));
        if seen.is_in_time() {
            return;
        }
        let beside = seen.longest_beside();
        println!("too long, and a request that waits for nobody took {beside:?}");
        // A machine may once hit only those that waited.
        wrong += u32::from(beside < Duration::from_millis(10));
        assert!(wrong < 2, "{}: too long, and the machine was quiet", fault.name);
    }
    println!("{}: the machine was too busy to tell", fault.name);
}

impl Seen {
    #[track_caller]
    fn of(fleet: &mut Fleet, fault: &Fault<'_>) -> Seen {
        let before = fleet.waits();
        let back: Vec<usize> = fleet.envoys.iter().map(|envoy| changes(envoy)[1]).collect();
        let named = |fleet: &Fleet| match fault.failure {
            Some(name) => {
                fleet.envoys[0].sum(&format!("wasmcustom.diana.shop.fleet.failed.{name}"))
            }
            None => 0,
        };
        let named_before = named(fleet);
        let load = OpenLoad {
            gateways: &fleet.shared_as([1; GATEWAYS]),
            rate: RATE,
            lasting: Duration::from_secs(60),
            patience: 60,
            requests: &requests(9 * 200),
        };
        let (hits, (alone, recovery)) = load.fire_during(|| {
            thread::sleep(Duration::from_millis(300));
            let (clock, began) = (Clock::new(), Instant::now());
            (fault.begin)(fleet);
            eventually("the gateways to count alone", || {
                fleet.envoys[..fault.cut_off].iter().all(counts_alone).then_some(())
            });
            let noticed = clock.now();
            thread::sleep((began + LASTING).saturating_duration_since(Instant::now()));
            let (at, ended) = (clock.now(), Instant::now());
            (fault.end)(fleet);
            fleet.is_together_again();
            (noticed..at, ended.elapsed())
        });
        let after = fleet.waits();
        assert!(fault.failure.is_none() || named(fleet) > named_before, "{}", fault.name);
        let left = fleet.envoys.iter().map(|envoy| changes(envoy)[0]);
        Seen {
            hits,
            alone,
            recovery,
            waits: after.iter().zip(&before).map(|(after, before)| after.since(before)).collect(),
            were_alone: left.zip(back).filter(|(left, back)| left > back).count(),
        }
    }

    fn hits(&self, kind: Kind) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(move |hit| Kind::of(hit.shot.path) == kind)
    }

    /// What no delay of the machine excuses.
    #[track_caller]
    fn assert_kept(&self, fault: &Fault<'_>) {
        assert_none_failed(&self.hits);
        let unhindered = self.hits(Kind::Each).all(|hit| hit.shot.status == 200);
        assert!(unhindered, "{}: somebody was refused who is below his limit", fault.name);
        bound::in_each_window(&admitted(self.hits(Kind::Hot)), self.promised(fault), SECOND);
        for gateway in 0..fault.cut_off {
            self.assert_fair_share(gateway, fault);
        }
    }

    /// Most that may be let through in a second: a gateway that a busy machine cuts off counts too.
    fn promised(&self, fault: &Fault<'_>) -> u32 {
        let cut_off = self.were_alone.max(fault.cut_off) as u32;
        LIMIT * (1 + fault.emptied) + cut_off * SHARE
    }

    /// In each whole second alone a gateway lets its share through, no less and no more.
    #[track_caller]
    fn assert_fair_share(&self, gateway: usize, fault: &Fault<'_>) {
        let whole = self.alone.start.div_ceil(SECOND) * SECOND..self.alone.end / SECOND * SECOND;
        let inside = |hit: &&Hit| {
            hit.gateway == gateway && hit.shot.sent >= whole.start && hit.shot.received < whole.end
        };
        let hits: Vec<Hit> = self.hits(Kind::Hot).filter(inside).copied().collect();
        let shots: Vec<_> = hits.iter().map(|hit| hit.shot).collect();
        let passed = admitted(&hits);
        if !passed.is_empty() {
            bound::in_each_window(&passed, SHARE, SECOND);
        }
        let expected = expected::fixed_window(&shots, SHARE, SECOND);
        let found = passed.len();
        // What lies at the edges may count for the windows beside.
        assert!(found + 2 >= expected, "{}: {found} of {expected}", fault.name);
    }

    fn longest_wait(&self) -> f64 {
        self.waits.iter().map(Histogram::most).fold(0.0, f64::max)
    }

    fn is_in_time(&self) -> bool {
        self.longest_wait() <= LONGEST_WAIT && self.recovery <= RECOVERY
    }

    fn longest_beside(&self) -> Duration {
        self.hits(Kind::Free).map(Hit::wait).max().unwrap_or_default()
    }

    /// A row of the table in the docs.
    fn row(&self, fault: &Fault<'_>) -> String {
        let passed = admitted(self.hits(Kind::Hot));
        let mut seconds: Vec<u64> = passed.iter().map(|shot| shot.sent / SECOND).collect();
        seconds.sort_unstable();
        let most = seconds.chunk_by(|one, next| one == next).map(<[u64]>::len).max().unwrap_or(0);
        format!(
            "| {} | {} | 0 | {:.0} ms | {most} of {} | {:.1} s |",
            fault.name,
            self.hits.len(),
            self.longest_wait() / 1_000.0,
            self.promised(fault),
            self.recovery.as_secs_f64(),
        )
    }
}

/// The head of the table.
pub fn print_head() {
    println!(
        "| fault | requests | failed | longest wait | most in a second, of what is promised | together again after |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
}
