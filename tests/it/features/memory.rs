//! The reported memory of callers, compared with the allocated memory.

use std::cell::Cell;
use std::rc::Rc;

use diana_limiter::sizing;
use diana_limiter::{Limiter, Verdict};
use diana_policy::key::{Key, Seed};
use diana_policy::port::SharedData;
use diana_policy::time::{Now, SECOND};
use diana_policy::{Ban, Memory, Policy, Scope};
use diana_store::bans::{self, Bans};
use diana_store::stores::{self, Stores};
use diana_store::tables::Tables;
use fastrand::Rng;
use kit::bans::Calls;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};

use crate::support::allocator;

/// The host's overhead per value in bytes.
const HOST: u64 = 192;

/// Shared data that records its own allocations.
#[derive(Default)]
struct Shared {
    data: FakeSharedData,
    allocated: Cell<i64>,
}

impl Shared {
    fn bytes(&self) -> u64 {
        let value = |name: &String| self.data.get(name).map_or(0, |(value, _)| value.len() as u64);
        self.data.keys().iter().map(|name| HOST + value(name)).sum()
    }
}

impl SharedData for Shared {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.data.get(key)
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        let before = allocator::bytes();
        let written = self.data.swap(key, value, number);
        self.allocated.set(self.allocated.get() + allocator::bytes() - before);
        written
    }
}

/// A rule with many callers of three requests each. Returns the taken and the reported memory.
fn flood(rule: &str, keys: u64, callers: u64) -> (Memory, Memory) {
    let text = format!("keys: {keys}\nlimits: [{{Url: /, rules: [{{{rule}}}]}}]");
    let policy = crate::config::policy(&text);
    let reported = sizing::memory(&policy.limits, policy.keys);
    (taken(policy, callers), reported)
}

/// The memory of callers with three requests each.
fn taken(policy: Policy, callers: u64) -> Memory {
    let shared = Rc::new(Shared::default());
    let mut limiter = Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, shared.clone()).unwrap();
    let clock = FakeClock::default();
    let mut now = Now { mono: 1_000_000_000, wall: 1_700_000_040_000_000 };
    let before = allocator::bytes();
    for caller in 0..callers {
        // The last one arrives after all maintenance.
        if caller % 1000 == 0 || caller + 1 == callers {
            now = now.later(SECOND / 10);
            limiter.maintain(now);
        }
        clock.0.set(now);
        let request = FakeRequest::get("/").header("x-account-id", caller.to_string());
        (0..3).for_each(|_| drop(limiter.decide(&request, 0, &clock)));
    }
    let worker = (allocator::bytes() - before - shared.allocated.get()) as u64;
    Memory { worker, shared: shared.bytes() }
}

/// Further keys of a rule, the number of callers in the flood, and the memory that they fill.
const RULES: [(&str, u64, Full); 13] = [
    ("algo: W, scope: local", 8_000, Full::Worker),
    ("algo: SW, slices: 60, scope: local", 8_000, Full::Worker),
    ("algo: TB, scope: local", 8_000, Full::Worker),
    ("algo: W, scope: gateway", 20_000, Full::Both),
    ("algo: SW, slices: 60, scope: gateway", 20_000, Full::Both),
    ("algo: TB, scope: gateway", 20_000, Full::Both),
    ("algo: W, scope: local, ban: {after: 2, within: 1m, for: 1h}", 20_000, Full::Worker),
    ("algo: W, scope: gateway, ban: {after: 2, within: 1m, for: 1h}", 20_000, Full::Both),
    ("algo: W, scope: local, hot: {over: 9, per: 10s}", 2_000, Full::Worker),
    ("algo: W, scope: gateway, hot: {over: 9, per: 10s}", 2_000, Full::Neither),
    ("algo: W, scope: gateway, hot: {over: 9, per: 10s}", 20_000, Full::Neither),
    ("algo: W, scope: local, quota: {accounts: 5000}", 20_000, Full::Worker),
    (
        "algo: W, scope: global, quota: {accounts: 5000}, ban: {after: 2, within: 1m, for: 1h}",
        20_000,
        Full::Both,
    ),
];

/// The memory that a flood must fill.
#[derive(Clone, Copy, PartialEq)]
enum Full {
    Worker,
    Both,
    Neither,
}

