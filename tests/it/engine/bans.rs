//! Who is refused too often is refused outright.

use diana_core::time::SECOND;
use kit::fake::FakeRequest;
use kit::told::Told;

use super::{Gate, field, from};

const RULE: &str = "name: r, actor: account, unit: second, rpu: 1, algo: W, scope: local";
const BAN: &str = "ban: {after: 3, within: 10s, for: 1m, max: 4m}";

fn gate(more: &str) -> Gate {
    Gate::new(&format!("limits: [{{Url: /, rules: [{{{RULE}, {BAN}{more}}}]}}]"))
}

/// Has somebody refused until it is banned.
fn ban(gate: &mut Gate, request: &FakeRequest) {
    assert!(gate.admits(request));
    for _ in 0..3 {
        let refusal = gate.refusal(request);
        assert!(refusal.by.state().starts_with("refused rule=r "), "{}", refusal.by.state());
        assert_eq!(field(&refusal.headers(), "retry-after"), Some("1"));
    }
}

#[test]
fn a_ban_tells_when_it_ends_and_ends_then() {
    let mut gate = gate("");
    let ann = from("ann");
    ban(&mut gate, &ann);
    gate.wait(20 * SECOND + 1);
    for _ in 0..50 {
        let refusal = gate.refusal(&ann);
        assert_eq!(field(&refusal.headers(), "retry-after"), Some("40"));
        assert_eq!(field(&refusal.headers(), "ratelimit"), Some(r#""r";r=0;t=40"#));
        let state = "banned rule=r scope=local mode=enforced wait=39.999999s limit=1 remaining=0 reset=39.999999s key=";
        assert!(refusal.by.state().starts_with(state), "{}", refusal.by.state());
    }
    assert!(gate.admits(&from("bob")), "nobody else is banned");
    gate.wait(39_999_998);
    assert!(!gate.admits(&ann));
    gate.wait(1);
    assert!(gate.admits(&ann));
    assert_eq!(
        gate.metrics(),
        [
            "diana.ns.rule.r.allowed 3",
            "diana.ns.rule.r.banned 51",
            "diana.ns.rule.r.bans 1",
            "diana.ns.rule.r.keys +2",
            "diana.ns.rule.r.refused 3",
        ]
    );
    // A relapse lasts twice as long.
    (0..3).for_each(|_| assert!(!gate.admits(&ann)));
    gate.wait(SECOND);
    assert_eq!(field(&gate.refusal(&ann).headers(), "retry-after"), Some("119"));
}

#[test]
fn the_ban_comes_before_all_counting() {
    let mut gate = Gate::new(&format!(
        "limits:
          - Url: /
            rules:
              - {{name: outer, actor: all, unit: minute, rpu: 9, algo: W, scope: local}}
              - {{{RULE}, {BAN}, expose: false}}
              - {{name: inner, actor: account, unit: day, rpu: 5, algo: W, scope: local, ban: {{after: 1, within: 1s, for: 1h}}}}"
    ));
    let ann = from("ann");
    ban(&mut gate, &ann);
    gate.metrics();
    let refusal = gate.refusal(&ann);
    assert!(refusal.by.state().starts_with("banned rule=r "), "{}", refusal.by.state());
    assert_eq!(field(&refusal.headers(), "ratelimit"), None, "only what the ban is about is shown");
    (0..8).for_each(|n| assert!(gate.admits(&from(&n.to_string()))));
    // The ninth permit was hers; with it gone `outer` refuses, and still the ban is named.
    assert!(gate.refusal(&from("new")).by.state().starts_with("refused rule=outer "));
    assert!(gate.refusal(&ann).by.state().starts_with("banned rule=r "));
    gate.wait(61 * SECOND);
    (0..4).for_each(|_| {
        assert!(gate.admits(&ann), "what the ban refused was charged nowhere");
        gate.wait(SECOND);
    });
    // Of two bans the first is named, and the longer one tells when to come back.
    assert!(gate.refusal(&ann).by.state().starts_with("refused rule=inner "));
    assert_eq!(field(&gate.refusal(&ann).headers(), "retry-after"), Some("3600"));
}

#[test]
fn what_is_not_enforced_bans_nobody() {
    for more in [", shadow: true", ", enforce: 0"] {
        let mut gate = gate(more);
        (0..50).for_each(|_| assert!(gate.admits(&from("ann")), "{more}"));
        assert!(!gate.metrics().join("\n").contains("ban"), "{more}");
    }
    let mut gate =
        Gate::new(&format!("{{limits: [{{Url: /, rules: [{{{RULE}, {BAN}}}]}}], shadow: true}}"));
    (0..50).for_each(|_| assert!(gate.admits(&from("ann"))));
}

#[test]
fn who_shares_a_bucket_is_not_banned_for_what_others_did() {
    let nobody = FakeRequest::get("/");
    for absent in ["share", "deny"] {
        let mut gate = gate(&format!(", absent: {absent}"));
        (0..50).for_each(|_| _ = gate.decide(&nobody));
        assert!(gate.refusal(&nobody).by.state().starts_with("refused "), "{absent}");
    }
    // One row is taken for a day; all others share buckets, and are many.
    let mut gate = Gate::new(
        "{keys: 1, limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 1, scope: local,
           ban: {after: 1, within: 1h, for: 1h}}]}]}",
    );
    let callers: Vec<_> = (0..5000).map(|n| from(&n.to_string())).collect();
    let refused: Vec<_> = callers.iter().filter(|caller| !gate.admits(caller)).collect();
    assert!(refused.len() > 1000, "{}", refused.len());
    assert!(refused.iter().all(|caller| gate.refusal(caller).by.state().starts_with("refused ")));
}

#[test]
fn who_is_exempt_is_not_banned() {
    let mut gate = gate(", except: {headers: {x-probe: {exact: '1'}}}");
    let ann = from("ann");
    ban(&mut gate, &ann);
    assert!(!gate.admits(&ann));
    (0..50).for_each(|_| assert!(gate.admits(&ann.clone().header("x-probe", "1"))));
}

#[test]
fn a_rule_that_refuses_everything_bans_who_insists() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 100, scope: local}]},
          {Url: /trap, rules: [{name: trap, actor: account, unit: day, rpu: 0, scope: local,
            ban: {after: 2, within: 1h, for: 1h}}]}]",
    );
    let trap = FakeRequest::get("/trap").header("x-account-id", "ann");
    (0..2).for_each(|_| assert_eq!(field(&gate.refusal(&trap).headers(), "retry-after"), None));
    assert_eq!(field(&gate.refusal(&trap).headers(), "retry-after"), Some("3600"));
    assert!(gate.decide(&from("ann")).is_pass(), "the rule covers /trap only");
}
