//! Usage that becomes known after the window in which it was reserved.

use std::rc::Rc;

use diana_core::engine::Engine;
use diana_core::key::Seed;
use diana_core::permit::Permit;
use diana_core::time::{Now, SECOND};
use diana_core::verdict::Verdict;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::store::gateway::START;

fn engine(scope: &str) -> Engine {
    let document = format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: all, unit: minute, rpu: 1000, algo: W, scope: {scope},
           cost: {{response: {{header: x-tokens-used}}, reserve: 100, max: 5000}}}}]}}]"
    );
    let policy =
        diana_config::parse(document.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
    let data = Rc::new(FakeSharedData::default());
    Engine::alone(policy, Seed { k0: 1, k1: 2 }, data).unwrap()
}

fn admitted(engine: &mut Engine, now: Now) -> Option<Permit> {
    let clock = FakeClock::default();
    clock.0.set(now);
    match engine.decide(&FakeRequest::get("/"), &clock) {
        Verdict::Admit(permit, _) => Some(permit),
        Verdict::Refuse(_) => None,
        other => panic!("{other:?}"),
    }
}

/// The example of the page on settled costs: 800 of 900 permits count in the second window, so two reservations fit.
#[test]
fn usage_known_late_is_charged_to_the_window_then() {
    assert_eq!(START.wall % (60 * SECOND), 0);
    for scope in ["local", "gateway"] {
        let mut engine = engine(scope);
        let (start, end) = (START.later(50 * SECOND), START.later(80 * SECOND));
        let mut stream = admitted(&mut engine, start).expect("it fits");
        let ending = FakeEnding::answered(200).header("x-tokens-used", "900");
        engine.hear_response(&mut stream, &ending);
        engine.settle(stream, &ending, end);
        let open: Vec<Permit> = (0..9).filter_map(|_| admitted(&mut engine, end)).collect();
        assert_eq!(open.len(), 2, "{scope}");
    }
}
