//! Requests of which only some count: five wrong passwords and never a sixth, for any number of
//! concurrent requests.

use std::rc::Rc;

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_store::permit::Permit;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeMetrics, FakeRequest, FakeSharedData};
use kit::store::gateway::START;

fn limiter(rule: &str) -> Limiter {
    let document = format!("limits: [{{Url: /, rules: [{rule}]}}]");
    let policy = diana_config::Reader::default()
        .policy(document.as_bytes())
        .unwrap_or_else(|problems| panic!("{problems}"));
    let data = Rc::new(FakeSharedData::default());
    Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, data).unwrap()
}

fn request() -> FakeRequest {
    FakeRequest::get("/").from("192.0.2.1:4000")
}

/// Refusals due to open requests lead to no ban. With `on: counted` only counted outcomes do.
#[test]
fn bans_follow_counted_outcomes() {
    for (on, bans) in [("refused", false), ("counted", true)] {
        let mut limiter = limiter(&format!(
            "{{actor: address, unit: day, rpu: 3, algo: W, count: {{status: [401]}},
               ban: {{after: 3, within: 1h, for: 1h, on: {on}}}}}"
        ));
        let clock = FakeClock::at(START);
        let admit = |limiter: &mut Limiter| match limiter.decide(&request(), 0, &clock) {
            Verdict::Admit(permit, _) => Some(permit),
            Verdict::Refuse(_) => None,
            other => panic!("{other:?}"),
        };
        let open: Vec<Permit> = (0..3).filter_map(|_| admit(&mut limiter)).collect();
        assert_eq!(open.len(), 3);
        assert_eq!((0..10).filter_map(|_| admit(&mut limiter)).count(), 0);
        for permit in open {
            limiter.finish(permit, &FakeEnding::answered(200), clock.0.get());
        }
        for _ in 0..3 {
            let permit = admit(&mut limiter).expect("nobody is banned");
            limiter.finish(permit, &FakeEnding::answered(401), clock.0.get());
        }
        let Verdict::Refuse(refusal) = limiter.decide(&request(), 0, &clock) else {
            panic!("three have counted");
        };
        assert_eq!(refusal.by.state().starts_with("banned"), bans, "{}", refusal.by.state());
    }
}

#[test]
fn headers_report_reserved_permits() {
    for (limit, left) in [(5, 1), (4, 0)] {
        let mut limiter = limiter(&format!(
            "{{name: r, actor: address, unit: day, rpu: {limit}, algo: W, cost: 2, scope: local, count: {{status: [401]}}}}"
        ));
        let clock = FakeClock::at(START);
        let admit = |limiter: &mut Limiter| match limiter.decide(&request(), 0, &clock) {
            Verdict::Admit(permit, _) => permit,
            other => panic!("{other:?}"),
        };
        let refuses = |limiter: &mut Limiter| {
            let Verdict::Refuse(refusal) = limiter.decide(&request(), 0, &clock) else { panic!() };
            let headers = refusal.headers();
            for (name, value) in [
                ("ratelimit-policy", format!("\"r\";q={limit};w=86400")),
                ("ratelimit", format!("\"r\";r={left};t=1")),
            ] {
                assert_eq!(headers.get(name), Some(&*value), "{headers:?}");
            }
        };
        let open = [admit(&mut limiter), admit(&mut limiter)];
        refuses(&mut limiter);
        for (permit, status) in open.into_iter().zip([200, 401]) {
            limiter.finish(permit, &FakeEnding::answered(status), clock.0.get());
        }
        let open = admit(&mut limiter);
        refuses(&mut limiter);
        limiter.finish(open, &FakeEnding::answered(200), clock.0.get());
    }
}

/// The returned permits, the usage beyond reservations, and the requests with unknown usage.
#[test]
fn metrics_report_settlements() {
    let mut limiter = limiter(
        "{name: r, actor: address, unit: day, rpu: 1000, algo: W, scope: local,
          cost: {response: {header: x-used}, reserve: 5, max: 9}}",
    );
    let clock = FakeClock::at(START);
    let used = |used: &str| FakeEnding::answered(200).header("x-used", used);
    for ending in
        [used("2"), used("0"), used("8"), used("5"), used("many"), FakeEnding::answered(200)]
    {
        let Verdict::Admit(mut permit, _) = limiter.decide(&request(), 0, &clock) else { panic!() };
        limiter.on_response(&mut permit, &ending);
        limiter.finish(permit, &ending, clock.0.get());
    }
    let lines = FakeMetrics::default();
    limiter.flush("n", &lines);
    let mut lines = lines.0.take();
    lines.sort();
    // 3 and 5 permits of the first two are returned. The last two count with the maximum usage.
    lines.retain(|line| !line.contains('+'));
    let settled =
        ["allowed 6", "debt 11", "refunded 8", "settled 6", "untold_absent 1", "untold_unusable 1"];
    assert_eq!(lines, settled.map(|line| format!("diana.n.rule.r.{line}")));
}

/// Concurrent requests are admitted as long as one permit remains.
#[test]
fn zero_reserve_admits_concurrent_requests() {
    for scope in ["local", "gateway"] {
        let mut limiter = limiter(&format!(
            "{{actor: address, unit: day, rpu: 2, algo: W, scope: {scope},
              cost: {{response: {{header: x-used}}, reserve: 0, max: 9}}}}"
        ));
        let clock = FakeClock::at(START);
        let mut open: Vec<Permit> = Vec::new();
        for _ in 0..9 {
            let Verdict::Admit(permit, _) = limiter.decide(&request(), 0, &clock) else { panic!() };
            open.push(permit);
        }
        let used = FakeEnding::answered(200).header("x-used", "2");
        let mut permit = open.remove(0);
        limiter.on_response(&mut permit, &used);
        limiter.finish(permit, &used, clock.0.get());
        assert!(matches!(limiter.decide(&request(), 0, &clock), Verdict::Refuse(_)), "{scope}");
    }
}

/// A shadow rule bans no caller, whatever counts.
#[test]
fn shadow_rule_with_count_bans_no_caller() {
    for (shadow, bans) in [(true, 0), (false, 1)] {
        let mut limiter = limiter(&format!(
            "{{name: r, actor: address, unit: day, rpu: 9, algo: W, scope: local, shadow: {shadow},
               count: {{status: [401]}}, ban: {{after: 3, within: 1h, for: 1h, on: counted}}}}"
        ));
        let clock = FakeClock::at(START);
        for _ in 0..3 {
            let Verdict::Admit(permit, _) = limiter.decide(&request(), 0, &clock) else { panic!() };
            limiter.finish(permit, &FakeEnding::answered(401), clock.0.get());
        }
        let lines = FakeMetrics::default();
        limiter.maintain(clock.0.get());
        limiter.flush("n", &lines);
        assert_eq!(
            lines.0.borrow().iter().filter(|line| line.ends_with(".r.bans 1")).count(),
            bans
        );
    }
}
