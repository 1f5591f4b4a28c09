//! Hot callers in complete decisions.

use diana_limiter::Verdict;
use diana_policy::time::{Now, SECOND};
use kit::fake::{FakeMetrics, FakeRequest, FakeSharedData};
use std::rc::Rc;

use super::{Gate, from, limiter};

const TICK: u64 = SECOND / 10;

impl Gate {
    pub fn tick(&mut self) -> bool {
        self.wait(TICK);
        self.limiter.maintain(self.clock.0.get())
    }

    fn marks(&mut self, request: &FakeRequest) -> Vec<(String, String)> {
        let Verdict::Admit(_, Some(report)) = self.decide(request) else { return Vec::new() };
        report.marks.iter().map(|(header, rule)| (String::from(&**header), rule.clone())).collect()
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
fn names_are_logged_only_with_reveal() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: r, actor: [account, net], unit: second, rpu: 99, scope: local,
           hot: {over: 10, per: 1s, reveal: true, top: 1}}]}]
actors: {net: [{client_address: {v4: 24, v6: 64}}]}",
    );
    let first = from("a\"n,n\u{e9}").from("192.0.2.7:1");
    let second = from("bob").from("[2001:db8::5]:1");
    for caller in [&first, &second] {
        (0..12).for_each(|_| assert!(gate.admits(caller)));
        gate.tick();
        assert!(gate.admits(caller));
        gate.limiter.hot_callers();
        (0..20).for_each(|_| _ = gate.tick());
    }
    for (caller, name) in
        [(&first, "a?n?n??+192.0.2.0"), (&second, "bob+2001:0db8:0000:0000:0000:0000:0000:0000")]
    {
        // Hot for long enough to be listed twice.
        let mut lines = Vec::new();
        for _ in 0..12 {
            (0..12).for_each(|_| assert!(gate.admits(caller)));
            gate.tick();
            lines.extend(gate.limiter.hot_callers().map(|callers| callers.line()));
        }
        assert!(lines.iter().any(|line| line.contains(&format!("top={name}:"))), "{lines:?}");
        (0..20).for_each(|_| _ = gate.tick());
    }
}

#[test]
fn rules_with_the_same_header_share_a_mark() {
    let rule = |name: &str, header: &str| {
        let hot = format!("hot: {{over: 10, per: 1s, header: {header}}}");
        format!("{{name: {name}, actor: account, unit: second, rpu: 99, {hot}}}")
    };
    let rules = [rule("a", "x-h"), rule("b", "x-h"), rule("c", "x-c")].join(", ");
    let gate = Gate::new(&format!("limits: [{{Url: /, rules: [{rules}]}}]"));
    assert_eq!(gate.limiter.markers().len(), 2);
}

/// Workers of one gateway.
fn workers<const N: usize>(text: &str, data: &Rc<FakeSharedData>) -> [Gate; N] {
    std::array::from_fn(|_| {
        let mut gate = Gate::new(text);
        gate.limiter = limiter(text, data.clone());
        gate
    })
}

#[test]
fn configuration_change_keeps_the_gauge_right() {
    let data = Rc::new(FakeSharedData::default());
    let [mut old] = workers(&rule("gateway", ""), &data);
    (0..20).for_each(|_| _ = old.admits(&from("ann")));
    old.tick();
    assert!(old.metrics().contains(&"diana.ns.rule.r.hot_keys +1".into()));
    let [mut new] = workers(&rule("gateway", ""), &data);
    let lines = FakeMetrics::default();
    old.limiter.retire("ns", old.clock.0.get(), &lines);
    assert!(lines.0.borrow().contains(&"diana.ns.rule.r.hot_keys -1".into()), "{:?}", lines.0);
    new.admits(&from("ann"));
    new.tick();
    assert_eq!(new.marks(&from("ann")), one("x-hot-key", "r"), "what was counted stays");
    assert!(new.metrics().contains(&"diana.ns.rule.r.hot_keys +1".into()));
}

#[test]
fn extreme_clock_values_cause_no_panic() {
    let mut gate = Gate::new(&rule("gateway", ""));
    for mono in [0, 1, u64::MAX - 1, u64::MAX, 5] {
        gate.clock.0.set(Now { mono, wall: 5 });
        (0..11).for_each(|_| _ = gate.admits(&from("ann")));
        gate.limiter.maintain(gate.clock.0.get());
    }
}
