//! Requests that contain their cost.

use std::rc::Rc;

use diana_limiter::Verdict;
use diana_policy::time::SECOND;
use diana_policy::tree::Tree;
use diana_policy::{IdentitySource, Told};
use diana_request::cost::Teller;
use fastrand::Rng;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};

fn told(kind: &'static str, value: Tree, is_text: bool) -> Told {
    let source = IdentitySource { kind, value, options: Vec::new() };
    Told { source, is_text, default: 7 }
}

fn by_header() -> Teller {
    Teller::new(&told("header", Tree::Text("x-cost".into()), false), 1000).unwrap()
}

fn by_metadata(is_text: bool) -> Teller {
    let path = ["ns", "cost"].map(|name| Tree::Text(name.into()));
    Teller::new(&told("metadata", Tree::List(path.into()), is_text), 1000).unwrap()
}

fn in_metadata(value: &[u8]) -> FakeRequest {
    FakeRequest::get("/").property(&["metadata", "filter_metadata", "ns", "cost"], value)
}

#[test]
fn a_header_is_read() {
    for (value, cost) in [
        ("1", 1),
        ("250", 250),
        (" 12 ", 12),
        ("000012", 12),
        ("1000", 1000),
        ("1001", 1000),
        ("1000000000000000000000000000000", 1000),
        ("18446744073709551616", 1000),
        ("0", 1),
        ("2.0", 2),
        ("2.000001", 3),
        ("0.5", 1),
        // Repeated, and joined by proxies.
        ("1, 2", 1000),
        ("1,", 1000),
        // Invalid numbers.
        ("-5", 7),
        ("+5", 7),
        ("1e3", 7),
        ("0x10", 7),
        ("1_000", 7),
        (".5", 7),
        ("5.", 7),
        ("1.2.3", 7),
        ("five", 7),
        ("", 7),
        ("\u{663}", 7),
    ] {
        let request = FakeRequest::get("/").header("x-cost", value);
        assert_eq!(by_header().cost(&request), cost, "{value:?}");
    }
    assert_eq!(by_header().cost(&FakeRequest::get("/")), 7);
    let twice = FakeRequest::get("/").header("x-cost", "1").header("x-cost", "1");
    assert_eq!(by_header().cost(&twice), 1000);
    assert_eq!(by_header().cost(&FakeRequest::get("/").header("x-cost", [0xff, 0x31])), 7);
}

#[test]
fn metadata_is_read() {
    for (value, cost) in [
        (1.0, 1),
        (250.0, 250),
        (2.5, 3),
        (0.0, 1),
        (1e30, 1000),
        (f64::INFINITY, 1000),
        (-1.0, 7),
        (f64::NAN, 7),
        (f64::NEG_INFINITY, 7),
    ] {
        let cost_of = |request| by_metadata(false).cost(&request);
        assert_eq!(cost_of(in_metadata(&f64::to_le_bytes(value))), cost, "{value}");
    }
    for (value, is_text, cost) in [
        // Eight characters may also be the bytes of a number, so the configuration must specify the
        // type.
        ("00000250", true, 250),
        ("00000250", false, 1),
        ("250", false, 7),
        ("250", true, 250),
        ("", true, 7),
        ("\u{1}", false, 7),
    ] {
        let request = in_metadata(value.as_bytes());
        assert_eq!(by_metadata(is_text).cost(&request), cost, "{value:?} {is_text}");
    }
    assert_eq!(by_metadata(true).cost(&FakeRequest::get("/")), 7);
}

/// For any costs, a caller gets exactly the permits that fit.
#[test]
fn what_fits_is_let_through() {
    let mut rng = Rng::with_seed(kit::seed::next());
    for (algo, scope) in [("W", "local"), ("W", "gateway"), ("TB", "local"), ("TB", "gateway")] {
        let text = format!(
            "limits: [{{Url: /, rules: [{{name: own, actor: device, unit: day, rpu: 500, algo: {algo}, scope: {scope}, \
             cost: {{header: x-cost, default: 7, max: 90}}}}, {{actor: all, unit: day, rpu: 100000}}]}}]"
        );
        let mut limiter = crate::limiter::limiter(&text, Rc::new(FakeSharedData::default()));
        let (clock, mut used) = (FakeClock::default(), 0);
        for _ in 0..200 {
            let (value, cost) = match rng.u64(0..120) {
                0 => ("none".into(), 7),
                cost => (cost.to_string(), cost.min(90)),
            };
            let request = FakeRequest::get("/").from("192.0.2.1:4000").header("x-cost", &value);
            let verdict = limiter.decide(&request, &clock);
            let fits = used + cost <= 500;
            assert_eq!(verdict.is_pass(), fits, "{value} with {used} used, {algo} {scope}");
            if let Verdict::Refuse(refusal) = &verdict {
                assert_eq!(&*refusal.by.rule, "own");
            }
            used += if fits { cost } else { 0 };
            let now = clock.0.get();
            // Rare enough to avoid leases.
            clock.0.set(now.later(rng.u64(SECOND / 100..SECOND / 50)));
            if rng.u8(0..9) == 0 {
                limiter.tidy(clock.0.get());
            }
        }
        assert!(used > 450, "{used}");
    }
}

/// The estimate of a busy caller's demand.
#[test]
fn what_most_requests_take_is_what_is_meant_where_they_say_nothing() {
    let usual = |cost: &str| {
        let document = format!(
            "limits: [{{Url: /, rules: [{{actor: all, rpu: 100, unit: day, cost: {cost}}}]}}]"
        );
        let policy = crate::config::policy(&document);
        policy.limits[0].rules[0].usual_cost()
    };
    assert_eq!(usual("4"), 4);
    assert_eq!(usual("{header: x-cost, default: 3, max: 9}"), 3);
}
