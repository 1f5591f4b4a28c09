//! A limiter's work between requests, and its shared data.

use diana_limiter::{Limiter, Verdict};
use diana_policy::port::{Clock, SharedData};
use diana_policy::time::SECOND;
use kit::fake::{CountingData, FakeClock};
use kit::store::gateway::START;
use std::cell::Cell;
use std::rc::Rc;

use super::{Gate, from};

const MILLISECOND: u64 = SECOND / 1000;

fn limiter(rules: &str, data: Rc<dyn SharedData>) -> Limiter {
    let text = format!("limits: [{{Url: /, rules: [{rules}]}}]");
    super::limiter(&text, data)
}

/// Leases and hot callers need maintenance without requests.
#[test]
fn leases_and_hot_callers_keep_maintenance_active() {
    const SHARED: &str = "{actor: account, unit: second, rpu: 100000, algo: W, scope: gateway}";
    const HOT: &str = "{actor: account, unit: second, rpu: 100000, algo: W, scope: local, \
                       hot: {over: 10, per: 1s}}";
    const LOCAL: &str = "{actor: account, unit: second, rpu: 100000, algo: W, scope: local}";
    for (rules, more) in [
        (vec![LOCAL], false),
        (vec![SHARED], true),
        (vec![SHARED, LOCAL], true),
        (vec![LOCAL, SHARED], true),
        (vec![HOT], true),
        (vec![HOT, LOCAL], true),
        (vec![SHARED, HOT], true),
    ] {
        let mut gate = Gate::new(&format!("limits: [{{Url: /, rules: [{}]}}]", rules.join(", ")));
        for _ in 0..300 {
            assert!(gate.admits(&from("ann")));
            gate.wait(MILLISECOND);
        }
        let mut maintain = || {
            let more = gate.limiter.maintain(gate.clock.now());
            gate.wait(20 * MILLISECOND);
            more
        };
        assert_eq!(maintain(), more, "{rules:?}");
        // Hot callers are processed at intervals, and remaining work is reported in between.
        assert!(maintain() || !rules.contains(&HOT), "{rules:?}");
        (0..400).for_each(|_| _ = maintain());
        assert!((0..5).any(|_| !maintain()), "{rules:?} never rests");
    }
}

/// Workers combine their refusals at intervals, since one write per refusal would be one per
/// request.
#[test]
fn refusals_are_reported_by_maintenance() {
    const RULE: &str = "{actor: account, unit: day, rpu: 1, algo: W, scope: gateway, \
                        ban: {after: 100, within: 10s, for: 1m}}";
    let data = Rc::new(CountingData::default());
    let mut workers = [(); 2].map(|()| limiter(RULE, data.clone()));
    let clock = FakeClock::at(START);
    let mut is_banned = |number: usize, maintains: bool| {
        let verdict = workers[number].decide(&from("ann"), 0, &clock);
        clock.0.set(clock.now().later(MILLISECOND));
        if maintains {
            workers[number].maintain(clock.now());
        }
        matches!(verdict, Verdict::Refuse(it) if it.by.state().starts_with("banned "))
    };
    assert!(!is_banned(0, false));
    let writes = data.writes.get();
    assert!((0..98).all(|number| !is_banned(number % 2, true)));
    let writes = data.writes.get() - writes;
    assert!((2..20).contains(&writes), "{writes} writes");
    clock.0.set(clock.now().later(SECOND));
    // Each has refused fewer requests than required.
    let refused = (0..8).take_while(|number| !is_banned(number % 2, true)).count();
    assert!((1..8).contains(&refused), "{refused}");
}

/// Data of removed rules: callers and bans of `gateway` rules, except quotas, and leases.
#[test]
fn removed_gateway_rules_leave_shared_data() {
    const BAN: &str = "ban: {after: 3, within: 10s, for: 1m}";
    for (rule, remains) in [
        ("scope: local", 0),
        ("scope: gateway", 1),
        ("scope: global", 2),
        (&*format!("scope: local, {BAN}"), 0),
        (&*format!("scope: gateway, {BAN}"), 2),
        ("scope: local, quota: {accounts: 1000}", 0),
    ] {
        let data: Rc<dyn SharedData> = Rc::new(CountingData::default());
        let rule = format!("{{actor: account, unit: day, rpu: 9, algo: W, {rule}}}");
        let limiter = limiter(&format!("{rule}, {rule}"), data.clone());
        assert_eq!(limiter.remains(&"test".into(), &data, 0).len(), 2 * remains, "{rule}");
    }
}

/// Leases are returned eighty times a second, and hot callers are processed ten times.
#[test]
fn hot_callers_are_maintained_less_often_than_leases() {
    const RULE: &str = "{actor: account, unit: second, rpu: 100000, algo: W, scope: gateway, \
                        hot: {over: 10, per: 1s}}";
    let data = Rc::new(CountingData::default());
    let (mut limiter, clock) = (limiter(RULE, data.clone()), FakeClock::default());
    clock.0.set(START);
    let writes = Rc::new(Cell::new(0));
    let count = writes.clone();
    *data.data.before_swap.borrow_mut() = Some(Box::new(move |_, key| {
        count.set(count.get() + u64::from(key.contains("hot")));
    }));
    for _ in 0..80 {
        assert!(matches!(limiter.decide(&from("ann"), 0, &clock), Verdict::Admit(..)));
        clock.0.set(clock.now().later(SECOND / 80));
        limiter.maintain(clock.now());
    }
    assert!((5..=10).contains(&writes.get()), "{} writes", writes.get());
}
