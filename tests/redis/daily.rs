//! Daily quotas of many accounts.

use std::collections::HashMap;

use diana_policy::Quota;
use diana_policy::bloom::{Filter, Shape};
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::Unit;
use diana_redis::protocol::{Charge, Numbers};
use fastrand::Rng;

use kit::rules::{ask_of, charge, pipeline_of_asks};
use kit::seed;
use kit::server::{Decided, Server};

const DAY: u64 = 86_400_000_000;
const NOON: u64 = 20_000 * DAY + DAY / 2;

/// A quota with its filter.
struct Rule {
    quota: Quota,
    shape: Shape,
}

impl Rule {
    fn new(rpu: u64, cost: u64, accounts: u64) -> Rule {
        let quota = Quota { cost, ..Quota::new(Unit::Day, rpu) };
        Rule { quota, shape: Shape::new(accounts, 10_000, rpu / cost) }
    }

    fn charge(&self, caller: Key) -> Charge {
        let cost = self.quota.cost;
        let numbers = Numbers::of_quota(&self.quota, self.shape);
        Charge { cost, unit_cost: cost, ..charge(3, caller, numbers) }
    }

    /// The decisions about one request of each caller.
    fn ask(&self, server: &Server, callers: &[Key], now: u64) -> Decided {
        let ask = |caller: &Key| ask_of(0, vec![self.charge(*caller)]);
        server.decide(&pipeline_of_asks(Some(now), callers.iter().map(ask).collect()))
    }

    /// Whether a request is admitted, otherwise its retry delay, and the remaining permits.
    fn one(&self, server: &Server, caller: Key, now: u64) -> (bool, Option<Retry>, u64) {
        let outcome = &self.ask(server, &[caller], now).asks[0];
        let rule = outcome.rules[0];
        assert_eq!(outcome.wait.is_some(), rule.retry.is_none());
        (outcome.wait.is_some(), rule.retry, rule.remaining)
    }
}

fn caller(rng: &mut Rng) -> Key {
    Key { hash: rng.u64(..), second_hash: rng.u64(..) }
}

#[test]
fn redis_counts_like_the_filter_in_rust() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let (mut admitted, mut refused) = (0, 0);
    for (rpu, cost) in [(1, 1), (3, 1), (10, 3), (15, 1), (200, 1), (5_000, 7), (1_000_000_000, 1)]
    {
        let rule = Rule::new(rpu, cost, 300);
        let mut filter = Filter::new(rule.shape);
        let callers: Vec<Key> = (0..600).map(|_| caller(&mut rng)).collect();
        let most = rpu.min(rule.shape.most() * cost);
        for _ in 0..60 {
            let asked: Vec<Key> = (0..40).map(|_| callers[rng.usize(0..600)]).collect();
            let decided = rule.ask(&server, &asked, NOON);
            assert_eq!(decided.corrupt, 0);
            for (key, outcome) in asked.into_iter().zip(decided.asks) {
                let fits = filter.count(key) * cost + cost <= most;
                assert_eq!(outcome.wait.is_some(), fits, "{rpu}");
                if fits {
                    filter.add(key, 1);
                } else {
                    assert_eq!(outcome.rules[0].retry, Some(Retry::After(DAY / 2)));
                }
                assert_eq!(outcome.rules[0].remaining, most - filter.count(key) * cost);
                (admitted, refused) = (admitted + u64::from(fits), refused + u64::from(!fits));
            }
        }
        server.command(&["FLUSHALL"]);
    }
    assert!(admitted > 3_000 && refused > 1_000, "{admitted} and {refused}");
}

#[test]
fn each_day_gives_each_account_its_permits() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let rule = Rule::new(2, 1, 100_000);
    let callers: Vec<Key> = (0..20).map(|_| caller(&mut rng)).collect();
    let (mut now, mut given) = (NOON, HashMap::new());
    for _ in 0..2_000 {
        let day = now / DAY;
        now += match rng.u8(0..20) {
            0 => DAY - now % DAY - 1,
            1 => DAY - now % DAY,
            2 => rng.u64(0..DAY),
            _ => rng.u64(0..1_000_000),
        };
        if now / DAY != day {
            given.clear();
        }
        let one = callers[rng.usize(0..callers.len())];
        let used = given.entry(one.hash).or_insert(0);
        let (admitted, retry, left) = rule.one(&server, one, now);
        assert_eq!(admitted, *used < 2);
        *used += u64::from(admitted);
        assert_eq!(left, 2 - *used);
        let midnight = (!admitted).then(|| Retry::After(DAY - now % DAY));
        assert_eq!(retry, midnight);
    }
}

#[test]
fn step_back_reopens_no_day() {
    let server = Server::start();
    let rule = Rule::new(1, 1, 1_000);
    let one = Key { hash: 1 << 40, second_hash: 5 };
    let midnight = NOON + DAY / 2;
    assert!(rule.one(&server, one, midnight - 5).0);
    assert!(rule.one(&server, one, midnight).0, "the next day");
    // After a step back by an hour, the clock continues from midnight.
    let set_back = midnight - DAY / 24;
    let (admitted, retry, _) = rule.one(&server, one, set_back);
    assert!(!admitted);
    assert_eq!(retry, Some(Retry::After(DAY)), "one day after it began, not one hour later");
    assert!(!rule.one(&server, one, set_back + DAY - 1).0);
    assert!(rule.one(&server, one, set_back + DAY).0);
}

#[test]
fn foreign_value_counts_as_empty_and_is_replaced() {
    let server = Server::start();
    let rule = Rule::new(1, 1, 1_000);
    let one = Key { hash: 1 << 40, second_hash: 5 };
    assert!(rule.one(&server, one, NOON).0);
    let key = &server.pieces()[0];
    for spoil in [["SET", key, "short"], ["LPUSH", key, "x"], ["SADD", key, "x"]] {
        server.command(&["DEL", key]);
        server.command(&spoil);
        assert_eq!(rule.ask(&server, &[one], NOON).corrupt, 1, "{spoil:?}");
        assert!(!rule.one(&server, one, NOON).0);
    }
    server.command(&["SET", key, &"x".repeat(4_000)]);
    assert_eq!(rule.ask(&server, &[one], NOON).corrupt, 1);
}

#[test]
fn filter_takes_the_memory_of_one_day() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let rule = Rule::new(3, 1, 100_000);
    let bytes = rule.shape.bytes();
    for day in 0..5 {
        for _ in 0..200 {
            let callers: Vec<Key> = (0..100).map(|_| caller(&mut rng)).collect();
            rule.ask(&server, &callers, NOON + day * DAY);
        }
        let keys = server.pieces();
        let used: u64 = server.bytes_of(&keys).iter().sum();
        println!("{used} bytes for a filter of {bytes}");
        assert!(used < bytes + bytes / 8, "{used} bytes for a filter of {bytes}");
        let lives: u64 = server.command(&["PTTL", &keys[0]]).parse().unwrap();
        assert!((86_000_000..=86_401_000).contains(&lives), "{lives}");
    }
}
