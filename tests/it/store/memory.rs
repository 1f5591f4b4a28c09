//! The memory of callers in shared data.

use diana_algorithm::REGISTRY;
use diana_policy::port::SharedData;
use diana_policy::time::{SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::bans;

use kit::store::gateway::Gateway;
use kit::store::rule::Rule;

/// The host's overhead per value.
const HOST: usize = 192;

const KEYS: u64 = 20_000;

fn bytes(gateway: &Gateway) -> usize {
    let value = |name: &String| gateway.data.get(name).map_or(0, |(bytes, _)| bytes.len());
    gateway.data.keys().iter().map(|name| HOST + value(name)).sum()
}

/// Every algorithm, with each of its optional keys that affects the size of a state.
fn rules() -> Vec<Rule> {
    let quota = Quota::new(Unit::Second, 10);
    let slices = [1, 7, 60].map(|slices| Quota { slices: Some(slices), ..quota });
    let warm = Quota { warm_up: Some(SECOND), ..quota };
    let held = Quota { max_delay: Some(SECOND), ..quota };
    let all = REGISTRY.iter().map(|entry| Rule::new(entry.short, quota));
    let others = slices.map(|quota| Rule::new("SW", quota));
    all.chain(others).chain([Rule::new("TB", warm), Rule::new("TB", held)]).collect()
}

#[test]
fn live_caller_takes_bounded_memory() {
    for rule in rules() {
        let has_slices = rule.entry.keys.iter().any(|key| key.name == "slices");
        let slices = if has_slices { rule.quota.slices.unwrap_or(10) } else { 0 };
        let most = 64 + 4 * slices;
        let memory = diana_store::stores::memory(
            Scope::Gateway,
            rule.algorithm.properties().words,
            Some(KEYS as usize),
            1,
        );
        let gateway = Gateway::new(rule, KEYS as usize, 1);
        let mut last = 0;
        // New callers replace expired ones, and the memory does not grow.
        for generation in 0..5 {
            for caller in 0..KEYS {
                assert!(gateway.request(0, generation * KEYS + caller).unwrap().is_admitted());
            }
            gateway.wait(10 * SECOND);
            last = bytes(&gateway) as u64;
            let each = last / KEYS;
            assert!(each <= most, "{}: {each} bytes", gateway.rule.short);
        }
        assert!(last <= memory.shared, "more than was reported");
        assert!(gateway.overflowed.get() < KEYS / 200, "{}", gateway.overflowed.get());
    }
}

/// A flood uses the memory reported in the log, and nearly all of it.
#[test]
fn flood_takes_the_reported_memory() {
    const FEW: usize = 320;
    for rule in rules() {
        let words = rule.algorithm.properties().words;
        let memory = diana_store::stores::memory(Scope::Gateway, words, Some(FEW), 1);
        let gateway = Gateway::new(rule, FEW, 1);
        (0..20_000).for_each(|caller| _ = gateway.request(0, caller));
        let share = bytes(&gateway) as f64 / memory.shared as f64;
        assert!((0.98..1.02).contains(&share), "{}: {share} of it", gateway.rule.short);
    }
}

/// A worker remembers this many refused callers at most.
#[test]
fn cached_bans_are_bounded() {
    let bans = |callers| bans::memory(Scope::Gateway, callers).worker;
    assert!(0 < bans(1) && bans(1) < bans(4096));
    assert_eq!(bans(1_000_000), bans(4096));
}
