//! The documented behaviour of the examples.

use diana_policy::time::SECOND;
use kit::fake::FakeRequest;

use super::Gate;

const HOUR: u64 = 3_600 * SECOND;

fn nameless(path: &str) -> FakeRequest {
    FakeRequest { method: Some("POST".into()), ..FakeRequest::get(path) }
}

fn post(path: &str, account: &str) -> FakeRequest {
    nameless(path).header("x-account-id", account).from("192.0.2.1:40000")
}

#[test]
fn keys_and_addresses_without_a_key_are_limited_and_invented_keys_too() {
    let mut gate = Gate::new(include_str!("../../../envoy/examples/api-key.yaml"));
    let from = |address: &str| FakeRequest::get("/").from(&format!("{address}:40000"));
    let keyed = |key: &str, address| from(address).header("x-api-key", key);
    let mut admitted = |request: &dyn Fn(usize) -> FakeRequest| {
        (0..2_000).filter(|n| gate.admits(&request(*n))).count()
    };
    assert_eq!(admitted(&|_| keyed("a", "192.0.2.1")), 100);
    // The key has no permits left at another address either, and another key has.
    assert_eq!(admitted(&|_| keyed("a", "192.0.2.2")), 0);
    assert_eq!(admitted(&|_| keyed("b", "192.0.2.2")), 100);
    assert_eq!(admitted(&|_| from("192.0.2.3")), 100);
    assert_eq!(admitted(&|n| keyed(&n.to_string(), "192.0.2.4")), 1_000);
}

#[test]
fn points_limit_shares_per_network() {
    let mut gate = Gate::new(include_str!("../../../envoy/examples/share-points.yaml"));
    for _ in 0..2 {
        for account in ["ann", "bob"] {
            for (path, most) in [("/share/qzone", 2), ("/share/weibo", 3)] {
                let admitted = (0..9).filter(|_| gate.admits(&post(path, account))).count();
                assert_eq!(admitted, most, "{path}");
            }
        }
        // It is 06:14 in China. The day ends less than 24 hours later.
        gate.wait(18 * HOUR);
    }
    assert!(gate.admits(&FakeRequest::get("/share/qzone").header("x-account-id", "ann")));
    assert!(!gate.admits(&nameless("/share/qzone")), "nobody's points");
}

#[test]
fn posts_are_limited_by_day_and_burst() {
    let mut gate = Gate::new(include_str!("../../../envoy/examples/posts-a-day.yaml"));
    let mut posts = 0;
    for minute in 0..60 {
        let here = (0..9).filter(|_| gate.admits(&post("/posts", "ann"))).count();
        assert!(here <= 5, "{here} in minute {minute}");
        posts += here;
        // As the timer does: unused leases are returned.
        gate.wait(SECOND / 5);
        gate.limiter.maintain(gate.clock.0.get());
        gate.wait(60 * SECOND);
    }
    assert_eq!(posts, 50);
    assert!(gate.admits(&post("/posts", "bob")));
    gate.wait(18 * HOUR);
    assert!(gate.admits(&post("/posts", "ann")));
}

/// A customer with a plan in its token.
fn caller(name: &str, plan: &str) -> FakeRequest {
    let claim =
        |claim| ["metadata", "filter_metadata", "envoy.filters.http.jwt_authn", "claims", claim];
    FakeRequest::get("/api").property(&claim("sub"), name).property(&claim("plan"), plan)
}

#[test]
fn calls_are_limited_by_month_and_ten_seconds() {
    let mut gate = Gate::new(include_str!("../../../envoy/examples/monthly-quota.yaml"));
    let (free, paid) = (caller("ann", "free"), caller("bob", "paid"));
    let mut calls = [0; 2];
    for _ in 0..210 {
        for (caller, calls) in [&free, &paid].into_iter().zip(&mut calls) {
            let here = (0..9).filter(|_| gate.admits(caller)).count();
            assert!(here <= 5, "{here} at once");
            *calls += here;
        }
        gate.wait(SECOND / 5);
        gate.limiter.maintain(gate.clock.0.get());
        gate.wait(11 * SECOND);
    }
    assert_eq!(calls, [1000, 1050]);
    // November 2023 ends at 23:00 UTC, in winter time.
    let left = 1_701_385_200 * SECOND - gate.clock.0.get().wall;
    gate.wait(left - 1);
    assert!(!gate.admits(&free) && gate.admits(&paid));
    gate.wait(1);
    assert!(gate.admits(&free));
    assert!(gate.admits(&caller("ann", "paid")), "who pays meanwhile has more at once");
}
