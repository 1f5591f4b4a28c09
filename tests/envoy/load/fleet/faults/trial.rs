//! One fault under load: what it did to requests, to the limit, and how long the fleet took to count
//! together again.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::modes::{Alone, Modes};
use super::super::{Fleet, GATEWAYS, assert_none_failed, counts_alone};
use crate::harness::{
    Clock, Histogram, Hit, OpenLoad, Redis, eventually, request, try_until_undisturbed,
};

/// What everybody together may per second, and what each gateway may if it is alone.
pub const LIMIT: u32 = 30;
pub const SHARE: u32 = LIMIT / GATEWAYS as u32;

/// Requests per second at all gateways: a third of each kind.
pub const RATE: u32 = 300;

/// What the gateways wait for Redis, in microseconds. Longer than the default, which other work on the
/// machine can exceed: then a gateway would count alone although nothing is wrong with Redis.
pub const TIMEOUT: u64 = 250_000;

/// How long a fleet may take to count together once Redis is back.
pub const RECOVERY: Duration = Duration::from_secs(2);

/// How long a fault lasts. A whole second of the clock lies in it.
const LASTING: Duration = Duration::from_millis(2_400);

/// A rule for all together, one that has to ask about each of its callers, and nothing at all.
pub const RULES: &str = "
except: {paths: [/free]}
limits:
  - {Url: /hot, rules: [{name: hot, actor: all, unit: second, rpu: 30, algo: W, scope: global}]}
  - {Url: /each, rules: [{name: each, actor: account, unit: minute, rpu: 100, algo: SW, scope: global}]}
";

/// Something that goes wrong.
pub struct Fault<'f, R = Redis> {
    pub name: &'static str,
    /// Gateways that cannot reach Redis meanwhile: so many, from the first one on.
    pub cut_off: usize,
    /// Gateways that may find for a while that they cannot, counted likewise.
    pub kept_from: usize,
    /// How often Redis forgets everything.
    pub emptied: u32,
    pub begin: &'f dyn Fn(&mut Fleet<R>),
    pub end: &'f dyn Fn(&mut Fleet<R>),
    /// How long it may take at its end until the fleet counts together.
    pub recovery: Duration,
    /// The failure that is counted.
    pub failure: Option<&'static str>,
}

/// What was seen, with times in microseconds of Unix time.
pub struct Seen {
    /// Requests, and those of them that came while the modes of the gateways were watched.
    pub all: usize,
    pub hits: Vec<Hit>,
    /// When the watch ended.
    ended: u64,
    /// From the beginning of the fault to the end.
    pub fault: Range<u64>,
    /// From when on all gateways that were cut off counted alone, to the end of the fault.
    pub all_alone: Range<u64>,
    /// When each gateway was alone.
    pub alone: Vec<Alone>,
    pub recovery: Duration,
    pub waits: Vec<Histogram>,
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
pub fn try_out<R>(fleet: &mut Fleet<R>, fault: &Fault<'_, R>) {
    let seen = try_until_undisturbed(fault.name, || {
        let seen = Seen::of(fleet, fault);
        seen.assert_kept(fault);
        let complaints = seen.complaints(fault);
        (seen, complaints)
    });
    println!("{}", seen.row(fault));
}

impl Seen {
    #[track_caller]
    fn of<R>(fleet: &mut Fleet<R>, fault: &Fault<'_, R>) -> Seen {
        let before = fleet.waits();
        let named = |fleet: &Fleet<R>| match fault.failure {
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
        let clock = Clock::new();
        let modes = Modes::watch(&fleet.envoys);
        let (mut hits, mut seen) = load.fire_during(|| Seen::during(fleet, fault, modes, clock));
        assert_none_failed(&hits);
        let after = fleet.waits();
        assert!(fault.failure.is_none() || named(fleet) > named_before, "{}", fault.name);
        seen.waits = after.iter().zip(&before).map(|(after, before)| after.since(before)).collect();
        seen.all = hits.len();
        hits.retain(|hit| hit.shot.received < seen.ended);
        Seen { hits, ..seen }
    }

    /// Lets the fault happen.
    #[track_caller]
    fn during<R>(fleet: &mut Fleet<R>, fault: &Fault<'_, R>, modes: Modes, clock: Clock) -> Seen {
        thread::sleep(Duration::from_millis(300));
        let (start, began) = (clock.now(), Instant::now());
        (fault.begin)(fleet);
        eventually("the gateways to count alone", || {
            fleet.envoys[..fault.cut_off].iter().all(counts_alone).then_some(())
        });
        let noticed = clock.now();
        thread::sleep((began + LASTING).saturating_duration_since(Instant::now()));
        let last = clock.now();
        (fault.end)(fleet);
        let (end, returned) = (clock.now(), Instant::now());
        fleet.is_together_again();
        let recovery = returned.elapsed();
        let alone = modes.end();
        Seen {
            fault: start..end,
            all_alone: noticed..last,
            alone,
            recovery,
            ended: clock.now(),
            all: 0,
            hits: Vec::new(),
            waits: Vec::new(),
        }
    }
}
