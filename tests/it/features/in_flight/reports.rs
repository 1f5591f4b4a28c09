//! Reports about requests in flight, and their remaining slots.

use std::rc::Rc;

use diana_limiter::{Limiter, Verdict};
use diana_policy::time::Now;
use diana_store::permit::Permit;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeMetrics, FakeRequest};
use kit::store::gateway::START;

use super::limiter;

fn admit(limiter: &mut Limiter, clock: &FakeClock) -> Permit {
    match limiter.decide(&FakeRequest::get("/"), 0, clock) {
        Verdict::Admit(permit, _) => permit,
        other => panic!("{other:?}"),
    }
}

fn end(limiter: &mut Limiter, permit: Permit, now: Now) {
    limiter.finish(permit, &FakeEnding::answered(200), now);
}

#[test]
fn headers_report_slots_and_a_short_retry_delay() {
    for scope in ["local", "gateway"] {
        let document = format!(
            "limits: [{{Url: /, rules: [{{name: few, actor: all, in_flight: 2, scope: {scope}}}]}}]\n\
             accepted: {{headers: true}}"
        );
        let mut limiter = limiter(&document, &Rc::default());
        let clock = FakeClock::at(START);
        let Verdict::Admit(first, Some(report)) = limiter.decide(&FakeRequest::get("/"), 0, &clock)
        else {
            panic!();
        };
        let policy = ("ratelimit-policy", "\"few\";q=2;qu=\"concurrent-requests\"");
        assert_eq!(
            report.headers().iter().collect::<Vec<_>>(),
            [policy, ("ratelimit", "\"few\";r=1;t=1")]
        );
        let second = admit(&mut limiter, &clock);
        let Verdict::Refuse(refusal) = limiter.decide(&FakeRequest::get("/"), 0, &clock) else {
            panic!();
        };
        let headers = refusal.headers();
        for (name, value) in [policy, ("ratelimit", "\"few\";r=0;t=1"), ("retry-after", "1")] {
            assert_eq!(headers.get(name), Some(value), "{headers:?}");
        }
        let metrics = FakeMetrics::default();
        limiter.flush("n", &metrics);
        assert_eq!(metrics.of("diana.n.rule.few.in_flight"), 2);
        end(&mut limiter, first, clock.0.get());
        drop(second);
        limiter.return_charges(clock.0.get());
        limiter.flush("n", &metrics);
        assert_eq!(metrics.of("diana.n.rule.few.in_flight"), 0);
        assert_eq!(metrics.of("diana.n.rule.few.settled"), 0);
        limiter.retire("n", clock.0.get(), &metrics);
        assert_eq!(metrics.of("diana.n.rule.few.keys"), 0);
    }
}

/// Memory limits the number of open requests: further ones are refused, and costs remain as
/// reserved.
#[test]
fn open_requests_beyond_memory_are_refused() {
    const MOST: usize = 250_000;
    let document =
        "limits: [{Url: /, rules: [{name: few, actor: all, in_flight: 1000000, scope: local}]}]";
    let (mut limiter, clock) = (limiter(document, &Rc::default()), FakeClock::at(START));
    let mut open: Vec<Permit> = (0..MOST).map(|_| admit(&mut limiter, &clock)).collect();
    let is_refused = |limiter: &mut Limiter| {
        matches!(limiter.decide(&FakeRequest::get("/"), 0, &clock), Verdict::Refuse(_))
    };
    assert!(is_refused(&mut limiter));
    end(&mut limiter, open.pop().unwrap(), clock.0.get());
    open.push(admit(&mut limiter, &clock));
    assert!(is_refused(&mut limiter));
    drop(open);
    assert!(!is_refused(&mut limiter));
}

#[test]
fn open_costs_beyond_memory_stay_as_reserved() {
    const MOST: usize = 250_000;
    let document = "limits: [{Url: /, rules: [{name: r, actor: all, unit: day, rpu: 100000000, algo: W, scope: local,
      cost: {response: {header: x-used}, reserve: 2, max: 9}}]}]";
    let (mut limiter, clock) = (limiter(document, &Rc::default()), FakeClock::at(START));
    let open: Vec<Permit> = (0..MOST).map(|_| admit(&mut limiter, &clock)).collect();
    for _ in 0..3 {
        assert!(
            matches!(limiter.decide(&FakeRequest::get("/"), 0, &clock), Verdict::Admit(permit, _) if permit.is_none())
        );
    }
    for permit in open {
        end(&mut limiter, permit, clock.0.get());
    }
    assert!(!admit(&mut limiter, &clock).is_none());
    let metrics = FakeMetrics::default();
    limiter.flush("n", &metrics);
    let of = |what: &str| metrics.of(&format!("diana.n.rule.r.{what}"));
    assert_eq!((of("unsettled"), of("settled"), of("in_flight")), (3, MOST as i64, 0));
}
