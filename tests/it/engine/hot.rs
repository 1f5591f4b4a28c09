//! Hot callers in whole decisions.

use diana_core::engine::Engine;
use diana_core::key::Seed;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::{Now, SECOND};
use kit::fake::{FakeRequest, FakeSharedData};
use std::cell::Cell;
use std::rc::Rc;

use super::{Gate, from};

const TICK: u64 = SECOND / 10;

impl Gate {
    fn tick(&mut self) -> bool {
        self.wait(TICK);
        self.engine.tidy(self.clock.0.get())
    }

    fn marks(&mut self, request: &FakeRequest) -> Vec<(String, String)> {
        self.engine.decide(request, &self.clock);
        self.engine.marks().map(|(header, rule)| (header.into(), rule.into())).collect()
    }
}

fn one(header: &str, rule: &str) -> Vec<(String, String)> {
    vec![(header.into(), rule.into())]
}

fn rule(scope: &str, rest: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: account, unit: second, rpu: 1000, scope: {scope}, \
         hot: {{over: 10, per: 1s, header: X-Hot-Key}}{rest}}}]}}]"
    )
}

#[test]
fn a_hot_caller_is_marked_for_as_long_as_he_is_hot() {
    for scope in ["local", "gateway", "global"] {
        let mut gate = Gate::new(&rule(scope, ""));
        assert!(gate.engine.tick_interval() <= TICK);
        for _ in 0..11 {
            assert_eq!(gate.marks(&from("ann")), []);
        }
        (0..10).for_each(|_| assert_eq!(gate.marks(&from("bob")), []));
        assert!(gate.tick() && gate.tick(), "{scope}");
        assert_eq!(gate.marks(&from("ann")), one("x-hot-key", "r"), "{scope}");
        assert!(gate.engine.is_hot());
        assert_eq!(gate.marks(&from("bob")), [], "{scope}");
        assert!(!gate.engine.is_hot());
        assert_eq!(gate.marks(&FakeRequest::get("/")), [], "who has no name is nobody");
        let metrics = gate.metrics();
        assert!(metrics.contains(&"diana.ns.rule.r.hot 1".into()), "{metrics:?}");
        assert!(metrics.contains(&"diana.ns.rule.r.hot_keys +1".into()), "{metrics:?}");
        let shown = if scope == "local" { "local" } else { "gateway" };
        let line = gate.engine.hot_callers().unwrap().line();
        let start =
            format!("hot rule=r scope={shown} over=10 per=1s keys=1 requests=21 missed=0 top=");
        let key = line.strip_prefix(&start).unwrap().strip_suffix(":11").unwrap();
        assert!(key.len() == 32 && u128::from_str_radix(key, 16).is_ok(), "{line}");
        // His one more request made bob hot, too. Without requests both cool down.
        (0..15).for_each(|_| _ = gate.tick());
        assert!(!gate.tick());
        assert_eq!(gate.marks(&from("ann")), [], "{scope}");
        let metrics = gate.metrics();
        assert!(metrics.contains(&"diana.ns.rule.r.hot_keys -1".into()), "{metrics:?}");
    }
}

#[test]
fn refused_requests_count_and_exempt_ones_do_not() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: r, actor: account, unit: hour, rpu: 1, scope: local,
           except: {paths: [/free]}, hot: {over: 10, per: 1s}}]}]",
    );
    let free = FakeRequest::get("/free").header("x-account-id", "bob");
    assert!((0..20).all(|_| gate.admits(&free)));
    assert!(gate.admits(&from("ann")));
    assert!((0..20).all(|_| !gate.admits(&from("ann"))));
    assert!(gate.tick() && gate.tick());
    let line = gate.engine.hot_callers().unwrap().line();
    assert!(line.contains("keys=1 requests=21 "), "{line}");
    assert_eq!(gate.marks(&from("ann")), [], "no header was asked for");
}

#[test]
fn names_are_told_only_where_the_configuration_says_so() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: r, actor: [account, net], unit: second, rpu: 99, scope: local,
           hot: {over: 10, per: 1s, reveal: true, top: 1}}]}]
actors: {net: [{client_address: {v4: 24, v6: 64}}]}",
    );
    let ann = from("a\"n,n\u{e9}").from("192.0.2.7:1");
    let bob = from("bob").from("[2001:db8::5]:1");
    for caller in [&ann, &bob] {
        (0..12).for_each(|_| assert!(gate.admits(caller)));
        gate.tick();
        assert!(gate.admits(caller));
        gate.engine.hot_callers();
        (0..20).for_each(|_| _ = gate.tick());
    }
    for (caller, name) in
        [(&ann, "a?n?n??+192.0.2.0"), (&bob, "bob+2001:0db8:0000:0000:0000:0000:0000:0000")]
    {
        // Hot for so long that there is a second list.
        let mut lines = Vec::new();
        for _ in 0..12 {
            (0..12).for_each(|_| assert!(gate.admits(caller)));
            gate.tick();
            lines.extend(gate.engine.hot_callers().map(|callers| callers.line()));
        }
        assert!(lines.iter().any(|line| line.contains(&format!("top={name}:"))), "{lines:?}");
        (0..20).for_each(|_| _ = gate.tick());
    }
}

