//! What is told of requests in flight, and what is left of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use diana_core::engine::Engine;
use diana_core::permit::Permit;
use diana_core::port::{Metrics, SharedData};
use diana_core::time::{Now, SECOND};
use diana_core::verdict::Verdict;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::store::gateway::START;

use super::{AGAIN, engine};

/// What all metrics come to.
#[derive(Default)]
pub struct Sums(RefCell<HashMap<String, i64>>);

impl Sums {
    pub fn of(&self, name: &str) -> i64 {
        self.0.borrow().get(name).copied().unwrap_or(0)
    }
}

impl Metrics for Sums {
    fn count(&self, name: &str, amount: u64) {
        self.gauge(name, amount as i64);
    }

    fn gauge(&self, name: &str, change: i64) {
        *self.0.borrow_mut().entry(name.into()).or_default() += change;
    }

    fn set(&self, _: &str, _: u64) {}

    fn record(&self, _: &str, _: u64) {}
}

fn clock() -> FakeClock {
    let clock = FakeClock::default();
    clock.0.set(START);
    clock
}

fn admit(engine: &mut Engine, clock: &FakeClock) -> Permit {
    match engine.decide(&FakeRequest::get("/"), clock) {
        Verdict::Admit(permit, _) => permit,
        other => panic!("{other:?}"),
    }
}

fn end(engine: &mut Engine, permit: Permit, now: Now) {
    engine.settle(permit, &FakeEnding::answered(200), now);
}

#[test]
fn clients_are_told_how_many_and_to_come_again_soon() {
    for scope in ["local", "gateway"] {
        let document = format!(
            "limits: [{{Url: /, rules: [{{name: few, actor: all, in_flight: 2, scope: {scope}}}]}}]\n\
             accepted: {{headers: true}}"
        );
        let mut engine = engine(&document, &Rc::default());
        let clock = clock();
        let Verdict::Admit(first, Some(report)) = engine.decide(&FakeRequest::get("/"), &clock)
        else {
            panic!();
        };
        let policy = "\"few\";q=2;qu=\"concurrent-requests\"".to_owned();
        assert_eq!(
            report.headers(),
            [("ratelimit-policy", policy.clone()), ("ratelimit", "\"few\";r=1;t=1".into())]
        );
        let second = admit(&mut engine, &clock);
        let Verdict::Refuse(refusal) = engine.decide(&FakeRequest::get("/"), &clock) else {
            panic!();
        };
        let headers = refusal.headers();
        assert!(headers.contains(&("ratelimit-policy", policy)), "{headers:?}");
        assert!(headers.contains(&("ratelimit", "\"few\";r=0;t=1".into())), "{headers:?}");
        assert!(headers.contains(&("retry-after", "1".into())), "{headers:?}");
        let metrics = Sums::default();
        engine.flush("n", &metrics);
        assert_eq!(metrics.of("diana.n.rule.few.in_flight"), 2);
        end(&mut engine, first, clock.0.get());
        drop(second);
        engine.take_back(clock.0.get());
        engine.flush("n", &metrics);
        assert_eq!(metrics.of("diana.n.rule.few.in_flight"), 0);
        assert_eq!(metrics.of("diana.n.rule.few.settled"), 0);
        engine.retire("n", clock.0.get(), &metrics);
        assert_eq!(metrics.of("diana.n.rule.few.keys"), 0);
    }
}

/// Who comes when a table is full shares places, but no longer than it takes to look again after requests have ended.
#[test]
fn a_full_table_has_room_again_soon_after_requests_have_ended() {
    let document = "keys: 50\nlimits: [{Url: /, rules: [{name: r, actor: device, in_flight: 1, scope: local}]}]";
    let (mut engine, clock) = (engine(document, &Rc::default()), clock());
    let (metrics, mut open) = (Sums::default(), Vec::new());
    let overflow = |engine: &mut Engine, callers: Range<u32>, open: &mut Vec<Permit>| {
        let before = metrics.of("diana.n.rule.r.overflow");
        for caller in callers {
            let request = FakeRequest::get("/").header("x-device-id", caller.to_string());
            if let Verdict::Admit(permit, _) = engine.decide(&request, &clock) {
                open.push(permit);
            }
        }
        engine.flush("n", &metrics);
        metrics.of("diana.n.rule.r.overflow") - before
    };
    assert_eq!(overflow(&mut engine, 0..50, &mut open), 0);
    assert_eq!(overflow(&mut engine, 50..55, &mut open), 5);
    for permit in open.drain(..) {
        end(&mut engine, permit, clock.0.get());
    }
    clock.0.set(clock.0.get().later(SECOND / 10));
    assert_eq!(overflow(&mut engine, 55..60, &mut open), 0);
}

