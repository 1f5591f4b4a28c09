//! Daily quotas of accounts, which the gateways count together.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use super::modes::{Alone, Modes, alone_within, without_cause};
use super::{Fleet, GATEWAYS, WORKERS, assert_none_failed, counts_alone};
use crate::harness::{
    Clock, Complaint, Hit, NO_EXCUSE, OpenLoad, alone, eventually, request, try_until_undisturbed,
};

/// What the gateways wait for Redis, in microseconds.
const TIMEOUT: u64 = 900_000;

/// Requests a second.
const RATE: u32 = 1_500;

const PERMITS: u32 = 5;
/// Each of them comes at all gateways: the turns of those repeat every six requests.
const ACCOUNTS: usize = 61;

const LIMITS: &str = "limits:
  - {Url: /free, rules: [{actor: all, unit: second, rpu: 100000, algo: W, scope: global}]}
  - {Url: /posts, rules: [{name: posts, actor: account, unit: day, rpu: 5, algo: W, scope: global,
      quota: {accounts: 10000, error: 0.0001}}]}";

impl Fleet {
    /// How often accounts with such names are let through, if each comes many times at all gateways.
    fn give(&self, name: &str) -> Vec<u32> {
        let account = |number| format!("{name}-{number}");
        let of = |number| request("GET", "/posts", &[("x-account-id", &account(number))]);
        let load = OpenLoad {
            gateways: &self.shared_as([3, 2, 1]),
            rate: RATE,
            lasting: Duration::from_secs(3),
            patience: 60,
            requests: &(0..ACCOUNTS).map(of).collect::<Vec<_>>(),
        };
        let hits: Vec<Hit> = load.fire();
        assert_none_failed(&hits);
        let mut given = HashMap::new();
        let admitted = hits.iter().filter(|hit| hit.shot.status == 200);
        admitted.for_each(|hit| *given.entry(hit.shot.path).or_default() += 1);
        (0..ACCOUNTS).map(|account| given.get(&account).copied().unwrap_or(0)).collect()
    }

    fn asks(&self) -> u64 {
        let of = |envoy: &crate::harness::Envoy| envoy.stat("wasmcustom.diana.shop.fleet.asks");
        self.envoys.iter().filter_map(of).sum()
    }
}

#[test]
fn each_account_has_its_permits_once_in_the_fleet() {
    alone();
    try_until_undisturbed("quotas", || {
        let fleet = Fleet::start_at_redis(TIMEOUT, LIMITS);
        fleet.comes_together("/free");
        let modes = Modes::watch(&fleet.envoys);
        let (clock, before) = (Clock::new(), fleet.asks());
        let began = clock.now();
        let given = fleet.give("together");
        let asks = fleet.asks() - before;
        let during = began..clock.now();
        fleet.comes_together("/free");
        fleet.assert_unharmed();
        let alone = modes.end();
        assert_permits(&given, &alone);
        let mut complaints = without_cause(&alone, TIMEOUT);
        if alone.is_empty() {
            complaints.extend(too_many(asks, during));
        }
        ((), complaints)
    });
}

/// Each account has its permits, and no more than a part in each worker of a gateway that is alone.
#[track_caller]
fn assert_permits(given: &[u32], alone: &[Alone]) {
    let parts = WORKERS * alone_within(alone, &(0..u64::MAX)) * PERMITS.div_ceil(GATEWAYS as u32);
    let right = |given: &u32| (PERMITS..=PERMITS + parts).contains(given);
    assert!(given.iter().all(right), "{given:?}, {PERMITS} and {parts}; {NO_EXCUSE}");
}

/// One for each request that is let through, and one in each worker that hears of the refusal; more of
/// those only while the first of them is under way, as all are that come while the machine stands still.
#[track_caller]
fn too_many(asks: u64, during: Range<u64>) -> Option<Complaint> {
    let least = ACCOUNTS as u64 * u64::from(PERMITS);
    let most = least + 3 * 6 * ACCOUNTS as u64;
    println!("{asks} asks for {least} permits");
    assert!(asks >= least, "{asks} asks");
    let longest = Duration::from_micros(asks.checked_sub(most)? * 1_000_000 / u64::from(RATE));
    Some(Complaint::new(format!("{asks} asks"), during, longest))
}

#[test]
fn a_gateway_that_is_alone_gives_no_more_than_its_part_in_each_worker() {
    alone();
    let mut fleet = Fleet::start_at_redis(TIMEOUT, LIMITS);
    fleet.comes_together("/free");
    assert_eq!(fleet.give("before"), [PERMITS; ACCOUNTS]);
    fleet.redis.kill();
    fleet.give("meanwhile");
    let are_alone = || fleet.envoys.iter().all(counts_alone).then_some(());
    eventually("all gateways to be alone", are_alone);
    let (workers, part) = (6, PERMITS.div_ceil(3));
    let given = fleet.give("alone");
    assert!(given.iter().all(|given| (1..=workers * part).contains(given)), "{given:?}");
    let sum: u32 = given.iter().sum();
    assert!(sum > 8 * ACCOUNTS as u32, "workers are stingier than their parts: {given:?}");
    // What a worker let through before is less of its part.
    let more: u32 = fleet.give("before").iter().sum();
    assert!(more < sum * 8 / 10, "{more}, and {sum} to those who had nothing");
    fleet.redis.restart();
    fleet.comes_together("/free");
    assert!(fleet.give("before").iter().all(|given| *given <= PERMITS), "it is empty");
    fleet.assert_unharmed();
}