#[test]
fn of_rules_with_the_same_header_the_last_is_named() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [
           {name: a, actor: device, unit: second, rpu: 99, hot: {over: 20, per: 1s, header: x-h}},
           {name: b, actor: account, unit: second, rpu: 99, hot: {over: 10, per: 1s, header: x-h}},
           {name: c, actor: account, unit: second, rpu: 99, hot: {over: 10, per: 1s, header: x-c}}]}]",
    );
    assert_eq!(gate.engine.markers.len(), 2);
    let request = from("ann").header("x-device-id", "d");
    let pair = |(header, rule): (&str, &str)| (header.to_owned(), rule.to_owned());
    (0..11).for_each(|_| assert!(gate.admits(&request)));
    gate.tick();
    assert_eq!(gate.marks(&request), [("x-h", "b"), ("x-c", "c")].map(pair));
    (0..11).for_each(|_| assert!(gate.admits(&request)));
    gate.tick();
    assert_eq!(gate.marks(&request), [("x-h", "a"), ("x-h", "b"), ("x-c", "c")].map(pair));
}

/// Workers of one gateway.
fn workers<const N: usize>(text: &str, data: &Rc<FakeSharedData>) -> [Gate; N] {
    std::array::from_fn(|_| {
        let policy = diana_config::parse(text.as_bytes()).unwrap();
        let mut tables = Tables::default();
        let stores = Stores::new("ns".into(), data.clone(), &mut tables);
        let mut gate = Gate::new(text);
        gate.engine = Engine::new(policy, Seed { k0: 7, k1: 9 }, stores, None).unwrap();
        gate
    })
}

#[test]
fn a_change_of_the_configuration_leaves_the_gauge_right() {
    let data = Rc::new(FakeSharedData::default());
    let [mut old] = workers(&rule("gateway", ""), &data);
    (0..20).for_each(|_| _ = old.admits(&from("ann")));
    old.tick();
    assert!(old.metrics().contains(&"diana.ns.rule.r.hot_keys +1".into()));
    let [mut new] = workers(&rule("gateway", ""), &data);
    let lines = super::Lines::default();
    old.engine.retire("ns", old.clock.0.get(), &lines);
    assert!(lines.0.borrow().contains(&"diana.ns.rule.r.hot_keys -1".into()), "{:?}", lines.0);
    new.admits(&from("ann"));
    new.tick();
    assert_eq!(new.marks(&from("ann")), one("x-hot-key", "r"), "what was counted stays");
    assert!(new.metrics().contains(&"diana.ns.rule.r.hot_keys +1".into()));
}

/// A caller comes in bursts, each after a pause in which its permits have gone back: the first block of
/// a hot one is as large as it is known to need.
#[test]
fn hot_callers_get_larger_leases() {
    let writes = |hot: &str| {
        let data = Rc::new(FakeSharedData::default());
        let text = format!(
            "limits: [{{Url: /, rules: [{{actor: account, unit: second, rpu: 100000, algo: W{hot}}}]}}]"
        );
        let [mut gate] = workers(&text, &data);
        let counted = Rc::new(Cell::new(0));
        let writes = counted.clone();
        *data.before_swap.borrow_mut() = Some(Box::new(move |_, key| {
            writes.set(writes.get() + u64::from(!key.ends_with("/hot")));
        }));
        for _ in 0..20 {
            (0..50).for_each(|_| {
                gate.wait(SECOND / 2_000);
                assert!(gate.admits(&from("ann")));
            });
            (0..2).for_each(|_| _ = gate.tick());
        }
        counted.get()
    };
    let (plain, hot) = (writes(""), writes(", hot: {over: 150, per: 1s}"));
    println!("{plain} writes, {hot} for a hot caller");
    assert!(hot * 3 <= plain * 2, "{plain} writes, {hot} for a hot caller");
}

#[test]
fn a_request_that_waits_for_its_turn_is_marked_and_counted_once() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: r, actor: account, unit: second, rpu: 100, algo: LB, scope: local,
           hot: {over: 10, per: 1s, header: x-h}}]}]",
    );
    (0..11).for_each(|_| assert!(gate.admits(&from("ann"))));
    gate.tick();
    assert_eq!(gate.marks(&from("ann")), one("x-h", "r"));
    gate.tick();
    let line = gate.engine.hot_callers().unwrap().line();
    assert!(line.contains(" requests=12 "), "{line}");
}

#[test]
fn clocks_at_their_ends_do_no_harm() {
    let mut gate = Gate::new(&rule("gateway", ""));
    for mono in [0, 1, u64::MAX - 1, u64::MAX, 5] {
        gate.clock.0.set(Now { mono, wall: 5 });
        (0..11).for_each(|_| _ = gate.admits(&from("ann")));
        gate.engine.tidy(gate.clock.0.get());
    }
}