/// A rule in shadow counts those that it would have let in.
#[test]
fn in_shadow_nobody_is_refused() {
    let document = "limits: [{Url: /, rules: [{actor: all, in_flight: 1, shadow: true}]}]";
    let (mut engine, clock) = (engine(document, &Rc::default()), clock());
    let open: Vec<Permit> = (0..5).map(|_| admit(&mut engine, &clock)).collect();
    for permit in open {
        end(&mut engine, permit, clock.0.get());
    }
    let metrics = Sums::default();
    engine.flush("n", &metrics);
    assert_eq!(metrics.of("diana.n.rule.root-all-in_flight.shadow_refused"), 4);
    assert_eq!(metrics.of("diana.n.rule.root-all-in_flight.in_flight"), 0);
}

/// What no rule uses any more is written empty once those have died who held anything.
#[test]
fn nothing_of_a_rule_that_ended_keeps_memory() {
    let data = Rc::new(FakeSharedData::default());
    let document = "keys: 20\nlimits: [{Url: /, rules: [{actor: device, in_flight: 5}]}]";
    let (mut engine, clock) = (engine(document, &data), clock());
    let request = |number: usize| FakeRequest::get("/").header("x-device-id", number.to_string());
    let open: Vec<Verdict> =
        (0..100).map(|number| engine.decide(&request(number), &clock)).collect();
    let bytes = || -> usize {
        let slots = data.keys().into_iter().filter(|key| !key.ends_with("holders"));
        slots.map(|key| data.get(&key).unwrap().0.len()).sum()
    };
    let shared: Rc<dyn SharedData> = data.clone();
    let mut remains = engine.remains(&"alone".into(), &shared, clock.0.get().mono);
    let [remains] = remains.as_mut_slice() else { panic!() };
    let full = bytes();
    let work = |remains: &mut diana_core::store::remains::Remains| {
        while remains.due() <= clock.0.get().mono && remains.work(clock.0.get()) {}
    };
    for _ in 0..10 {
        clock.0.set(clock.0.get().later(SECOND / 2));
        engine.tidy(clock.0.get());
        work(remains);
    }
    assert_eq!(bytes(), full, "they are in flight");
    // It was first looked at after two seconds, and nobody knows when they end.
    assert_eq!(remains.due(), START.mono + 12 * SECOND);
    drop(open);
    drop(engine);
    for _ in 0..100 {
        clock.0.set(clock.0.get().later(AGAIN));
        work(remains);
    }
    assert!(bytes() < full / 10, "{} of {full}", bytes());
}

/// There is memory for so many open requests: then no more come in, and costs stay as they were reserved.
#[test]
fn more_open_requests_than_memory_is_there_for_are_refused() {
    const MOST: usize = 250_000;
    let document =
        "limits: [{Url: /, rules: [{name: few, actor: all, in_flight: 1000000, scope: local}]}]";
    let (mut engine, clock) = (engine(document, &Rc::default()), clock());
    let mut open: Vec<Permit> = (0..MOST).map(|_| admit(&mut engine, &clock)).collect();
    let is_refused = |engine: &mut Engine| {
        matches!(engine.decide(&FakeRequest::get("/"), &clock), Verdict::Refuse(_))
    };
    assert!(is_refused(&mut engine));
    end(&mut engine, open.pop().unwrap(), clock.0.get());
    open.push(admit(&mut engine, &clock));
    assert!(is_refused(&mut engine));
    drop(open);
    assert!(!is_refused(&mut engine));
}

#[test]
fn more_costs_than_memory_is_there_for_stay_as_they_were_reserved() {
    const MOST: usize = 250_000;
    let document = "limits: [{Url: /, rules: [{name: r, actor: all, unit: day, rpu: 100000000, algo: W, scope: local,
      cost: {response: {header: x-used}, reserve: 2, max: 9}}]}]";
    let (mut engine, clock) = (engine(document, &Rc::default()), clock());
    let open: Vec<Permit> = (0..MOST).map(|_| admit(&mut engine, &clock)).collect();
    for _ in 0..3 {
        assert!(
            matches!(engine.decide(&FakeRequest::get("/"), &clock), Verdict::Admit(permit, _) if permit.is_none())
        );
    }
    for permit in open {
        end(&mut engine, permit, clock.0.get());
    }
    assert!(!admit(&mut engine, &clock).is_none());
    let metrics = Sums::default();
    engine.flush("n", &metrics);
    let of = |what: &str| metrics.of(&format!("diana.n.rule.r.{what}"));
    assert_eq!((of("unsettled"), of("settled"), of("in_flight")), (3, MOST as i64, 0));
}