#[test]
fn callers_take_the_reported_memory() {
    let mut rng = Rng::with_seed(kit::seed::next());
    for (rule, callers, full) in RULES {
        for keys in [1, rng.u64(2..16), rng.u64(100..1000)] {
            let rule = format!("actor: account, unit: day, rpu: 1, {rule}");
            let (taken, reported) = flood(&rule, keys, callers);
            // A limiter has some memory for new callers, and shared data one or two values per
            // rule.
            let most = reported.worker + reported.worker / 100 + 4096;
            let is_enough = taken.worker <= most && taken.shared <= reported.shared + 512;
            assert!(is_enough, "{taken:?} of {reported:?} with {keys} keys: {rule}");
            let least =
                Memory { worker: reported.worker * 9 / 10, shared: reported.shared * 9 / 10 };
            let fills = (full == Full::Neither || taken.worker >= least.worker)
                && (full != Full::Both || taken.shared >= least.shared);
            assert!(fills, "{taken:?} of {reported:?} with {keys} keys: {rule}");
        }
    }
}

/// Callers of one of many rules take no more of a worker than that rule's share.
#[test]
fn rule_among_many_takes_its_share_of_memory() {
    let entry = |path: String| {
        format!(
            "{{Url: /{path}, rules: [{{actor: account, unit: day, rpu: 1, algo: W, scope: gateway}}]}}"
        )
    };
    for others in [0, 519] {
        let entries: Vec<String> = [entry(String::new())]
            .into_iter()
            .chain((0..others).map(|n| entry(n.to_string())))
            .collect();
        let policy = diana_config::Reader::default()
            .policy(format!("limits: [{}]", entries.join(", ")).as_bytes());
        let most = stores::memory(Scope::Gateway, 1, Some(100_000), others + 1).worker;
        let taken = taken(policy.unwrap(), 20_000).worker;
        assert!(
            (most * 9 / 10..=most + 4096).contains(&taken),
            "{taken} of {most}, {others} others"
        );
    }
}

/// For any number of refusals between two reports.
#[test]
fn cached_bans_take_the_reported_memory() {
    const KEYS: usize = 4096;
    let reported = bans::memory(Scope::Gateway, KEYS).worker;
    let ban = Ban {
        after: 3,
        within: 60 * SECOND,
        period: SECOND,
        max: SECOND,
        halve_after: SECOND,
        is_shadow: false,
    };
    let shared = Rc::<Shared>::default();
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), shared.clone(), &mut tables);
    let mut bans = Bans::new(ban, Scope::Gateway, 1, KEYS, None, &mut stores);
    let before = allocator::bytes();
    let mut rng = Rng::with_seed(kit::seed::next());
    for _ in 0..20 * KEYS {
        bans.refused(Key { hash: rng.u64(..), second_hash: rng.u64(..) }, SECOND);
    }
    let taken = (allocator::bytes() - before - shared.allocated.get()) as u64;
    assert!(taken.abs_diff(reported) < 1024, "{taken} of {reported}");
}

/// The cache of callers in workers is divided among rules, with room to count them.
#[test]
fn new_callers_of_many_rules_are_counted_exactly() {
    let rules = |count: usize, scope: &str| {
        let rule = |n| {
            format!(
                "{{Url: /{n}, rules: [{{actor: account, unit: day, rpu: 1, algo: W, scope: {scope}}}]}}"
            )
        };
        let rules: Vec<String> = (0..count).map(rule).collect();
        diana_config::Reader::default().policy(format!("limits: [{}]", rules.join(", ")).as_bytes())
    };
    let fell = |scope| {
        let policy = rules(520, scope).unwrap();
        let is_about =
            |line: &String| line.contains("each of these 520 rules has room for `keys: ");
        (policy.keys, policy.warnings.iter().any(is_about))
    };
    let (keys, is_logged) = fell("local");
    assert!(keys < 100_000 && is_logged, "{keys}");
    assert_eq!(fell("gateway"), (100_000, false), "the remedy");
    let policy = rules(520, "gateway").unwrap();
    let data = Rc::<FakeSharedData>::default();
    let mut limiter = Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, data).unwrap();
    let clock = FakeClock::at(Now { mono: 1_000_000_000, wall: 1_700_000_040_000_000 });
    let mut admits = |caller: u32| {
        let request = FakeRequest::get("/7").header("x-account-id", caller.to_string());
        matches!(limiter.decide(&request, 0, &clock), Verdict::Admit(..))
    };
    let admitted = |callers: std::ops::Range<u32>, admits: &mut dyn FnMut(u32) -> bool| {
        callers.filter(|&caller| admits(caller)).count()
    };
    assert_eq!(admitted(0..20_000, &mut admits), 20_000);
    assert_eq!(admitted(20_000..22_000, &mut admits), 2_000, "newcomers");
    assert_eq!(admitted(0..22_000, &mut admits), 0);
}
